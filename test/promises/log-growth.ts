import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Books, openBooks } from '../../src/control/books.js'
import { openLedger } from '../../src/ledger/sqlite.js'
import { fillLedger } from '../support/filled-ledger.js'
import { AUTH, gateway, type RunningGateway, yaml } from '../support/gateway.js'
import { chat, provider } from '../support/provider.js'

/*
 * How long the ledger's log becomes under a load that never pauses: `node dist/test/promises/log-growth.js 60 500000` (seconds, records that are
 * in the file before). Meanwhile readers are never done: reports, checks, records that are read slowly, and one backup after the other.
 */

/** As src/README.md has it. */
export const LOG_BYTES_BOUND = 16_000_000

export interface LogGrowth {
  readonly requests: number
  /** Finished while requests went on. */
  readonly backups: number
  readonly reports: number
  readonly verifications: number
  readonly samples: number
  /** How often the log was cut. */
  readonly cuts: number
  /** What went through it, at the least. */
  readonly loggedBytes: number
  readonly longestBytes: number
  readonly faults: readonly string[]
}

interface Bench {
  teardown(fn: () => unknown): unknown
  testdir(): string
}

const CLIENTS = 32

export async function logGrowth(bench: Bench, seconds: number, records: number): Promise<LogGrowth> {
  const up = await provider(bench, chat())
  const folder = join(bench.testdir(), 'run')
  mkdirSync(join(folder, 'data'), { recursive: true })
  const path = join(folder, 'data', 'ledger.db')
  await fillLedger(path, records, Date.now())
  const running = await gateway(bench, yaml(up.url, { balance: 0 }), { folder })
  const books = await openBooks({ path, durability: 'process', create: false })
  const faults: string[] = []
  const until = performance.now() + seconds * 1000
  const goesOn = () => performance.now() < until
  const log = watch(`${path}-wal`)
  const [requests, backups, reports, verifications] = await Promise.all([
    load(running, goesOn, faults),
    again(goesOn, async round => backup(books, join(folder, `copy-${round}.db`), faults)),
    again(goesOn, () =>
      books.ask('usage', { by: ['key', 'model', 'day'], timezone: 'Asia/Tehran', calendar: 'gregorian' }).then(rows => {
        if (rows.length === 0) faults.push('a report was empty')
      }),
    ),
    again(goesOn, async () => {
      for (const { what, expected, found } of await books.ask('verify', {})) faults.push(`${what}: ${found}, not ${expected}`)
    }),
    readSlowly(books, goesOn),
  ])
  const { samples, cuts, loggedBytes, longestBytes } = log.end()
  if (longestBytes > LOG_BYTES_BOUND) faults.push(`the log came to ${longestBytes} bytes, beyond ${LOG_BYTES_BOUND}`)
  if (cuts < 2) faults.push(`${loggedBytes} bytes went through the log, which was cut ${cuts} times: too little to tell anything`)
  await running.stop()
  return { requests, backups, reports, verifications, samples, cuts, loggedBytes, longestBytes, faults }
}

function watch(path: string): { end(): Pick<LogGrowth, 'samples' | 'cuts' | 'loggedBytes' | 'longestBytes'> } {
  let [samples, cuts, loggedBytes, longestBytes, last] = [0, 0, 0, 0, 0]
  const timer = setInterval(() => {
    const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0
    samples++
    if (size < last) cuts++
    loggedBytes += size < last ? size : size - last
    longestBytes = Math.max(longestBytes, size)
    last = size
  }, 2)
  return {
    end: () => {
      clearInterval(timer)
      return { samples, cuts, loggedBytes, longestBytes }
    },
  }
}

async function load({ url }: RunningGateway, goesOn: () => boolean, faults: string[]): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS })
  const body = JSON.stringify({ model: 'up/m', messages: [{ role: 'user', content: 'Hello' }] })
  const headers = { ...AUTH, 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
  const one = () => again(goesOn, () => answered(`${url}/v1/chat/completions`, { agent, headers }, body, faults))
  const counts = await Promise.all(Array.from({ length: CLIENTS }, one))
  agent.destroy()
  return counts.reduce((sum, count) => sum + count, 0)
}

async function answered(url: string, options: object, body: string, faults: string[]): Promise<void> {
  const asking = request(url, { ...options, method: 'POST' })
  asking.end(body)
  const [response] = await once(asking, 'response')
  if (response.statusCode !== 200) faults.push(`a request was answered with ${response.statusCode}`)
  response.resume()
  await once(response, 'end')
}

/** A copy is whole: its counters agree with its records. */
async function backup(books: Books, path: string, faults: string[]): Promise<void> {
  await books.ask('backup', { path })
  const copy = await openLedger({ path, durability: 'process', create: false })
  for (const { what, expected, found } of await copy.verify()) faults.push(`in a backup, ${what}: ${found}, not ${expected}`)
  await copy.close()
  rmSync(path)
}

/** Reads records, a pause after each few, for as long as it goes on. */
async function readSlowly(books: Books, goesOn: () => boolean): Promise<void> {
  let read = 0
  for await (const _ of books.records({})) {
    if (!goesOn()) return
    if (++read % 100 === 0) await sleep(10)
  }
}

async function again(goesOn: () => boolean, run: (round: number) => Promise<void>): Promise<number> {
  let rounds = 0
  for (; goesOn(); rounds++) await run(rounds)
  return rounds
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const undo: (() => unknown)[] = []
  const folder = mkdtempSync(join(tmpdir(), 'log-growth-'))
  try {
    const bench = { teardown: (fn: () => unknown) => undo.push(fn), testdir: () => folder }
    const { faults, ...counts } = await logGrowth(bench, Number(process.argv[2] ?? 60), Number(process.argv[3] ?? 500_000))
    for (const [name, count] of Object.entries(counts)) console.log(`${name.padEnd(16)}${count}`)
    for (const fault of faults) console.log(`FAULT ${fault}`)
    console.log(`log at most ${(counts.longestBytes / 1e6).toFixed(1)} MB of ${LOG_BYTES_BOUND / 1e6}, ${faults.length} faults`)
    process.exitCode = faults.length === 0 ? 0 : 1
  } finally {
    for (const fn of undo) await fn()
    rmSync(folder, { recursive: true })
  }
}
