import type Database from 'better-sqlite3'
import type { DailySums } from './daily-sums.js'
import type { Amount, RecordQuery, UsageRecord } from './ledger.js'
import type { Records } from './records.js'
import type { Timeline } from './timeline.js'
import { AMOUNTS, COUNTS, SLOT, usageSql } from './usage-sql.js'
import { windows } from './windows.js'
import { isoTime, zone } from './zone.js'

/** What usage may be summed up by. `provider` is the one that answered last; `day` and `month` are those of the configured zone. */
export const DIMENSIONS = ['key', 'account', 'plan', 'model', 'provider', 'surface', 'day', 'month'] as const
export type Dimension = (typeof DIMENSIONS)[number]

/** Which ended records; as with a `RecordQuery`. Those of open holds are never among them. */
export type UsageFilter = Pick<RecordQuery, 'key' | 'account' | 'model' | 'since' | 'until'>

export interface UsageQuery extends UsageFilter {
  /** One row for each combination that occurs; with none, one row in all, or no row where there is no record. */
  readonly by: readonly Dimension[]
  readonly timezone: string
  readonly calendar: 'gregorian' | 'persian'
}

/** The sums of one group. */
export interface UsageRow {
  /** The values of the dimensions asked for, in that order. `day` is `2026-07-28`, `month` is `2026-07` (or `1405-05`); `null`: it had none. */
  readonly group: { readonly [name in Dimension]?: string | null }
  /** All that were admitted and have ended. */
  readonly requests: number
  /** Of these: broke off after some output. Charged. */
  readonly partial: number
  /** Of these: voided or recovered. Cost nothing. */
  readonly failed: number
  /** Of these: charged by an estimate, since no usage was reported. */
  readonly estimated: number
  readonly input_tokens: Amount
  readonly cached_input_tokens: Amount
  readonly output_tokens: Amount
  readonly reasoning_tokens: Amount
  readonly cost_rial: Amount
  /** What of `cost_rial` was above the holds. */
  readonly overrun_rial: Amount
}

/** A ledger's reports on ended records, made while others go on. Memory grows with the groups, or with a page; never with the records. */
export interface UsageReports {
  /**
   * Sums by group, in the order of their groups. A request that ends while they are made may be in them or not. Of records that are gone
   * (see `summedBefore`), a day's sum counts as a whole, where its noon is. Rejects with an Error that names a zone which does not exist.
   */
  usage(query: UsageQuery): Promise<UsageRow[]>
  /** Of records that were admitted before this moment, some or all are gone, and their sums by day are left. `null`: all records are there. */
  summedBefore(): Promise<number | null>
  /** Ended records in the order of their ids, some at a time: the next ones are read when they are asked for. */
  pages(query: UsageFilter): AsyncGenerator<UsageRecord[]>
}

/** The ledger's file as reports read it, a chunk per turn of the event loop. `turn` throws when the ledger can no longer be read. */
export interface RecordSource {
  readonly db: Database.Database
  readonly records: Records
  readonly timeline: Timeline
  readonly sums: DailySums
  turn(): Promise<void>
}

// 1,000 rows are summed up in 1 to 2 ms, and 100 made into records: as long as a request under way is kept waiting.
const SUMMED_PER_TURN = 1000
const RECORDS_PER_PAGE = 100

type Sums = Omit<Writable<UsageRow>, 'group'>
type Writable<T> = { -readonly [Field in keyof T]: T[Field] }
type Row = Readonly<Record<string, string | bigint | null>>

