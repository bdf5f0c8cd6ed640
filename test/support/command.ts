import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { main } from '../../src/cli.js'
import { requestIds, ulids } from '../../src/ids.js'
import { accountRial, keyRial } from '../../src/ledger/counters.js'
import type { AdmissionRecord, EndingRecord } from '../../src/ledger/ledger.js'
import { openLedger, type SqliteLedger } from '../../src/ledger/sqlite.js'
import { windows } from '../../src/ledger/windows.js'
import { searchSecrets, takeSecrets } from './canaries.js'

export interface Ran {
  readonly code: number
  readonly out: string
  readonly err: string
}

/** Runs the command line in this process, as if in `cwd`. */
export async function run(cwd: string, ...args: string[]): Promise<Ran> {
  let out = ''
  let err = ''
  const io = {
    stdout: (text: string) => {
      out += text
    },
    stderr: (text: string) => {
      err += text
    },
    env: {},
    cwd,
  }
  const code = await main(args, io)
  searchSecrets('the command line', out + err)
  return { code, out, err }
}

export const SECRET = 'mgk_secret_of_key_a_0123456789'

export const YAML = `
ledger: {path: data/ledger.db, durability: process}
providers: {sandbox: {kind: sandbox}}
models:
  sandbox/echo: {price: {input: 20000, output: 60000}, max_output_tokens: 4096, default_max_tokens: 512}
aliases: {default: sandbox/echo}
plans: {free: {requests_per_minute: 10}, unlimited: {}}
accounts: {acme: {}, beta: {}}
keys:
  a: {account: acme, plan: free, secret: ${SECRET}, budget: {daily_tokens: 200000, monthly_rial: 5000000}, models: [default]}
  b: {account: beta, plan: unlimited, sha256: ${'0123456789abcdef'.repeat(4)}, disabled: true}
  c: {account: acme, plan: unlimited, sha256: ${'fedcba9876543210'.repeat(4)}, expires: 2020-01-01}
`

/** A folder with a gateway.yaml, and what `fill` puts into its ledger. */
export async function place(t: { testdir(): string }, fill?: (ledger: SqliteLedger) => Promise<unknown>, yaml = YAML): Promise<string> {
  const folder = t.testdir()
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'gateway.yaml'), yaml)
  takeSecrets(yaml)
  if (fill !== undefined) await withLedger(folder, fill)
  return folder
}

export async function withLedger<Result>(folder: string, work: (ledger: SqliteLedger) => Promise<Result>): Promise<Result> {
  const ledger = await openLedger({ path: join(folder, 'data', 'ledger.db'), durability: 'process', create: true })
  try {
    return await work(ledger)
  } finally {
    await ledger.close()
  }
}

export interface Request {
  readonly at: number
  readonly key?: string
  readonly account?: string
  readonly model?: string
  readonly rial?: bigint
  readonly input?: number
  readonly output?: number
  /** `held`: it stays open. */
  readonly state?: 'settled' | 'partial' | 'voided' | 'held'
}

const newId = requestIds(ulids())
const find = windows('Asia/Tehran', 'gregorian')

/** One request, from its hold to its end, under no ceiling. Resolves with its id. */
export async function request(ledger: SqliteLedger, asked: Request): Promise<string> {
  const { at, key = 'a', account = 'acme', model = 'sandbox/echo', rial = 10n, input = 100, output = 20, state = 'settled' } = asked
  const id = newId(at)
  const amount = { amount: rial, ceiling: null, code: 'none' }
  const claims = [
    { counter: keyRial(key, find('day', at)), ...amount },
    { counter: accountRial(account), ...amount },
  ]
  const admitted = await ledger.hold({ id, at, claims, record: admission({ key, account, model, held_rial: rial }) })
  if (!admitted.admitted) throw new Error('not admitted')
  if (state === 'voided') await ledger.void(id, ending(at, { cost_rial: 0n, input_tokens: 0, output_tokens: 0 }))
  else if (state !== 'held') {
    const record = ending(at, { cost_rial: rial, input_tokens: input, output_tokens: output })
    await ledger.settle(id, { state, actual: { rial }, record })
  }
  return id
}

function admission(over: Partial<AdmissionRecord>): AdmissionRecord {
  return {
    key: null,
    account: null,
    plan: 'free',
    surface: 'chat',
    model: 'sandbox/echo',
    provider: 'sandbox',
    stream: false,
    client_request_id: null,
    trace_id: null,
    held_tokens: 120,
    held_rial: 0n,
    price: '{"input":20000}',
    ...over,
  }
}

function ending(at: number, over: Partial<EndingRecord>): EndingRecord {
  return {
    ended_at: at + 5,
    ended_by: 'provider',
    usage_source: 'provider',
    input_tokens: 0,
    cached_input_tokens: 0,
    output_tokens: 0,
    reasoning_tokens: 0,
    cost_rial: 0n,
    overrun_rial: 0n,
    status: 200,
    code: null,
    provider: 'sandbox',
    price: '{"input":20000}',
    upstream_request_id: null,
    attempts: '[]',
    ttft_ms: null,
    duration_ms: 5,
    ...over,
  }
}
