import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { UsageRecord } from '../../src/ledger/ledger.js'
import { openLedger, type SqliteLedger } from '../../src/ledger/sqlite.js'
import { conform } from './api.js'
import { count, searchAll, searchFiles, searchSecrets, takeSecret, takeSecrets } from './canaries.js'
import type { Parsed } from './parsed.js'
import { programFile } from './paths.js'
import { bare } from './program.js'

export interface RunningGateway {
  readonly url: string
  readonly ops: string
  readonly folder: string
  readonly process: ChildProcess
  /** What it wrote to stdout and stderr so far. */
  readonly output: () => string
  /** Lines of its log, parsed. */
  readonly lines: () => Parsed[]
  /** Both throw where the answer is not as config/openapi.yaml has it; `get` takes a whole address, too, of the ops listener for one. */
  get(path: string, headers?: Record<string, string>): Promise<Answer>
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Answer>
  /** SIGTERM, and the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>
  /** SIGKILL. */
  kill(): Promise<void>
  /** After it has stopped: its usage records. */
  records(): Promise<UsageRecord[]>
  /** Another gateway.yaml in its place; the gateway sees it by itself. */
  rewrite(yaml: string): void
  /** Another gateway.yaml, which it sees by itself; resolves when the reload is over. */
  reload(yaml: string): Promise<void>
  /** The first line of its log that has this message, waited for. */
  line(message: string): Promise<Parsed>
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly json: Parsed
}

export interface GatewayTestOptions {
  readonly env?: Record<string, string>
  /** A folder to run in again; its gateway.yaml is written anew. */
  readonly folder?: string
  /** What stands before node on the command line: `faketime …`. */
  readonly wrap?: readonly string[]
  /** Of the listener for metrics and probes; a free one by default. */
  readonly opsPort?: number
  /** Of the public listener, likewise. */
  readonly listenPort?: number
}

interface Test {
  teardown(fn: () => unknown): unknown
  testdir(): string
}

/** `WORKERS=2`: every gateway that does not say how many has so many. */
const WORKERS = process.env.WORKERS === undefined ? '' : `\nworkers: ${process.env.WORKERS}\n`

export const KEY = 'mgk_test_key_a'
export const AUTH = { authorization: `Bearer ${KEY}` }

