import { parseMoment } from '../config/dates.js'
import type { SqliteLedger } from '../ledger/sqlite.js'
import type { UsageFilter, UsageRow } from '../ledger/usage.js'
import type { Runtime } from '../runtime.js'

/** What was used by one key, model or day; `null`: by requests without a key. Rial. */
export interface SpendRow {
  readonly name: string | null
  readonly requests: number
  readonly failed: number
  readonly input: bigint
  readonly output: bigint
  readonly rial: bigint
}

export interface Spend {
  /** Days of the configured zone, both included. */
  readonly from: string
  readonly to: string
  readonly key: string | null
  readonly model: string | null
  /** Every day of the range, in order. */
  readonly days: readonly SpendRow[]
  /** The most expensive first, at most 100; the sums are over all of them. */
  readonly keys: readonly SpendRow[]
  readonly key_count: number
  readonly models: readonly SpendRow[]
  readonly model_count: number
  readonly total: Omit<SpendRow, 'name'>
}

export interface SpendQuery {
  readonly from: string
  readonly to: string
  readonly key: string | null
  readonly model: string | null
}

/** What was asked for can not be: the message says why. */
export class QueryError extends Error {
  override readonly name = 'QueryError'
}

const DAY_MS = 86_400_000
const DAYS_MAX = 400
const ROWS = 100
const KEPT = 16
/** An answer is given again for this long; a long one, for 20 times as long as it took to make. Milliseconds. */
const FRESH_MS = 3000

/**
 * Sums of the ledger for the page. One is made at a time, in pieces between which requests go on, and it is given to all who ask for the same
 * meanwhile and shortly after: whoever looks at the page does not slow the gateway down by looking often.
 */
export class Spending {
  readonly #ledger: Pick<SqliteLedger, 'usage'>
  readonly #known = new Map<string, { readonly spend: Promise<Spend>; until: number }>()
  #last: Promise<unknown> = Promise.resolve()

  constructor(ledger: Pick<SqliteLedger, 'usage'>) {
    this.#ledger = ledger
  }

  /** `now`: of a monotonic clock, in milliseconds. Rejects with a QueryError for a range that is none. */
  async of(query: SpendQuery, runtime: Pick<Runtime, 'config'>, now: () => number): Promise<Spend> {
    const { timezone } = runtime.config
    const range = rangeOf(query, timezone)
    const id = JSON.stringify([query.from, query.to, query.key, query.model, timezone])
    const known = this.#known.get(id)
    if (known !== undefined && now() < known.until) return known.spend
    let began = 0
    const spend = this.#last.then(() => {
      began = now()
      return this.#make(query, range, timezone)
    })
    const kept = { spend, until: Number.POSITIVE_INFINITY }
    this.#known.delete(id)
    this.#known.set(id, kept)
    if (this.#known.size > KEPT) this.#known.delete(this.#known.keys().next().value as string)
    const over = (): void => {
      kept.until = now() + Math.max(FRESH_MS, 20 * (now() - began))
    }
    this.#last = spend.then(over, () => this.#known.delete(id))
    return spend
  }

  async #make({ from, to, key, model }: SpendQuery, { since, until, days }: Range, timezone: string): Promise<Spend> {
    const filter: UsageFilter = { since, until, ...(key === null ? {} : { key }), ...(model === null ? {} : { model }) }
    const sums = (by: 'day' | 'key' | 'model') => this.#ledger.usage({ ...filter, by: [by], timezone, calendar: 'gregorian' })
    const byDay = new Map((await sums('day')).map(row => [row.group.day ?? '', rowOf(row, row.group.day ?? null)]))
    const keys = (await sums('key')).map(row => rowOf(row, row.group.key ?? null))
    const models = (await sums('model')).map(row => rowOf(row, row.group.model ?? null))
    const all = days.map(day => byDay.get(day) ?? { ...NOTHING, name: day })
    const dearest = (rows: SpendRow[]): SpendRow[] => rows.sort((a, b) => Number(b.rial - a.rial)).slice(0, ROWS)
    const total = all.reduce(plus, NOTHING)
    return {
      from,
      to,
      key,
      model,
      days: all,
      keys: dearest(keys),
      key_count: keys.length,
      models: dearest(models),
      model_count: models.length,
      total: { requests: total.requests, failed: total.failed, input: total.input, output: total.output, rial: total.rial },
    }
  }
}

interface Range {
  readonly since: number
  readonly until: number
  readonly days: readonly string[]
}

function rangeOf({ from, to }: SpendQuery, timezone: string): Range {
  const days: string[] = []
  for (const day of [from, to]) {
    if (!/^\d{4}-\d{2}-\d{2}$/.test(day) || parseMoment(day, 'UTC') === null)
      throw new QueryError(`${JSON.stringify(day)} is no day: write 2026-07-28`)
  }
  const last = Date.parse(to)
  for (let at = Date.parse(from); at <= last && days.length <= DAYS_MAX; at += DAY_MS) days.push(new Date(at).toISOString().slice(0, 10))
  if (days.length === 0) throw new QueryError('the first day is after the last')
  if (days.length > DAYS_MAX) throw new QueryError(`that is more than ${DAYS_MAX} days`)
  const next = new Date(last + DAY_MS).toISOString().slice(0, 10)
  return { since: parseMoment(from, timezone) as number, until: parseMoment(next, timezone) as number, days }
}

const NOTHING: SpendRow = { name: null, requests: 0, failed: 0, input: 0n, output: 0n, rial: 0n }

function plus(a: SpendRow, b: SpendRow): SpendRow {
  return {
    name: null,
    requests: a.requests + b.requests,
    failed: a.failed + b.failed,
    input: a.input + b.input,
    output: a.output + b.output,
    rial: a.rial + b.rial,
  }
}

function rowOf({ requests, failed, input_tokens, output_tokens, cost_rial }: UsageRow, name: string | null): SpendRow {
  return { name, requests, failed, input: input_tokens, output: output_tokens, rial: cost_rial }
}
