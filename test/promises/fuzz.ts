import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { AUTH, gateway, KEY, type RunningGateway } from '../support/gateway.js'
import { chat, json, provider, type Script } from '../support/provider.js'
import { type Case, cases, MODELS } from './fuzz-bodies.js'
import type { Bench } from './kill-loop.js'

/*
 * Bodies as hostile clients write them, against a running gateway: `node dist/test/promises/fuzz.js 20000 [seed]`. None may make it answer with
 * an error of its own, none may end it, none may get more out of a provider than was held, and none may keep the others waiting.
 */

export interface Fuzz {
  readonly seed: number
  readonly cases: number
  readonly bytes: number
  /** How often each status was answered. */
  readonly statuses: Readonly<Record<string, number>>
  /** Requests that reached a provider, and those whose cap was held against their hold. */
  readonly forwarded: number
  readonly capped: number
  /** The longest that the event loop of the gateway was busy with one thing, and what 99 of 100 times were below. Milliseconds. */
  readonly busyMs: number
  readonly busyP99Ms: number
  readonly faults: readonly string[]
}

const TOGETHER = 16
const CAP = 4_096
/** The resolution of the measurement: what an event loop that does nothing shows. */
const RESOLUTION_MS = 20

export async function fuzz(bench: Bench, count: number, seed: number): Promise<Fuzz> {
  const held: { trace: string; cap: number }[] = []
  const up = await provider(bench, answer(held))
  const running = await gateway(bench, config(up.url))
  const faults: string[] = []
  const statuses: Record<string, number> = {}
  let bytes = 0
  await busy(running)
  let worst = { max: 0, p99: 0 }
  const stream = fc.sample(cases, { numRuns: count, seed })
  for (let from = 0; from < stream.length; from += TOGETHER) {
    const batch = stream.slice(from, from + TOGETHER)
    const fault = await Promise.all(batch.map(one => tried(running, one, statuses)))
    faults.push(...fault.filter(one => one !== null))
    for (const { body } of batch) bytes += body.length
    up.seen.length = 0
    if (running.process.exitCode !== null || faults.length > 20) break
    if (from % (TOGETHER * 16) === 0) {
      const { max, p99 } = await busy(running)
      worst = { max: Math.max(worst.max, max), p99: Math.max(worst.p99, p99) }
    }
  }
  if ((await running.stop()) !== 0) faults.push(`the gateway ended with ${running.process.exitCode ?? running.process.signalCode}`)
  for (const line of running.lines()) if (line.level === 'error') faults.push(`in the log: ${JSON.stringify(line).slice(0, 1000)}`)
  const records = new Map((await running.records()).map(record => [record.trace_id, record]))
  for (const { trace, cap } of held) {
    const tokens = Number(records.get(trace)?.held_tokens ?? -1)
    if (!(cap <= tokens)) faults.push(`a provider was asked for ${cap} tokens, held were ${tokens}`)
  }
  return {
    seed,
    cases: stream.length,
    bytes,
    statuses,
    forwarded: records.size,
    capped: held.length,
    busyMs: worst.max,
    busyP99Ms: worst.p99,
    faults,
  }
}

/** One case; what was wrong with its answer. */
async function tried(running: RunningGateway, { path, body }: Case, statuses: Record<string, number>): Promise<string | null> {
  try {
    const { status, json, text } = await running.post(path, body, AUTH)
    statuses[status] = (statuses[status] ?? 0) + 1
    const code = json?.error?.code
    const right = status === 200 || (status >= 400 && status < 500 && typeof code === 'string')
    return right ? null : `${status} ${text.slice(0, 300)} to ${shown(path, body)}`
  } catch (error) {
    return `${error} to ${shown(path, body)}`
  }
}

function shown(path: string, body: Buffer): string {
  return `${path} ${JSON.stringify(body.toString('latin1').slice(0, 2_000))}`
}

async function busy(running: RunningGateway): Promise<{ max: number; p99: number }> {
  const { text } = await running.get(`${running.ops}/metrics`)
  const of = (name: string): number => {
    const [, seconds] = new RegExp(`^nodejs_eventloop_lag_${name}_seconds (\\S+)$`, 'm').exec(text) ?? []
    return Math.max(0, Math.round(Number(seconds) * 1000 - RESOLUTION_MS))
  }
  return { max: of('max'), p99: of('p99') }
}

/** Answers as OpenAI where it is asked so; other kinds are told 400 once their request has been translated. */
function answer(held: { trace: string; cap: number }[]): Script {
  const chats = chat()
  return (seen, response, request) => {
    const { body, headers, path } = seen
    const trace = String(headers.traceparent).split('-')[1] ?? ''
    const cap = body.max_tokens ?? body.max_completion_tokens ?? body.generationConfig?.maxOutputTokens
    const many =
      Math.max(body.n ?? 1, body.best_of ?? 1) * (Array.isArray(body.prompt) && typeof body.prompt[0] !== 'number' ? body.prompt.length : 1)
    if (typeof cap === 'number') held.push({ trace, cap: cap * many })
    if (path === '/v1/chat/completions') return chats(seen, response, request)
    if (path === '/v1/completions') return json(response, 200, { choices: [{ index: 0, text: 'a', finish_reason: 'stop' }] })
    if (path === '/v1/moderations')
      return json(response, 200, { results: Array.from({ length: texts(body.input) }, () => ({ flagged: false })) })
    return json(response, 400, { error: { message: 'no', type: 'invalid_request_error', param: null, code: null } })
  }
}

/** A list of parts is one input. */
function texts(input: unknown): number {
  return Array.isArray(input) && typeof input[0] === 'string' ? input.length : 1
}

function config(url: string): string {
  const kinds = {
    up: 'openai',
    claude: 'anthropic',
    gemini: 'gemini',
    cohere: 'cohere',
    mistral: 'mistral',
    jina: 'jina',
    voyage: 'voyage',
    tei: 'tei',
  }
  const providers = Object.entries(kinds).map(([name, kind]) => `  ${name}: {kind: ${kind}, base_url: "${url}", api_key: k}\n`)
  const models = MODELS.map(name => `  ${name}: {price: {input: 1, output: 1}, max_output_tokens: ${CAP}, default_max_tokens: 100}\n`)
  return `
ledger: {path: data/ledger.db, durability: process}
providers:
${providers.join('')}models:
${models.join('')}plans: {p: {}}
accounts: {acme: {opening_balance_rial: 1000000000000}}
keys: {a: {account: acme, plan: p, secret: ${KEY}}}
limits: {body: 8MiB}
`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const undo: (() => unknown)[] = []
  const folder = mkdtempSync(join(tmpdir(), 'fuzz-'))
  const seed = Number(process.argv[3] ?? Math.floor(Math.random() * 2 ** 31))
  const { faults, ...counts } = await fuzz(
    { teardown: fn => undo.push(fn), testdir: () => folder },
    Number(process.argv[2] ?? process.env.CASES ?? 20_000),
    seed,
  )
  for (const fn of undo) await fn()
  rmSync(folder, { recursive: true })
  console.log(JSON.stringify(counts, null, 2))
  for (const fault of faults) console.log(`FAULT ${fault}`)
  process.exitCode = faults.length === 0 ? 0 : 1
}
