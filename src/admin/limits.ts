import type { Key } from '../config/config.js'
import { keyRequests, keyRial, keyTokens } from '../ledger/counters.js'
import type { Counter } from '../ledger/ledger.js'
import type { Look } from '../ledger/reports.js'
import type { SqliteLedger } from '../ledger/sqlite.js'
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
  /** The fullest of all that match, the fullest first. */
  readonly keys: readonly KeyLimits[]
  /** How many there are that match, shown or not. */
  readonly key_count: number
  /** Of all that match those with the least left, the least first. */
  readonly wallets: readonly WalletGauge[]
  readonly wallet_count: number
  /** Oldest first. */
  readonly holds: readonly HoldRow[]
  readonly hold_count: number
}

const SHOWN = 60
const HOLDS = 50

/** Where the ceilings stand of the keys, and the wallets, whose names contain `search`. All of them are looked at for it, since any may be the fullest. */
export async function limits(
  { config, windows }: Runtime,
  ledger: Pick<SqliteLedger, 'survey' | 'open'>,
  search: string,
  now: number,
): Promise<Limits> {
  const window = (kind: WindowKind): Window => windows(kind, now)
  const found = [...config.keys.values()].filter(({ name }) => name.includes(search))
  const ranked = await ledger.survey(found, (key, look) => ({ key, part: fullest(key, window, look) }))
  const shown = ranked.sort((a, b) => b.part - a.part).slice(0, SHOWN)
  const keys = await ledger.survey(shown, ({ key }, look) => limitsOf(key, window, look))
  const names = [...config.accounts.keys()].filter(name => name.includes(search))
  const wallets = await ledger.survey(names, (name, look): WalletGauge => {
    const { account, credited, posted, pending } = look.wallet(name)
    return { account, credited, posted, held: pending }
  })
  const holds = await ledger.open()
  return {
    now,
    keys,
    key_count: found.length,
    wallets: wallets.sort((a, b) => compare(a.credited - a.posted - a.held, b.credited - b.posted - b.held)).slice(0, SHOWN),
    wallet_count: names.length,
    holds: holds.slice(0, HOLDS).map(({ id, at, record }) => {
      return { id, at, key: record.key, model: record.model, rial: record.held_rial, tokens: record.held_tokens }
    }),
    hold_count: holds.length,
  }
}

function limitsOf(key: Key, window: (kind: WindowKind) => Window, look: Look): KeyLimits {
  const { name, plan, account, disabled, expires } = key
  const gauges = ceilingsOf(key, window).map(({ name, counter, ceiling }): Gauge => {
    const { posted, pending } = look.reading(counter)
    const { kind, end } = counter.window
    return { name, meter: counter.meter, window: kind, ends: end, posted, held: pending, ceiling }
  })
  return { key: name, plan: plan.name, account, disabled, expires, gauges }
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

/** The part of its fullest ceiling that a key has used: to sort by, not to decide by. What has no ceiling is not looked at. */
function fullest(key: Key, window: (kind: WindowKind) => Window, look: Look): number {
  let most = 0
  for (const { counter, ceiling } of ceilingsOf(key, window)) {
    if (ceiling === null) continue
    const { posted, pending } = look.reading(counter)
    most = Math.max(most, ceiling === 0n ? 1 : Number(posted + pending) / Number(ceiling))
  }
  return most
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0
}
