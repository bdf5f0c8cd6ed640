import { randomInt } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { UsageRecord } from '../../src/ledger/ledger.js'
import { talk } from '../support/client.js'
import { AUTH, gateway, inspect, metric, type RunningGateway, workersOf, yaml } from '../support/gateway.js'
import { json, openStream, provider, type Script } from '../support/provider.js'
import { wallClock } from '../support/wall-clock.js'

/*
 * kill -9 under load, again and again, on one ledger: `node dist/test/promises/kill-loop.js 50 [power] [--workers 2]`. With workers, every second kill is
 * of one of these, which goes on to be another's place; the others are of their owner. Every answer that a client received in full must be
 * billed, to the Rial, by what the provider reported; every hold must end; every counter must be the sum of its records.
 */

export interface KillLoop {
  readonly kills: number
  /** Sent by clients. */
  readonly requests: number
  /** Seen by the provider. */
  readonly forwarded: number
  /** Received in full, by clients that counted them. */
  readonly received: number
  /** Received in full, and found in the ledger with exactly their cost. */
  readonly reconciled: number
  /** Holds that a kill left open and the next start ended. */
  readonly recovered: number
  /** What was billed for what was received in full, less what it costs. */
  readonly differenceRial: bigint
  /** All that was not as it must be. */
  readonly faults: readonly string[]
}

/** What stands behind a test: its folder, and what is to be done at its end. */
export interface Bench {
  teardown(fn: () => unknown): unknown
  testdir(): string
}

interface Sent {
  readonly trace: string
  requestId: string | null
  whole: boolean
}

interface Usage {
  readonly prompt_tokens: number
  readonly completion_tokens: number
}

const CLIENTS = 12
/** The prices of `yaml`: one Rial a token of input, two a token of output. */
const costOf = ({ prompt_tokens, completion_tokens }: Usage): bigint => BigInt(prompt_tokens + 2 * completion_tokens)
const RECOVERED = 'a hold that the last run left open was released'

export interface KillLoopOptions {
  readonly durability?: 'process' | 'power'
  readonly workers?: number
}

export async function killLoop(
  bench: Bench,
  kills: number,
  { durability = 'process', workers = 1 }: KillLoopOptions = {},
): Promise<KillLoop> {
  const faults: string[] = []
  const used = new Map<string, Usage>()
  const up = await provider(bench, answering(used))
  const config = yaml(up.url, { balance: 1_000_000_000_000, more: `workers: ${workers}` }).replace(
    'durability: process',
    `durability: ${durability}`,
  )
  // Windows must not turn while their sums are compared.
  const clock = wallClock(bench, '2026-11-21T04:30:01Z')
  const folder = join(bench.testdir(), 'run')
  const start = () => gateway(bench, config, { folder, env: clock.env })
  const sent: Sent[] = []
  let running = await start()
  for (let kill = 0; kill < kills; kill++) {
    const load = Array.from({ length: CLIENTS }, () => client(running, sent))
    await enough(running, sent, workers > 1 ? 80 : 200)
    if (workers > 1) {
      const all = workersOf(running)
      process.kill(all[randomInt(all.length)] as number, 'SIGKILL')
      kill++
      if (randomInt(4) > 0) await enough(running, sent, 80)
    }
    await running.kill()
    await Promise.all(load)
    const open = await inspect(folder, async ledger => {
      for (const { what, expected, found } of await ledger.verify())
        faults.push(`after kill ${kill + 1}: ${what}: ${found}, not ${expected}`)
      return (await ledger.open()).map(hold => hold.id)
    })
    running = await start()
    const told = running.lines().filter(line => line.message === RECOVERED)
    if (told.map(line => line.request_id).join() !== open.join()) {
      faults.push(`after kill ${kill + 1}: holds ${open.join()} were open, and recovered were ${told.map(line => line.request_id).join()}`)
    }
    const counted = (await metric(running, 'model_gateway_holds_recovered_total{model="up/m"}')) ?? 0
    if (counted !== open.length) faults.push(`after kill ${kill + 1}: ${open.length} holds were open, the metric says ${counted}`)
  }
  const { json: status } = await running.get('/v1/key')
  await running.stop()

  const records = await inspect(folder, async ledger => {
    for (const { what, expected, found } of await ledger.verify()) faults.push(`${what}: ${found}, not ${expected}`)
    for (const { id } of await ledger.open()) faults.push(`hold ${id} is still open`)
    return ledger.records({})
  })
  const bills = reconcile(records, sent, used, faults)
  compareKey(status, records, faults)
  const forwarded = up.seen.length
  const traces = new Set(records.map(record => record.trace_id))
  for (const { headers } of up.seen) {
    if (!traces.has(traceOf(headers.traceparent))) faults.push(`the provider saw ${traceOf(headers.traceparent)}, which has no record`)
  }
  const recovered = records.filter(({ state }) => state === 'recovered').length
  return { kills, requests: sent.length, forwarded, recovered, ...bills, faults }
}

/** Answers whole or streamed, after a while, with a usage of its own; one in sixteen fails. */
function answering(used: Map<string, Usage>): Script {
  return async (seen, response) => {
    const usage = { prompt_tokens: randomInt(1, 500), completion_tokens: randomInt(1, 100) }
    used.set(traceOf(seen.headers.traceparent), usage)
    await sleep(randomInt(0, 30))
    if (randomInt(16) === 0) {
      json(response, 500, { error: { message: 'out of order' } })
    } else if (seen.body.stream === true) {
      const stream = openStream(seen, response)
      for (let i = randomInt(1, 8); i > 0; i--) {
        stream.say('some words ')
        await sleep(randomInt(0, 8))
      }
      stream.finish(usage)
    } else {
      const choices = [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }]
      json(response, 200, { id: 'chatcmpl-1', object: 'chat.completion', model: 'm', choices, usage })
    }
  }
}