/** Runs the program on a config, as a user would, and waits until it listens. Stopped with the test. `listen` and `ops` are added. */
export async function gateway(t: Test, yaml: string, options: GatewayTestOptions = {}): Promise<RunningGateway> {
  const folder = options.folder ?? t.testdir()
  mkdirSync(folder, { recursive: true })
  const file = join(folder, 'gateway.yaml')
  const rewrite = (text: string): void => {
    takeSecrets(text, options.env)
    writeFileSync(
      `${file}.new`,
      `listen: 127.0.0.1:${options.listenPort ?? 0}\nops: 127.0.0.1:${options.opsPort ?? 0}\n${text}${/^workers:/m.test(text) ? '' : WORKERS}`,
    )
    renameSync(`${file}.new`, file)
  }
  rewrite(yaml)
  const command = bare([...(options.wrap ?? []), process.execPath, programFile(), 'serve', '-c', file], options.env?.NODE_OPTIONS)
  const child = spawn(command[0] as string, command.slice(1), {
    env: { ...process.env, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const closed = once(child, 'close')
  let output = ''
  child.stdout.on('data', chunk => (output += chunk))
  child.stderr.on('data', chunk => (output += chunk))
  t.teardown(async () => {
    if (child.exitCode === null && child.signalCode === null) await scraped()
    child.kill('SIGKILL')
    // What traces it may outlive it, and hold its output open.
    await Promise.race([closed, sleep(1_000)])
    searchAll('its output', output)
    searchFiles(join(folder, 'data'))
    count()
  })
  const lines = (): { message?: string; address?: string; ops?: string }[] =>
    output
      .split('\n')
      .filter(line => line.startsWith('{') && line.endsWith('}'))
      .map(line => JSON.parse(line))
  const lineOf = async (message: string, skip = 0): Promise<{ address?: string; ops?: string }> => {
    for (;;) {
      const line = lines().filter(one => one.message?.startsWith(message) === true)[skip]
      if (line !== undefined) return line
      if (child.exitCode !== null || child.signalCode !== null)
        throw new Error(`the gateway ended with ${child.exitCode ?? child.signalCode}:\n${output}`)
      await new Promise(resolve => setTimeout(resolve, 5))
    }
  }
  const listening = await lineOf('listening')
  const url = listening.address as string
  const ops = listening.ops as string
  // At its end they have seen all that it did; a gateway that can not answer has none.
  const scraped = async (): Promise<void> => {
    const text = await fetch(`${ops}/metrics`, { signal: AbortSignal.timeout(2_000) }).then(
      response => response.text(),
      () => '',
    )
    searchAll('its metrics', text)
  }
  const ended = async (): Promise<number | null> => {
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    return child.exitCode
  }
  return {
    url,
    ops,
    folder,
    process: child,
    output: () => output,
    lines,
    get: async (path, headers = AUTH) => {
      const received = await answer(headers, fetch(path.startsWith('http') ? path : url + path, { headers }))
      if (!path.startsWith('http')) conform({ method: 'GET', path, body: received.text, ...received })
      return received
    },
    post: async (path, body, headers = AUTH) => {
      const raw = typeof body === 'string' || body instanceof Uint8Array
      const sent = { 'content-type': 'application/json', ...headers }
      const received = await answer(sent, fetch(url + path, { method: 'POST', headers: sent, body: raw ? body : JSON.stringify(body) }))
      conform({ method: 'POST', path, body: received.text, ...received, ...(raw ? {} : { asked: body }) })
      return received
    },
    stop: async (signal = 'SIGTERM') => {
      if (child.exitCode === null && child.signalCode === null) await scraped()
      child.kill(signal)
      return ended()
    },
    kill: async () => {
      child.kill('SIGKILL')
      await ended()
    },
    records: () => inspect(folder, ledger => ledger.records({})),
    rewrite,
    reload: async text => {
      const before = lines().filter(one => one.message?.startsWith('the config was') === true).length
      // Each change is told once: with a signal besides, the line of one reload would be taken for another's. What stays the same is changed, too.
      rewrite(`${text}\n# ${before}\n`)
      await lineOf('the config was', before)
    },
    line: lineOf,
  }
}

/** What the ledger of a gateway that has ended says: of a copy, so that the file stays as the gateway left it. */
export async function inspect<T>(folder: string, look: (ledger: SqliteLedger) => Promise<T>): Promise<T> {
  const copy = mkdtempSync(join(tmpdir(), 'ledger-'))
  try {
    for (const name of ['ledger.db', 'ledger.db-wal', 'ledger.db-mark']) {
      if (existsSync(join(folder, 'data', name))) copyFileSync(join(folder, 'data', name), join(copy, name))
    }
    const ledger = await openLedger({ path: join(copy, 'ledger.db'), durability: 'process', create: false })
    try {
      return await look(ledger)
    } finally {
      await ledger.close()
    }
  } finally {
    rmSync(copy, { recursive: true })
  }
}

async function answer(sent: Record<string, string>, pending: Promise<Response>): Promise<Answer> {
  takeSecret(/^Bearer (\S+)$/.exec(sent.authorization ?? '')?.[1])
  const response = await pending
  const text = await response.text()
  searchSecrets('an answer', `${JSON.stringify([...response.headers])}\n${text}`)
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    json = undefined
  }
  return { status: response.status, headers: response.headers, text, json }
}

/** A config with one key of generous ceilings on a model of a scripted provider. `more` is YAML that is added at the top level. */
export function yaml(
  providerUrl: string,
  { plan = '{}', budget = '{}', balance = 1_000_000_000, model = '', provider = '', more = '' } = {},
): string {
  return `
ledger: {path: data/ledger.db, durability: process}
providers:
  up: {kind: openai, base_url: "${providerUrl}", api_key: sk-upstream-secret, insecure: true${provider === '' ? '' : `, ${provider}`}}
models:
  up/m: {price: {input: 1000000, output: 2000000}, max_output_tokens: 4096, default_max_tokens: 100${model === '' ? '' : `, ${model}`}}
aliases: {default: up/m}
plans: {p: ${plan}}
accounts: {acme: {opening_balance_rial: ${balance}}}
keys:
  a: {account: acme, plan: p, secret: ${KEY}, budget: ${budget}}
${more}`
}

/** What `GET /metrics` says of one series; undefined where there is none. */
export async function metric(running: RunningGateway, series: string): Promise<number | undefined> {
  const { text } = await running.get(`${running.ops}/metrics`)
  const line = text.split('\n').find(one => one.startsWith(`${series} `))
  return line === undefined ? undefined : Number(line.slice(series.length + 1))
}

export function read(running: RunningGateway, path: string): string {
  return readFileSync(join(running.folder, path), 'utf8')
}

/** The processes that answer its requests, where there are several. */
export function workersOf({ process }: RunningGateway): number[] {
  const text = readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, 'utf8')
  return text.trim().split(/\s+/).map(Number)
}