/** See `UsageReports`. */
export async function sumUsage(source: RecordSource, query: UsageQuery): Promise<UsageRow[]> {
  const period = periods(query.timezone, query.calendar)
  const columns: string[] = query.by.filter(name => !isPeriod(name))
  if (query.by.some(isPeriod)) columns.push('slot')
  const chunk = source.db.prepare<[Readonly<Record<string, string | number | null>>], Row>(usageSql(columns)).safeIntegers()
  const { key = null, account = null, model = null, since = 0, until = Number.MAX_SAFE_INTEGER } = query
  const groups = new Map<string, { readonly group: UsageRow['group']; readonly sums: Sums }>()
  const put = (row: Row, at: () => number): void => {
    const values = query.by.map(name => (isPeriod(name) ? period[name](at()) : ((row[name] ?? null) as string | null)))
    const id = JSON.stringify(values)
    let found = groups.get(id)
    if (found === undefined) {
      found = { group: Object.fromEntries(query.by.map((name, i) => [name, values[i]])), sums: nothing() }
      groups.set(id, found)
    }
    add(found.sums, row)
  }
  for await (const { from, below } of chunks(source, query, SUMMED_PER_TURN)) {
    for (const row of chunk.all({ from, below, since, until, key, account, model })) put(row, () => Number(row.slot) * SLOT)
  }
  for (const rows of source.sums.chunks({ since, until, key, account, model }, SUMMED_PER_TURN)) {
    for (const row of rows) put(row, () => Math.floor(Number(row.at) / SLOT) * SLOT)
    await source.turn()
  }
  return [...groups.values()].map(({ group, sums }) => ({ group, ...sums })).sort((a, b) => order(query.by, a.group, b.group))
}

/** See `UsageReports`. */
export async function* recordPages(source: RecordSource, query: UsageFilter): AsyncGenerator<UsageRecord[]> {
  for await (const range of chunks(source, query, RECORDS_PER_PAGE)) {
    const page = source.records.chunk(range, query)
    if (page.length > 0) yield page
  }
}

/** Ranges of ids that hold what a query asks for, each of a bounded number of records; one turn of the event loop for each. */
async function* chunks(
  { records, timeline, turn }: RecordSource,
  { since = 0, until = Number.POSITIVE_INFINITY }: UsageFilter,
  size: number,
) {
  await turn()
  const range = timeline.range(since, until)
  for (let from: string | undefined = range.from; from !== undefined; ) {
    const next = records.chunkEnd({ from, below: range.below }, size)
    yield { from, below: next ?? range.below }
    from = next
    if (from !== undefined) await turn()
  }
}

function nothing(): Sums {
  const counts = { requests: 0, partial: 0, failed: 0, estimated: 0 }
  const tokens = { input_tokens: 0n, cached_input_tokens: 0n, output_tokens: 0n, reasoning_tokens: 0n }
  return { ...counts, ...tokens, cost_rial: 0n, overrun_rial: 0n }
}

function add(sums: Sums, row: Row): void {
  for (const name of Object.keys(COUNTS) as (keyof typeof COUNTS)[]) sums[name] += Number(row[name])
  for (const name of AMOUNTS) sums[name] += row[name] as bigint
}

function order(by: readonly Dimension[], a: UsageRow['group'], b: UsageRow['group']): number {
  for (const name of by) {
    const one = a[name] ?? ''
    const other = b[name] ?? ''
    if (one !== other) return one < other ? -1 : 1
  }
  return 0
}

type Period = 'day' | 'month'

function isPeriod(name: Dimension): name is Period {
  return name === 'day' || name === 'month'
}

/** Names of the days and months that moments fall into. Throws an Error that names a zone which does not exist. */
function periods(timezone: string, calendar: 'gregorian' | 'persian'): { readonly [name in Period]: (at: number) => string } {
  const place = zone(timezone)
  const window = windows(timezone, calendar)
  const named = (kind: Period, name: (start: number) => string) => {
    // Groups come sorted by other columns first, so times jump; finding a window anew takes 0.3 ms. 35,000 quarters of an hour are a year.
    const known = new Map<number, string>()
    return (at: number) => {
      let label = known.get(at)
      if (label === undefined) {
        label = name(window(kind, at).start)
        known.set(at, label)
      }
      return label
    }
  }
  const persian = new Intl.DateTimeFormat('en-US', {
    timeZone: timezone,
    calendar: 'persian',
    numberingSystem: 'latn',
    year: 'numeric',
    month: 'numeric',
  })
  const persianMonth = (start: number) => {
    const field = Object.fromEntries(persian.formatToParts(start).map(({ type, value }) => [type, value]))
    return `${field.year?.padStart(4, '0')}-${field.month?.padStart(2, '0')}`
  }
  return {
    day: named('day', start => isoTime(start, place).slice(0, 10)),
    month: named('month', start => (calendar === 'persian' ? persianMonth(start) : isoTime(start, place).slice(0, 7))),
  }
}
