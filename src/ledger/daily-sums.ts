import type Database from 'better-sqlite3'
import { DamagedFile } from './file-errors.js'
import type { PostedEntry } from './records.js'
import type { IdRange } from './timeline.js'
import { FIGURES, usageSql } from './usage-sql.js'
import type { Window } from './windows.js'

/** What a daily sum keeps apart; with `day`, all that usage may be summed up by. */
const KEPT = ['key', 'account', 'plan', 'model', 'provider', 'surface'] as const

type Row = Readonly<Record<string, string | bigint | null>>
type Value = string | number | bigint | null

/** Finds the day that a moment falls into. */
export type DayOf = (at: number) => Window

/** The sums that are left of usage records which were let go of: by day for reports, and by counter for the proof that no counter has changed. */
export class DailySums {
  readonly #db: Database.Database
  readonly #first: Database.Statement<[Readonly<Record<string, Value>>], number | null>
  readonly #sum: Database.Statement<[Readonly<Record<string, Value>>], Row>
  readonly #posted: Database.Statement<[Readonly<Record<string, Value>>], string>
  readonly #delete: Database.Statement<[Readonly<Record<string, Value>>]>
  readonly #update: Database.Statement<[Readonly<Record<string, Value>>]>
  readonly #insert: Database.Statement<[Readonly<Record<string, Value>>]>
  readonly #count: Database.Statement<[number, bigint]>
  readonly #counted: Database.Statement<[number, number], [bigint, bigint]>
  readonly #chunk: Database.Statement<[Readonly<Record<string, Value>>], Row>
  readonly #last: Database.Statement<[], { readonly id: number | null; readonly until: number | null }>

  constructor(db: Database.Database) {
    this.#db = db
    const range = 'id >= @from AND id < @below AND at >= @since AND at < @until'
    this.#first = db.prepare<[Readonly<Record<string, Value>>], number | null>(`SELECT min(at) FROM records WHERE ${range}`).pluck()
    this.#sum = db.prepare<[Readonly<Record<string, Value>>], Row>(usageSql(KEPT)).safeIntegers()
    this.#posted = db.prepare<[Readonly<Record<string, Value>>], string>(`SELECT posted FROM records WHERE ${range}`).pluck()
    this.#delete = db.prepare(`DELETE FROM records WHERE ${range}`)
    this.#update = db.prepare(
      `UPDATE daily_sums SET ${FIGURES.map(name => `${name} = ${name} + @${name}`).join(', ')}
        WHERE day = @day AND ${KEPT.map(name => `${name} IS @${name}`).join(' AND ')}`,
    )
    const columns = ['day', 'until', ...KEPT, ...FIGURES]
    this.#insert = db.prepare(`INSERT INTO daily_sums (${columns.join(', ')}) VALUES (${columns.map(name => `@${name}`).join(', ')})`)
    this.#count = db.prepare(
      'INSERT INTO pruned_counters (id, posted) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET posted = posted + excluded.posted',
    )
    this.#counted = db
      .prepare<[number, number], [bigint, bigint]>('SELECT id, posted FROM pruned_counters WHERE id > ? ORDER BY id LIMIT ?')
      .raw()
      .safeIntegers()
    this.#chunk = db
      .prepare<[Readonly<Record<string, Value>>], Row>(
        `SELECT (day + until) / 2 AS at, ${[...KEPT, ...FIGURES].join(', ')} FROM daily_sums
          WHERE id > @after AND id <= @to AND (day + until) / 2 >= @since AND (day + until) / 2 < @until
          AND (@key IS NULL OR key = @key) AND (@account IS NULL OR account = @account) AND (@model IS NULL OR model = @model)`,
      )
      .safeIntegers()
    this.#last = db.prepare('SELECT max(id) AS id, max(until) AS until FROM daily_sums')
  }

  /** The end of the latest day that has sums: what was admitted before may be known by its day alone. `null`: there are none. */
  get before(): number | null {
    return this.#last.get()?.until ?? null
  }

  /** The records of a range of ids that were admitted before a moment give way to their sums. Gives their number. All of it, or it throws and nothing is changed. */
  take(range: IdRange, before: number, dayOf: DayOf): number {
    this.#db.exec('SAVEPOINT pruning')
    try {
      const taken = this.#take(range, before, dayOf)
      this.#db.exec('RELEASE pruning')
      return taken
    } catch (error) {
      // Where the disk has failed there is nothing left to go back to.
      if (this.#db.inTransaction) this.#db.exec('ROLLBACK TO pruning; RELEASE pruning')
      throw error
    }
  }

  #take(range: IdRange, before: number, dayOf: DayOf): number {
    const all = { ...range, since: 0, until: before }
    const counters = new Map<number, bigint>()
    for (const json of this.#posted.all(all)) {
      for (const [counter, amount] of JSON.parse(json) as [number, number][])
        counters.set(counter, (counters.get(counter) ?? 0n) + BigInt(amount))
    }
    for (const [counter, amount] of counters) this.#count.run(counter, amount)
    for (let since = 0; ; ) {
      const first = this.#first.get({ ...all, since })
      if (first === null || first === undefined) break
      const { start, end } = dayOf(first)
      if (!(end > start)) throw new RangeError(`there is no day from ${start} to ${end}`)
      const until = Math.min(end, before)
      for (const row of this.#sum.all({ ...range, since, until, key: null, account: null, model: null })) {
        const sum = { ...row, day: start, until: end }
        if (this.#update.run(sum).changes === 0) this.#insert.run(sum)
      }
      since = until
    }
    return this.#delete.run(all).changes
  }

  /** What was posted on counters by records that are gone: at most `size` of them, by the counter's id. Throws a DamagedFile where that is no amount. */
  posted(after: number, size: number): PostedEntry[] {
    return this.#counted.all(after, size).map(([id, amount]) => {
      if (typeof amount !== 'bigint') throw new DamagedFile(`pruned records have posted ${amount} on counter ${id}`)
      return [Number(id), amount]
    })
  }

  /** Sums of days whose noon is in the time asked for, some at a time. `at` is that noon. */
  *chunks(query: Readonly<Record<'since' | 'until' | 'key' | 'account' | 'model', Value>>, size: number): Generator<Row[]> {
    const last = this.#last.get()?.id ?? 0
    for (let after = 0; after < last; after += size) yield this.#chunk.all({ ...query, after, to: after + size })
  }
}
