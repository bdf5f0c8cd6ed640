import type Database from 'better-sqlite3'
import { DamagedFile } from './file-errors.js'
import type { Amount, Counter } from './ledger.js'
import type { WindowKind } from './windows.js'

/** The most that a counter's posted and pending amounts may come to. */
export const AMOUNT_MAX: Amount = BigInt(Number.MAX_SAFE_INTEGER)

/** A counter in memory. What is here counts: a commit writes it down, and only a counter that is not here is read from the file. */
export interface Cell {
  /** 0 until a hold needs it. */
  id: number
  readonly key: string
  readonly counter: Omit<Counter, 'window'> & {
    readonly window: { readonly kind: WindowKind; readonly start: number; readonly end: number }
  }
  posted: Amount
  pending: Amount
  /** Open holds that refer to it: it must not be forgotten while there are any. */
  holds: number
  stored: boolean
  dirty: boolean
}

interface Row {
  readonly id: bigint
  readonly meter: string
  readonly subject: string
  readonly kind: WindowKind
  readonly start: bigint
  readonly until: bigint | null
  readonly posted: bigint
}

// About 300 bytes each.
const CELLS_MAX = 20_000

/** The counters that are in use, each found in the file at its first use. */
export class Cells {
  readonly #cells = new Map<string, Cell>()
  /** By subject: the cell that was last asked for of each meter and kind of window. Saves the making of a key for nearly all that is asked. */
  readonly #latest = new Map<string, Cell[]>()
  readonly #dirty: Cell[] = []
  readonly #select: Database.Statement<[string, string, string, number], Row>
  readonly #selectId: Database.Statement<[number], Row>
  readonly #insert: Database.Statement<[number, string, string, string, number, number | null, bigint]>
  readonly #update: Database.Statement<[bigint, number]>
  #lastId: number
  #max: number

  constructor(db: Database.Database, max: number = CELLS_MAX) {
    const columns = 'id, meter, subject, kind, start, until, posted'
    this.#select = db
      .prepare<[string, string, string, number], Row>(
        `SELECT ${columns} FROM counters WHERE meter = ? AND subject = ? AND kind = ? AND start = ?`,
      )
      .safeIntegers()
    this.#selectId = db.prepare<[number], Row>(`SELECT ${columns} FROM counters WHERE id = ?`).safeIntegers()
    this.#insert = db.prepare(`INSERT INTO counters (${columns}) VALUES (?, ?, ?, ?, ?, ?, ?)`)
    this.#update = db.prepare('UPDATE counters SET posted = ? WHERE id = ?')
    this.#lastId = db.prepare<[], number>('SELECT coalesce(max(id), 0) FROM counters').pluck().get() as number
    this.#max = max
  }

  /** The counter as it stands; one that nothing was ever counted in is 0. Throws a RangeError for one that the file could not hold. */
  find(counter: Counter): Cell {
    const { meter, subject, window } = counter
    const latest = this.#latest.get(subject) ?? []
    let place = 0
    for (; place < latest.length; place++) {
      const cell = latest[place] as Cell
      if (cell.counter.meter !== meter || cell.counter.window.kind !== window.kind) continue
      if (cell.counter.window.start === window.start) return cell
      break
    }
    const cell = this.#lookUp(counter)
    latest[place] = cell
    if (latest.length === 1) this.#latest.set(subject, latest)
    return cell
  }

  /** As `find`, for a look at one that may not be in use: it is not kept in memory for that. */
  look({ meter, subject, window }: Counter): Readonly<Pick<Cell, 'posted' | 'pending'>> {
    const key = keyOf(meter, subject, window.kind, window.start)
    return this.#cells.get(key) ?? this.#stored(key, { meter, subject, window })
  }