/** By what has been asked, not by the time: a busy machine would have little to lose. */
async function enough(running: RunningGateway, sent: readonly Sent[], most: number): Promise<void> {
  const last = sent.length + CLIENTS + randomInt(20, most)
  while (sent.length < last && running.process.exitCode === null) await sleep(randomInt(1, 10))
}

/** Asks, one request after the other, until the gateway is gone: a worker of it that has died is not all of it. */
async function client(running: RunningGateway, sent: Sent[]): Promise<void> {
  for (;;) {
    const one: Sent = {
      trace: Buffer.from(Array.from({ length: 16 }, () => randomInt(256))).toString('hex'),
      requestId: null,
      whole: false,
    }
    const stream = randomInt(2) === 0
    const asking = talk(`${running.url}/v1/chat/completions`, {
      body: { model: 'up/m', stream, messages: [{ role: 'user', content: 'Hello' }] },
      headers: { ...AUTH, traceparent: `00-${one.trace}-00f067aa0ba902b7-01` },
    })
    sent.push(one)
    try {
      const head = await asking.head
      one.requestId = head.headers['x-request-id'] as string
      const ended = await asking.ended
      one.whole = head.statusCode === 200 && (stream ? asking.text().includes('data: [DONE]\n\n') : ended === 'whole')
      if (ended === 'whole') continue
    } catch {
      // Nobody listens, or the connection was cut before there was anything.
    }
    if (running.process.signalCode !== null || running.process.exitCode !== null) return
    await sleep(1)
  }
}

function reconcile(
  records: readonly UsageRecord[],
  sent: readonly Sent[],
  used: ReadonlyMap<string, Usage>,
  faults: string[],
): { received: number; reconciled: number; differenceRial: bigint } {
  const byId = new Map(records.map(record => [record.id, record]))
  let received = 0
  let reconciled = 0
  let differenceRial = 0n
  for (const { trace, requestId, whole } of sent) {
    if (!whole) continue
    received++
    const usage = used.get(trace) as Usage
    const record = byId.get(requestId ?? '')
    const billed = record?.cost_rial ?? 0n
    differenceRial += billed - costOf(usage)
    const exact =
      record?.state === 'settled' && record.input_tokens === usage.prompt_tokens && record.output_tokens === usage.completion_tokens
    if (exact && billed === costOf(usage)) reconciled++
    else faults.push(`${requestId} was received in full for ${costOf(usage)} Rial, and its record is ${record?.state} at ${billed} Rial`)
  }
  for (const record of records) {
    const usage = used.get(record.trace_id ?? '')
    const due =
      record.state === 'settled' ? (usage === undefined ? -1n : costOf(usage)) : record.state === 'partial' ? record.cost_rial : 0n
    if (record.cost_rial !== due) faults.push(`${record.id} is ${record.state} at ${record.cost_rial} Rial; ${due} are due`)
  }
  return { received, reconciled, differenceRial }
}

/** What `GET /v1/key` says. */
interface KeyStatus {
  readonly usage: Readonly<Record<string, number>>
  readonly wallet: { readonly balance_rial: number; readonly held_rial: number }
}

function compareKey({ usage, wallet }: KeyStatus, records: readonly UsageRecord[], faults: string[]): void {
  const tokens = records.reduce((sum, record) => sum + (record.input_tokens ?? 0) + (record.output_tokens ?? 0), 0)
  const rial = Number(records.reduce((sum, record) => sum + (record.cost_rial ?? 0n), 0n))
  const expected = { requests_today: records.length, tokens_today: tokens, spend_today_rial: rial, spend_mtd_rial: rial }
  for (const [name, amount] of Object.entries(expected)) {
    if (usage[name] !== amount) faults.push(`/v1/key: ${name} is ${usage[name]}, the records come to ${amount}`)
    if (usage[`held_${name}`] !== 0) faults.push(`/v1/key: held_${name} is ${usage[`held_${name}`]}`)
  }
  if (wallet.balance_rial !== 1_000_000_000_000 - rial || wallet.held_rial !== 0) faults.push(`/v1/key: wallet ${JSON.stringify(wallet)}`)
}

function traceOf(traceparent: unknown): string {
  return String(traceparent).split('-')[1] ?? ''
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const undo: (() => unknown)[] = []
  const folder = mkdtempSync(join(tmpdir(), 'kill-loop-'))
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { workers: { type: 'string', default: '1' } } })
  const durability = positionals[1] === 'power' ? 'power' : 'process'
  const { faults, ...counts } = await killLoop(
    { teardown: fn => undo.push(fn), testdir: () => folder },
    Number(positionals[0] ?? process.env.KILLS ?? 50),
    { durability, workers: Number(values.workers) },
  )
  for (const fn of undo) await fn()
  rmSync(folder, { recursive: true })
  for (const [name, count] of Object.entries(counts)) console.log(`${name.padEnd(16)}${count}`)
  for (const fault of faults) console.log(`FAULT ${fault}`)
  process.exitCode = faults.length === 0 ? 0 : 1
}
