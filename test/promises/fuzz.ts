import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import fc from 'fast-check'
import { AUTH, gateway, KEY, type RunningGateway } from '../support/gateway.js'
import { chat, json, provider, type Script } from '../support/provider.js'
import { type Case, cases, extremes, MODELS } from './fuzz-bodies.js'
import { now, type Probe, type Probed } from './fuzz-prober.js'
import type { Bench } from './kill-loop.js'

/*
 * Bodies as hostile clients write them, against a running gateway: `node dist/test/promises/fuzz.js 20000 [seed]`. None may make it answer with
 * an error of its own, none may end it, none may get more out of a provider than was held, and none may keep the others waiting.
 */

export interface Fuzz {
  readonly seed: number
  readonly cases: number
  readonly bytes: number
  /** How often each path was asked, and each status answered. */
  readonly paths: Readonly<Record<string, number>>
  readonly statuses: Readonly<Record<string, number>>
  /** Requests that reached a provider, and those whose cap was held against their hold. */
  readonly forwarded: number
  readonly capped: number
  /** Requests of another client meanwhile; half and 99 of 100 of them took at most so long. Milliseconds. */
  readonly probes: number
  readonly probeMedianMs: number
  readonly probeP99Ms: number
  /** The longest that the event loop worked while one of them waited. */
  readonly busyMaxMs: number
  /** Cases that were under way when another client waited for long, and were tried again alone. */
  readonly suspects: number
  readonly faults: readonly string[]
}

const TOGETHER = 16
const CAP = 4_096
/** The most that one case may delay others by: work of the event loop, in milliseconds. */
export const DELAY_MS = 50
/** A case delays others if it does so every time that it is tried: once may be the machine. */
const TRIES = 5
/** More of them than that are a fault of the machine, or of far more than one case. */
const SUSPECTS_MAX = 400

export async function fuzz(bench: Bench, count: number, seed: number): Promise<Fuzz> {
  const held: { trace: string; cap: number }[] = []
  const up = await provider(bench, answer(held))
  const running = await gateway(bench, config(up.url))
  const prober = await Prober.start(bench, running)
  const faults: string[] = []
  const paths: Record<string, number> = {}
  const statuses: Record<string, number> = {}
  const all = [...extremes, ...fc.sample(cases, { numRuns: Math.max(0, count - extremes.length), seed })]
  const agent = new Agent({ keepAlive: true, maxSockets: TOGETHER })
  bench.teardown(() => agent.destroy())
  const spans: { readonly one: Case; readonly from: number; readonly to: number }[] = []
  let next = 0
  let bytes = 0
  const worker = async (): Promise<void> => {
    while (next < all.length && running.process.exitCode === null && faults.length <= 20) {
      const one = all[next++] as Case
      const from = now()
      const fault = await tried(running, agent, one, statuses)
      spans.push({ one, from, to: now() })
      if (fault !== null) faults.push(fault)
      paths[one.path] = (paths[one.path] ?? 0) + 1
      bytes += one.body.length
      // What it remembers of them nobody reads.
      up.seen.length = 0
    }
  }
  await Promise.all(Array.from({ length: TOGETHER }, worker))
  const probes = [...prober.probes]
  const waited = probes.filter(({ busyMs }) => busyMs > DELAY_MS)
  const suspects = spans.filter(({ from, to }) => waited.some(probe => from < probe.from + probe.ms && to > probe.from))
  for (const { one } of suspects.slice(0, SUSPECTS_MAX)) {
    const ms = await delay(() => tried(running, agent, one, {}), prober)
    if (ms > DELAY_MS) faults.push(`others waited ${Math.round(ms)} ms, ${TRIES} times of ${TRIES}, for ${shown(one)}`)
  }
  await prober.stop()
  if ((await running.stop()) !== 0) faults.push(`the gateway ended with ${running.process.exitCode ?? running.process.signalCode}`)
  for (const line of running.lines()) if (line.level === 'error') faults.push(`in the log: ${JSON.stringify(line).slice(0, 1000)}`)
  const records = new Map((await running.records()).map(record => [record.trace_id, record]))
  for (const { trace, cap } of held) {
    const tokens = Number(records.get(trace)?.held_tokens ?? -1)
    if (!(cap <= tokens)) faults.push(`a provider was asked for ${cap} tokens, held were ${tokens}`)
  }
  const took = probes.map(({ ms }) => ms).sort((a, b) => a - b)
  const of = (part: number): number => Math.round((took[Math.floor(took.length * part)] ?? 0) * 10) / 10
  return {
    seed,
    cases: spans.length,
    bytes,
    paths,
    statuses,
    forwarded: records.size,
    capped: held.length,
    probes: took.length,
    probeMedianMs: of(0.5),
    probeP99Ms: of(0.99),
    busyMaxMs: Math.round(Math.max(...probes.map(({ busyMs }) => busyMs))),
    suspects: suspects.length,
    faults,
  }
}

