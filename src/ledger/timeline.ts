import type Database from 'better-sqlite3'
import { prefixOf, TIME_MAX, timeOf } from '../ids.js'

/** A range of ids; `from` is in it, `below` is not. */
export interface IdRange {
  readonly from: string
  readonly below: string
}

interface Row {
  readonly least: number
  readonly most: number
  readonly timed: 0 | 1
}

const ALL: IdRange = { from: '', below: '\u{10ffff}' }

/**
 * Turns a range of time into a range of ids, so that records need no index but their key. Ids begin with a time, which is the
 * record's own `at` but for a clock that was set back: the widest distances between the two are kept, and widen the range. Where
 * records have ids of another making, all of them are looked through.
 */
export class Timeline {
  readonly #update: Database.Statement<[number, number, number]>
  #least: number
  #most: number
  #timed: boolean
  #dirty = false

  constructor(db: Database.Database) {
    const row = db.prepare<[], Row>('SELECT least, most, timed FROM timeline').get()
    if (row === undefined) throw new Error('the table timeline is empty')
    this.#least = row.least
    this.#most = row.most
    this.#timed = row.timed === 1
    this.#update = db.prepare('UPDATE timeline SET least = ?, most = ?, timed = ?')
  }

  /** A record of this id and time is being written. */
  note(id: string, at: number): void {
    if (!this.#timed) return
    const time = timeOf(id)
    if (time === null) {
      this.#timed = false
      this.#dirty = true
      return
    }
    const distance = time - at
    if (distance >= this.#least && distance <= this.#most) return
    this.#least = Math.min(this.#least, distance)
    this.#most = Math.max(this.#most, distance)
    this.#dirty = true
  }

  /** Where all records from `since` (inclusive) to `until` (exclusive) are; others may be there too. */
  range(since: number, until: number): IdRange {
    if (!this.#timed) return ALL
    const below = until + this.#most
    return { from: prefixOf(since + this.#least), below: below > TIME_MAX ? ALL.below : prefixOf(below) }
  }

  flush(): void {
    if (!this.#dirty) return
    this.#update.run(this.#least, this.#most, this.#timed ? 1 : 0)
    this.#dirty = false
  }
}
