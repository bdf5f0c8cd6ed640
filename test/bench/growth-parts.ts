import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { requestIds, ulids } from '../../src/ids.js'
import { accountRial, keyRequests, keyRial, keyTokens } from '../../src/ledger/counters.js'
import type { Claim } from '../../src/ledger/ledger.js'
import { openLedger } from '../../src/ledger/sqlite.js'
import { windows } from '../../src/ledger/windows.js'
import { admissionRecord, endingRecord } from '../ledger/figures.js'
import { ACCOUNTS, KEYS } from '../support/filled-ledger.js'
import { AUTH, gateway, metric, type RunningGateway } from '../support/gateway.js'
import { programFile } from '../support/paths.js'
import { bare } from '../support/program.js'
import type { ScriptedProvider } from '../support/provider.js'

/** What is measured of one ledger file: each figure is the best of all rounds so far, since others only ever make it worse. */
export interface Measured {
  readonly folder: string
  readonly records: number
  readonly figures: Map<string, number>
}

export interface Bench {
  teardown(fn: () => unknown): unknown
  testdir(): string
}

const MINUTE = 60_000
const OPERATIONS = 300
const HOLDS = 200
const RECOVERED = 'a hold that the last run left open was released'
const BODY = JSON.stringify({ model: 'up/m', messages: [{ role: 'user', content: 'Hello' }] })

export function note({ figures }: Measured, name: string, value: number): void {
  figures.set(name, Math.min(figures.get(name) ?? Number.POSITIVE_INFINITY, value))
}

/** Rounds of holds and settlements on each file in turn. Microseconds, the median of a round. */
export async function inProcess(files: readonly Measured[], rounds: number): Promise<void> {
  const newId = requestIds(ulids())
  const ledgers = await Promise.all(
    files.map(({ folder }) => openLedger({ path: join(folder, 'data', 'ledger.db'), durability: 'process', create: false })),
  )
  // Each fresh moment is in minutes that no counter is there for.
  let fresh = Date.now() + 60 * MINUTE
  for (let round = 0; round < rounds; round++) {
    for (const [i, file] of files.entries()) {
      const ledger = ledgers[i] as (typeof ledgers)[number]
      const times = { hold: [] as number[], settle: [] as number[], first: [] as number[] }
      const one = async (key: number, at: number, held: number[]) => {
        const id = newId(Date.now())
        const record = admissionRecord({ key: KEYS[key] as string, held_rial: 630n })
        const started = performance.now()
        const admission = await ledger.hold({ id, at, claims: claims(at, key), record })
        held.push(performance.now() - started)
        if (!admission.admitted) throw new Error(`refused: ${admission.refused.code}`)
        const ending = endingRecord({ ended_at: at, cost_rial: 315n })
        const settled = performance.now()
        await ledger.settle(id, { state: 'settled', actual: { tokens: 500n, rial: 315n }, record: ending })
        times.settle.push(performance.now() - settled)
      }
      const now = Date.now()
      for (let n = 0; n < OPERATIONS; n++) await one(n % KEYS.length, now, times.hold)
      for (let n = 0; n < OPERATIONS / 3; n++) await one(n % KEYS.length, fresh + Math.floor(n / KEYS.length) * MINUTE, times.first)
      note(file, 'admission, µs', 1000 * median(times.hold))
      note(file, 'admission, first of its minute, µs', 1000 * median(times.first))
      note(file, 'settlement, µs', 1000 * median(times.settle))
    }
    fresh += 60 * MINUTE
  }
  for (const ledger of ledgers) await ledger.close()
}

/** The claims that the default policies make. */
function claims(at: number, key: number): Claim[] {
  const name = KEYS[key] as string
  const minute = windowOf('minute', at)
  const day = windowOf('day', at)
  const ceiling = 10n ** 15n
  return [
    { counter: keyRequests(name, minute), amount: 1n, ceiling, code: 'rate_limit_rpm', ends: 'counted' },
    { counter: keyRequests(name, windowOf('hour', at)), amount: 1n, ceiling, code: 'rate_limit_rph', ends: 'counted' },
    { counter: keyRequests(name, day), amount: 1n, ceiling, code: 'rate_limit_rpd', ends: 'counted' },
    { counter: keyTokens(name, minute), amount: 1000n, ceiling, code: 'rate_limit_tpm' },
    { counter: keyTokens(name, day), amount: 1000n, ceiling, code: 'key_daily_token_budget_reached' },
    { counter: keyRial(name, day), amount: 630n, ceiling, code: 'key_daily_budget_reached' },
    { counter: keyRial(name, windowOf('month', at)), amount: 630n, ceiling, code: 'monthly_cap_reached' },
    { counter: accountRial(ACCOUNTS[key % ACCOUNTS.length] as string), amount: 630n, ceiling: 'credits', code: 'insufficient_balance' },
  ]
}

const windowOf = windows('Asia/Tehran', 'gregorian')