/** The least, of some tries, that another client had to wait for the gateway's work while something was done. Ends with the first that is short. */
async function delay(something: () => Promise<unknown>, prober: Prober): Promise<number> {
  let least = Number.POSITIVE_INFINITY
  for (let i = 0; i < TRIES && least > DELAY_MS; i++) {
    const from = now()
    await something()
    await prober.past(now())
    const during = prober.probes.filter(probe => probe.from + probe.ms > from)
    least = Math.min(least, Math.max(...during.map(({ busyMs }) => busyMs)))
  }
  return least
}

/** Another client, who asks all the time. */
class Prober {
  readonly probes: Probe[] = []
  readonly #worker: Worker

  private constructor(worker: Worker) {
    this.#worker = worker
    worker.on('message', (probe: Probe) => this.probes.push(probe))
  }

  static async start(bench: Bench, { url, process }: RunningGateway): Promise<Prober> {
    const worker = new Worker(new URL('fuzz-prober.js', import.meta.url))
    bench.teardown(() => worker.terminate())
    const prober = new Prober(worker)
    worker.postMessage({ url, pid: process.pid as number } satisfies Probed)
    // Its first steps are slow for reasons of its own.
    while (prober.probes.length < 100) await once(worker, 'message')
    prober.probes.length = 0
    return prober
  }

  /** Until one has been answered that was asked after this moment. */
  async past(moment: number): Promise<void> {
    while ((this.probes.at(-1)?.from ?? 0) < moment) await sleep(1)
  }

  async stop(): Promise<void> {
    this.#worker.postMessage('stop')
    await once(this.#worker, 'exit')
  }
}

/** One case; what was wrong with its answer. */
async function tried(running: RunningGateway, agent: Agent, one: Case, statuses: Record<string, number>): Promise<string | null> {
  try {
    const { status, text } = await posted(running.url + one.path, one.body, agent)
    statuses[status] = (statuses[status] ?? 0) + 1
    const right = status === 200 || (status >= 400 && status < 500 && typeof JSON.parse(text).error?.code === 'string')
    return right ? null : `${status} ${text.slice(0, 300)} to ${shown(one)}`
  } catch (error) {
    return `${error} to ${shown(one)}`
  }
}

function posted(url: string, body: Buffer, agent: Agent): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const headers = { ...AUTH, 'content-type': 'application/json', 'content-length': body.length }
    request(url, { method: 'POST', agent, headers }, response => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', chunk => (text += chunk))
      response.on('error', reject)
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
    })
      .on('error', reject)
      .end(body)
  })
}

function shown({ path, body }: Case): string {
  return `${path} ${JSON.stringify(body.toString('latin1').slice(0, 2_000))}`
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
limits: {body: 16MiB}
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
  console.log(
    `${counts.cases} hostile bodies, ${counts.capped} caps held against their holds, ${counts.probes} probes, ${faults.length} faults`,
  )
  process.exitCode = faults.length === 0 ? 0 : 1
}
