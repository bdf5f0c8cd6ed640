import type { Key } from '../config/config.js'
import { keyRequests, keyRial, keyTokens } from '../ledger/counters.js'
import type { Counter, Ledger, Reading } from '../ledger/ledger.js'
import type { Window, WindowKind } from '../ledger/windows.js'
import type { Runtime } from '../runtime.js'

/** One ceiling of a key, and where its counter stands. `null`: no ceiling. */
export interface Gauge {
  /** As gateway.yaml calls it. */
  readonly name: string
  readonly meter: string
  readonly window: WindowKind
  /** Milliseconds since the epoch. */
  readonly ends: number
  readonly posted: bigint
  readonly held: bigint
  readonly ceiling: bigint | null
}

export interface KeyLimits {
  readonly key: string
  readonly plan: string
  readonly account: string | null
  readonly disabled: boolean
  readonly expires: number | null
  readonly gauges: readonly Gauge[]
}

/** Rial. `available` = credited − posted − held. */
export interface WalletGauge {
  readonly account: string
  readonly credited: bigint
  readonly posted: bigint
  readonly held: bigint
}

export interface HoldRow {
  readonly id: string
  readonly at: number
  readonly key: string | null
  readonly model: string
  readonly rial: bigint
  readonly tokens: number
}

export interface Limits {
  readonly now: number
  /** The fullest first. */
  readonly keys: readonly KeyLimits[]
  /** How many there are that match, shown or not. */
  readonly key_count: number
  /** The least that is left first. */
  readonly wallets: readonly WalletGauge[]
  readonly wallet_count: number
  /** Oldest first. */
  readonly holds: readonly HoldRow[]
  readonly hold_count: number
}

/** Keys whose counters are read for one answer, and how many of them in one turn of the event loop: 50 keys take some 0.2 ms. */
const READ_MAX = 500
const READ_PER_TURN = 50
const SHOWN = 60
const HOLDS = 50

/** Where the ceilings stand of the keys, and the wallets, whose names contain `search`. */
export async function limits({ config, windows }: Runtime, ledger: Ledger, search: string, now: number): Promise<Limits> {
  const found = [...config.keys.values()].filter(({ name }) => name.includes(search))
  const keys: KeyLimits[] = []
  for (let i = 0; i < Math.min(found.length, READ_MAX); i += READ_PER_TURN) {
    keys.push(...(await read(found.slice(i, Math.min(i + READ_PER_TURN, READ_MAX)), kind => windows(kind, now), ledger)))
  }
  const names = [...config.accounts.keys()].filter(name => name.includes(search))
  const wallets = await Promise.all(names.slice(0, READ_MAX).map(name => ledger.wallet(name)))
  const holds = await ledger.open()
  return {
    now,
    keys: keys.sort((a, b) => fullest(b) - fullest(a)).slice(0, SHOWN),
    key_count: found.length,
    wallets: wallets
      .map(({ account, credited, posted, pending }) => ({ account, credited, posted, held: pending }))
      .sort((a, b) => compare(a.credited - a.posted - a.held, b.credited - b.posted - b.held))
      .slice(0, SHOWN),
    wallet_count: names.length,
    holds: holds.slice(0, HOLDS).map(({ id, at, record }) => {
      return { id, at, key: record.key, model: record.model, rial: record.held_rial, tokens: record.held_tokens }
    }),
    hold_count: holds.length,
  }
}

async function read(keys: readonly Key[], window: (kind: WindowKind) => Window, ledger: Ledger): Promise<KeyLimits[]> {
  const rows = keys.map(key => ceilingsOf(key, window))
  const readings = await ledger.read(rows.flat().map(({ counter }) => counter))
  let next = 0
  return keys.map(({ name, plan, account, disabled, expires }, i) => ({
    key: name,
    plan: plan.name,
    account,
    disabled,
    expires,
    gauges: (rows[i] as Row[]).map(({ name, counter, ceiling }) => {
      const { posted, pending } = readings[next++] as Reading
      const { kind, end } = counter.window
      return { name, meter: counter.meter, window: kind, ends: end, posted, held: pending, ceiling }
    }),
  }))
}

interface Row {
  readonly name: string
  readonly counter: Counter
  readonly ceiling: bigint | null
}

function ceilingsOf({ name, plan, budget }: Key, window: (kind: WindowKind) => Window): Row[] {
  const [minute, hour, day, month] = [window('minute'), window('hour'), window('day'), window('month')]
  return [
    { name: 'requests_per_minute', counter: keyRequests(name, minute), ceiling: plan.requests_per_minute },
    { name: 'requests_per_hour', counter: keyRequests(name, hour), ceiling: plan.requests_per_hour },
    { name: 'requests_per_day', counter: keyRequests(name, day), ceiling: plan.requests_per_day },
    { name: 'tokens_per_minute', counter: keyTokens(name, minute), ceiling: plan.tokens_per_minute },
    { name: 'daily_tokens', counter: keyTokens(name, day), ceiling: budget.daily_tokens },
    { name: 'daily_rial', counter: keyRial(name, day), ceiling: budget.daily_rial },
    { name: 'monthly_rial', counter: keyRial(name, month), ceiling: budget.monthly_rial },
  ]
}

/** The part of its fullest ceiling that a key has used: to sort by, not to decide by. */
function fullest({ gauges }: KeyLimits): number {
  const parts = gauges.map(({ posted, held, ceiling }) => {
    if (ceiling === null) return 0
    return ceiling === 0n ? 1 : Number(posted + held) / Number(ceiling)
  })
  return Math.max(...parts)
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0
}
