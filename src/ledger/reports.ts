import type Database from 'better-sqlite3'
import type { Batches } from './batch.js'
import type { Cells } from './cells.js'
import { accountRial } from './counters.js'
import type { DailySums } from './daily-sums.js'
import type { Counter, Credit, Difference, OpenHold, Reading, RecordQuery, UsageRecord, Wallet } from './ledger.js'
import { reading } from './parts.js'
import { asked, heldRecord, type PostedEntry, type Records } from './records.js'
import type { Pruned, Pruning } from './retention.js'
import type { Timeline } from './timeline.js'
import { type RecordSource, recordPages, sumUsage, type UsageFilter, type UsageQuery, type UsageRow } from './usage.js'
import { Verification } from './verify.js'
import type { Wallets } from './wallets.js'

// At most 3 ms: a record takes up to 15 µs to read.
const RECORDS_PER_TURN = 200
// At most 3 ms.
const PRUNED_AT_ONCE = 100
// At most 2 ms: a counter that is not in memory takes 3 µs.
const LOOKS_PER_TURN = 500

export interface ReportParts {
  readonly db: Database.Database
  readonly batches: Batches
  readonly cells: Cells
  readonly records: Records
  readonly sums: DailySums
  readonly timeline: Timeline
  readonly wallets: Wallets
  /** The oldest first. */
  readonly openHolds: () => OpenHold[]
}

/** Counters and wallets as they are at this moment. */
export interface Look {
  reading(counter: Counter): Reading
  wallet(account: string): Wallet
}

/** What takes as long as the ledger is, or as what is asked of it: done in turns of some milliseconds, while it goes on. */
export class Reports {
  readonly #parts: ReportParts
  readonly #source: RecordSource
  readonly #verifications = new Set<Verification>()
  #summing = 0

  constructor(parts: ReportParts) {
    const { db, records, timeline, sums } = parts
    this.#parts = parts
    this.#source = { db, records, timeline, sums, turn: () => this.#turn() }
  }

  /** A hold has just ended. */
  ended(id: string, entries: readonly PostedEntry[]): void {
    for (const verification of this.#verifications) verification.ended(id, entries)
  }

  /** A credit has just been written. */
  credited(credit: Credit): void {
    for (const verification of this.#verifications) verification.credited(credit)
  }

  async records(query: RecordQuery): Promise<UsageRecord[]> {
    const { batches, openHolds, records, timeline } = this.#parts
    const { since = 0, until = Number.POSITIVE_INFINITY, limit = Number.POSITIVE_INFINITY } = query
    // Taken first: a hold that ends while the records are read is shown as it was, once.
    const held = await batches.run(() => openHolds().map(heldRecord))
    const found = held.filter(record => asked(record, query))
    const open = new Set(held.map(record => record.id))
    const ended: UsageRecord[] = []
    const range = timeline.range(since, until)
    for (let from: string | undefined = range.from; from !== undefined && ended.length < limit && query.state !== 'held'; ) {
      const next = records.chunkEnd({ from, below: range.below }, RECORDS_PER_TURN)
      for (const record of records.chunk({ from, below: next ?? range.below }, query)) {
        if (!open.has(record.id)) ended.push(record)
      }
      from = next
      if (from !== undefined) await this.#turn()
    }
    const all = [...found, ...ended].sort((a, b) => (a.id < b.id ? -1 : 1))
    return all.length > limit ? all.slice(0, limit) : all
  }

  async survey<Item, Found>(items: Iterable<Item>, find: (item: Item, look: Look) => Found): Promise<Found[]> {
    const { batches, cells, wallets } = this.#parts
    const rest = items[Symbol.iterator]()
    const found: Found[] = []
    let looks = 0
    const looked = (counter: Counter): ReturnType<Cells['look']> => {
      looks++
      return cells.look(counter)
    }
    const look: Look = {
      reading: counter => reading(counter, looked(counter), null),
      wallet: account => wallets.wallet(account, looked(accountRial(account))),
    }
    const some = (): boolean => {
      for (looks = 0; looks < LOOKS_PER_TURN; looks++) {
        const next = rest.next()
        if (next.done === true) return false
        found.push(find(next.value, look))
      }
      return true
    }
    for (let more = true; more; ) more = await batches.run(some)
    return found
  }

  async verify(): Promise<Difference[]> {
    const { db, batches, cells, records, sums, wallets } = this.#parts
    const verification = await batches.run(() => {
      const begun = new Verification(db, cells, records, sums, wallets)
      this.#verifications.add(begun)
      return begun
    })
    try {
      return await verification.run(() => this.#turn())
    } finally {
      this.#verifications.delete(verification)
    }
  }

  async usage(query: UsageQuery): Promise<UsageRow[]> {
    this.#summing++
    try {
      return await sumUsage(this.#source, query)
    } finally {
      this.#summing--
    }
  }

  pages(query: UsageFilter): AsyncGenerator<UsageRecord[]> {
    return recordPages(this.#source, query)
  }

  /** One step, in a batch; `write` begins its transaction. */
  prune({ before, dayOf, from = '' }: Pruning, write: () => void): Pruned {
    const { records, sums, timeline } = this.#parts
    // What is in the records now and in the sums a moment later would be in a report twice.
    if (this.#summing > 0 || this.#verifications.size > 0) return { records: 0, next: from }
    const range = timeline.range(0, before)
    const ids = { from: from > range.from ? from : range.from, below: range.below }
    const next = records.chunkEnd(ids, PRUNED_AT_ONCE)
    write()
    return { records: sums.take({ from: ids.from, below: next ?? ids.below }, before, dayOf), next: next ?? null }
  }

  /** Lets the event loop turn in a long reading; throws when the ledger has failed or was closed meanwhile. */
  #turn(): Promise<void> {
    return this.#parts.batches.run(() => {})
  }
}