/** Requests to running gateways in turn, one at a time. Milliseconds, the median of a round; the CPU of the gateway's process for each. */
export async function requests(running: readonly RunningGateway[], files: readonly Measured[], rounds: number): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  for (let round = 0; round < rounds; round++) {
    for (const [i, file] of files.entries()) {
      const one = running[i] as RunningGateway
      const chat = () => ask(agent, one.url, 'POST', '/v1/chat/completions')
      const key = () => ask(agent, one.url, 'GET', '/v1/key')
      // What the rounds of the other file have put out of the processor's caches comes back first.
      for (let n = 0; n < 50; n++) await chat()
      const before = await cpuSeconds(one)
      note(file, 'a request, ms', median(await timed(OPERATIONS, chat)))
      note(file, "a request, ms of the gateway's CPU", (((await cpuSeconds(one)) - before) / OPERATIONS) * 1000)
      note(file, '`GET /v1/key`, ms', median(await timed(OPERATIONS, key)))
    }
  }
  agent.destroy()
}

/** Milliseconds from the launch of the program to its first answer, with nothing open and with holds that a kill has left. */
export async function starts(
  bench: Bench,
  files: readonly Measured[],
  config: string,
  up: ScriptedProvider,
  rounds: number,
): Promise<void> {
  const start = async ({ folder }: Measured) => {
    const started = performance.now()
    const running = await gateway(bench, config, { folder })
    const { status } = await running.get('/v1/key')
    if (status !== 200) throw new Error(`the first answer was ${status}`)
    return { running, took: performance.now() - started }
  }
  const { script } = up
  for (let round = 0; round < rounds; round++) {
    for (const file of files) {
      const { running, took } = await start(file)
      note(file, 'start to first answer, ms', took)
      const asked = up.seen.length + HOLDS
      up.script = () => {}
      const lost = Array.from({ length: HOLDS }, () => running.post('/v1/chat/completions', BODY).catch(() => null))
      while (up.seen.length < asked) await new Promise(resolve => setTimeout(resolve, 5))
      up.script = script
      await running.kill()
      await Promise.all(lost)
      const again = await start(file)
      note(file, `the same after \`kill -9\` with ${HOLDS} requests, ms`, again.took)
      const recovered = again.running.lines().filter(line => line.message === RECOVERED).length
      if (recovered !== HOLDS) throw new Error(`${HOLDS} holds were open, ${recovered} were recovered`)
      await again.running.stop()
    }
  }
}

export interface Ran {
  readonly seconds: number
  /** Of the gateway's CPU. */
  readonly cpuSeconds: number
  readonly stdout: string
  /** The most resident memory of the gateway meanwhile, in MB. */
  readonly gatewayMemory: number
  /** The slowest of the requests for /v1/key that were made meanwhile but for one in a hundred, in milliseconds. */
  readonly keyP99: number
}

/** A verb on a running gateway, while its key is asked for again and again. */
export async function verb(running: RunningGateway, args: readonly string[]): Promise<Ran> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const [command = '', ...rest] = bare([process.execPath, programFile(), ...args, '-c', join(running.folder, 'gateway.yaml')])
  const before = await cpuSeconds(running)
  const started = performance.now()
  const child = spawn(command, rest, { stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = once(child, 'close')
  const seconds = ended.then(() => (performance.now() - started) / 1000)
  let stdout = ''
  child.stdout.on('data', chunk => {
    stdout += chunk
  })
  let stderr = ''
  child.stderr.on('data', chunk => {
    stderr += chunk
  })
  let gatewayMemory = 0
  const times: number[] = []
  while (child.exitCode === null && child.signalCode === null) {
    times.push(...(await timed(5, () => ask(agent, running.url, 'GET', '/v1/key'))))
    gatewayMemory = Math.max(gatewayMemory, await memory(running))
    await new Promise(resolve => setTimeout(resolve, 20))
  }
  agent.destroy()
  const spent = (await cpuSeconds(running)) - before
  if (child.exitCode !== 0) throw new Error(`${args.join(' ')}: ${child.exitCode ?? child.signalCode}: ${stderr}`)
  return { seconds: await seconds, cpuSeconds: spent, stdout, gatewayMemory, keyP99: quantile(times, 0.99) }
}

/** Resident memory in MB. */
export async function memory(running: RunningGateway): Promise<number> {
  return ((await metric(running, 'process_resident_memory_bytes')) ?? Number.NaN) / 1e6
}

async function cpuSeconds(running: RunningGateway): Promise<number> {
  return (await metric(running, 'process_cpu_seconds_total')) ?? Number.NaN
}

async function ask(agent: Agent, url: string, method: string, path: string): Promise<void> {
  const asking = request(url + path, { agent, method, headers: { ...AUTH, 'content-type': 'application/json' } })
  asking.end(method === 'POST' ? BODY : undefined)
  const [response] = await once(asking, 'response')
  if (response.statusCode !== 200) throw new Error(`${method} ${path} was answered with ${response.statusCode}`)
  response.resume()
  await once(response, 'end')
}

async function timed(times: number, run: () => Promise<void>): Promise<number[]> {
  const found: number[] = []
  for (let n = 0; n < times; n++) {
    const started = performance.now()
    await run()
    found.push(performance.now() - started)
  }
  return found
}

function median(times: number[]): number {
  return quantile(times, 0.5)
}

function quantile(times: number[], part: number): number {
  return times.sort((a, b) => a - b)[Math.floor(times.length * part)] ?? Number.NaN
}