  #lookUp({ meter, subject, window }: Counter): Cell {
    const key = keyOf(meter, subject, window.kind, window.start)
    const known = this.#cells.get(key)
    if (known !== undefined) return known
    const cell = this.#stored(key, { meter, subject, window })
    this.#cells.set(key, cell)
    return cell
  }

  #stored(key: string, counter: Counter): Cell {
    check(counter)
    const { meter, subject, window } = counter
    const row = this.#select.get(meter, subject, window.kind, window.start)
    return row === undefined ? { id: 0, key, counter, posted: 0n, pending: 0n, holds: 0, stored: false, dirty: false } : fromRow(key, row)
  }

  /** A counter that a row of the file refers to. */
  byId(id: number): Cell {
    const row = this.#selectId.get(id)
    if (row === undefined) throw new DamagedFile(`counter ${id}, which an open hold refers to, is missing`)
    const key = keyOf(row.meter, row.subject, row.kind, row.start)
    const known = this.#cells.get(key)
    if (known !== undefined) return known
    const cell = fromRow(key, row)
    this.#cells.set(key, cell)
    return cell
  }

  /** The id by which the file knows a counter, from now on. */
  idOf(cell: Cell): number {
    if (cell.id === 0) cell.id = ++this.#lastId
    return cell.id
  }

  /** To be written with the next `flush`. */
  touch(cell: Cell): void {
    if (cell.dirty) return
    cell.dirty = true
    this.#dirty.push(cell)
  }

  /** Writes each counter that was touched, once. */
  flush(): void {
    for (const cell of this.#dirty) {
      if (cell.stored) {
        this.#update.run(cell.posted, cell.id)
      } else {
        const { meter, subject, window } = cell.counter
        this.#insert.run(cell.id, meter, subject, window.kind, window.start, Number.isFinite(window.end) ? window.end : null, cell.posted)
        cell.stored = true
      }
      cell.dirty = false
    }
    this.#dirty.length = 0
  }

  /** Between two batches: forgets counters, those of past windows first, when there are many. The file still has them. */
  tidy(now: number): void {
    if (this.#cells.size <= this.#max) return
    this.#latest.clear()
    const before = this.#cells.size
    this.#forget(cell => cell.counter.window.end <= now)
    if (this.#cells.size > before / 2) this.#forget(() => true)
    // What open holds keep is not looked through again at each batch.
    this.#max = Math.max(this.#max, this.#cells.size * 2)
  }

  /** A counter, if it is in memory. */
  peek(meter: string, subject: string, kind: WindowKind, start: number | bigint): Cell | undefined {
    return this.#cells.get(keyOf(meter, subject, kind, start))
  }

  /** All that are in memory. */
  all(): IterableIterator<Cell> {
    return this.#cells.values()
  }

  #forget(choose: (cell: Cell) => boolean): void {
    for (const [key, cell] of this.#cells) {
      if (cell.holds === 0 && !cell.dirty && choose(cell)) this.#cells.delete(key)
    }
  }
}

function keyOf(meter: string, subject: string, kind: WindowKind, start: number | bigint): string {
  // With its length, so that no meter and subject read like two others.
  return `${meter.length} ${meter} ${subject} ${kind} ${start}`
}

const KINDS: ReadonlySet<string> = new Set<WindowKind>(['minute', 'hour', 'day', 'month', 'all'])
/** SQLite keeps another character in its place. */
export const LONE_SURROGATE = /\p{Surrogate}/u

function check({ meter, subject, window }: Counter): void {
  const { kind, start, end } = window
  const lasting = end === Number.POSITIVE_INFINITY || Number.isSafeInteger(end)
  if (KINDS.has(kind) && Number.isSafeInteger(start) && lasting && end > start && !LONE_SURROGATE.test(meter + subject)) return
  throw new RangeError(`there can be no counter of ${meter} of ${subject} in the ${kind} from ${start} to ${end}`)
}

function fromRow(key: string, row: Row): Cell {
  // In a damaged file it may be anything. An operation that met it would throw, or worse, go on.
  if (typeof row.posted !== 'bigint' || row.posted < 0n || row.posted > AMOUNT_MAX)
    throw new DamagedFile(`counter ${row.id} has posted ${row.posted}`)
  const window = { kind: row.kind, start: Number(row.start), end: row.until === null ? Number.POSITIVE_INFINITY : Number(row.until) }
  const counter = { meter: row.meter, subject: row.subject, window }
  return { id: Number(row.id), key, counter, posted: row.posted, pending: 0n, holds: 0, stored: true, dirty: false }
}
