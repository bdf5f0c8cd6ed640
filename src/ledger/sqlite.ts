import { AssertionError } from 'node:assert/strict'
import type Database from 'better-sqlite3'
import { type AccountBook, Accounts, available, type Booking, sameCredit } from './accounts.js'
import { Batches, type ObserveCommit, type Store } from './batch.js'
import { type CalibrationBook, CalibrationTable, type KeptCalibration } from './calibration-book.js'
import { AMOUNT_MAX, Cells } from './cells.js'
import { accountOf, accountRial } from './counters.js'
import { DailySums } from './daily-sums.js'
import { explained, isBroken } from './file-errors.js'
import type {
  Admission,
  Amount,
  Ceiling,
  Counter,
  Credit,
  Difference,
  Ending,
  EndingRecord,
  Hold,
  Ledger,
  OpenHold,
  Reading,
  RecordQuery,
  RecordState,
  Settlement,
  UsageRecord,
  Wallet,
} from './ledger.js'
import { type FileOptions, openFile } from './open-file.js'
import { type Held, OpenHolds } from './open-holds.js'
import { type Asked, checkAmount, claimed, cutToRoom, type Part, postedBy, reading, readingOf } from './parts.js'
import { type PostedEntry, Records } from './records.js'
import { recover, recovered } from './recovery.js'
import { type Look, Reports } from './reports.js'
import type { Prunable, Pruned, Pruning } from './retention.js'
import type { SqliteFile } from './sqlite-file.js'
import { Timeline } from './timeline.js'
import type { UsageFilter, UsageQuery, UsageReports, UsageRow } from './usage.js'
import { Wallets } from './wallets.js'

export interface LedgerOptions extends FileOptions {
  readonly observe?: { readonly commit?: ObserveCommit }
  /** What stands between the batches and the file: for simulated faults of a disk. */
  readonly disk?: (store: Store) => Store
}

/** For metrics: cheap enough for every scrape. */
export interface LedgerStats {
  readonly bytes: number
  readonly wal_bytes: number
  readonly open_holds: number
  readonly held_rial: Amount
  /** Milliseconds since the epoch; `null` when no hold is open. */
  readonly oldest_hold_at: number | null
}

export interface SqliteLedger extends Ledger, AccountBook, UsageReports, CalibrationBook, Prunable {
  stats(): LedgerStats
  /**
   * What `find` makes of each item by looking at counters and wallets, in the order of the items. For looks at very many: some milliseconds at a time, between which
   * holds go on, and none is kept in memory for having been looked at.
   */
  survey<Item, Found>(items: Iterable<Item>, find: (item: Item, look: Look) => Found): Promise<Found[]>
  /** As the contract has it; of the holds with these ids alone, where they are given. Others go on meanwhile. One that can not be ended stays open, and rejects it all. */
  recover(at: number, ids?: ReadonlySet<string>): Promise<OpenHold[]>
  /** Writes a consistent copy to a file that does not exist yet, while others go on. */
  backup(path: string): Promise<void>
}

/** Opens the ledger in an SQLite file. Rejects with a GatewayError for the operator: what is wrong, and what to do. */
export async function openLedger(options: LedgerOptions): Promise<SqliteLedger> {
  const file = await openFile(options)
  try {
    return new FileLedger(file, options)
  } catch (error) {
    await file.close(false)
    // A damaged page shows itself when it is first read.
    throw explained(options.path, error)
  }
}

const CLOSED = 'the ledger is closed'

class FileLedger implements SqliteLedger {
  readonly #file: SqliteFile
  readonly #cells: Cells
  readonly #records: Records
  readonly #wallets: Wallets
  readonly #accounts: Accounts
  readonly #timeline: Timeline
  readonly #calibrations: CalibrationTable
  readonly #sums: DailySums
  readonly #batches: Batches
  readonly #begin: Database.Statement
  readonly #commit: Database.Statement
  readonly #open = new OpenHolds()
  readonly #reports: Reports
  readonly #backups = new Set<Promise<void>>()
  /** Operations that wrote since the last batch was tidied up after. */
  #writes = 0
  /** The latest moment that was asked about: what counters are old. */
  #latest = 0
  #closing: Promise<void> | undefined

  constructor(file: SqliteFile, { observe, disk = store => store }: LedgerOptions) {
    const { db } = file
    this.#file = file
    this.#cells = new Cells(db)
    this.#records = new Records(db)
    this.#wallets = new Wallets(db)
    this.#accounts = new Accounts(db)
    this.#timeline = new Timeline(db)
    this.#calibrations = new CalibrationTable(db)
    this.#sums = new DailySums(db)
    this.#begin = db.prepare('BEGIN IMMEDIATE')
    this.#commit = db.prepare('COMMIT')
    const store: Store = {
      commit: () => this.#commitBatch(),
      rollback: () => this.#rollback(),
      sync: () => file.sync(),
      tidy: () => this.#tidy(),
      isBroken,
    }
    this.#batches = new Batches(disk(store), observe?.commit ?? (() => {}))
    this.#reports = new Reports({
      db,
      batches: this.#batches,
      cells: this.#cells,
      records: this.#records,
      sums: this.#sums,
      timeline: this.#timeline,
      wallets: this.#wallets,
      openHolds: () => this.#openHolds(),
    })
    for (const { claims, ...hold } of this.#records.holds()) {
      this.#add({ ...hold, parts: claims.map(([counter, amount, ends]) => ({ cell: this.#cells.byId(counter), amount, ends })) })
    }
  }

  get failure(): string | null {
    if (this.#batches.failure === null) {
      try {
        this.#file.look(true)
      } catch (error) {
        this.#batches.fail(error)
      }
    }
    return this.#batches.failure
  }

  hold(hold: Hold): Promise<Admission> {
    return this.#batches.run(() => this.#hold(hold))
  }

  settle(id: string, { state, actual, record }: Settlement): Promise<Ending> {
    return this.#batches.run(() => this.#end(id, state, record, actual))
  }

  void(id: string, record: EndingRecord): Promise<Ending> {
    return this.#batches.run(() => this.#end(id, 'voided', record, null))
  }

  async recover(at: number, ids?: ReadonlySet<string>): Promise<OpenHold[]> {
    const holds = await this.#batches.run(() => this.#openHolds(ids))
    return recover(holds, hold => this.#batches.run(() => this.#end(hold.id, 'recovered', recovered(hold, at), null)))
  }

  credit(credit: Credit): Promise<'credited' | 'already_credited'> {
    return this.#batches.run(() => (this.#credit(credit) ? 'credited' : 'already_credited'))
  }

  read(counters: readonly Counter[]): Promise<Reading[]> {
    return this.#batches.run(() => counters.map(counter => reading(counter, this.#cells.find(counter), null)))
  }

  wallet(account: string): Promise<Wallet> {
    return this.#batches.run(() => this.#wallet(account))
  }

  survey<Item, Found>(items: Iterable<Item>, find: (item: Item, look: Look) => Found): Promise<Found[]> {
    return this.#reports.survey(items, find)
  }

  open(): Promise<OpenHold[]> {
    return this.#batches.run(() => this.#openHolds())
  }

  records(query: RecordQuery): Promise<UsageRecord[]> {
    return this.#reports.records(query)
  }

  verify(): Promise<Difference[]> {
    return this.#reports.verify()
  }

  usage(query: UsageQuery): Promise<UsageRow[]> {
    return this.#reports.usage(query)
  }

  pages(query: UsageFilter): AsyncGenerator<UsageRecord[]> {
    return this.#reports.pages(query)
  }

  summedBefore(): Promise<number | null> {
    return this.#batches.run(() => this.#sums.before)
  }

  prune(pruning: Pruning): Promise<Pruned> {
    return this.#batches.run(() => this.#reports.prune(pruning, () => this.#write()))
  }

  stats(): LedgerStats {
    const [oldest] = this.#open
    return { ...this.#file.size(), open_holds: this.#open.size, held_rial: this.#open.rial, oldest_hold_at: oldest?.at ?? null }
  }

  async backup(path: string): Promise<void> {
    const backup = this.#file.backup(path, task => this.#batches.between(task))
    this.#backups.add(backup)
    try {
      await backup
    } finally {
      this.#backups.delete(backup)
    }
  }

  book(credit: Credit, overdraw: boolean): Promise<Booking> {
    return this.#batches.run(() => {
      const known = this.#accounts.credit(credit.id)
      const wallet = this.#wallet(credit.account)
      if (known !== undefined) return { outcome: sameCredit(known, credit) ? 'already_credited' : 'conflict', wallet, credit: known }
      if (!overdraw && credit.amount < 0n && available(wallet) + credit.amount < 0n) return { outcome: 'short', wallet, credit }
      this.#credit(credit)
      return { outcome: 'credited', wallet: this.#wallet(credit.account), credit }
    })
  }

  accounts(): Promise<string[]> {
    return this.#batches.run(() => this.#accounts.names())
  }

  wallets(after: string, limit: number): Promise<Wallet[]> {
    return this.#batches.run(() =>
      this.#accounts.names(after, limit).map(account => this.#wallets.wallet(account, this.#cells.look(accountRial(account)))),
    )
  }

  credits(account: string, limit: number): Promise<Credit[]> {
    return this.#batches.run(() => this.#accounts.credits(account, limit))
  }

  calibrations(): Promise<KeptCalibration[]> {
    return this.#batches.run(() => this.#calibrations.all())
  }

  keep(kept: readonly KeptCalibration[]): Promise<void> {
    return this.#batches.run(() => {
      if (kept.length > 0) this.#write()
      for (const one of kept) this.#calibrations.put(one)
    })
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    // Those that are under way come to their end; one that begins meanwhile does not, and lets go of the file.
    await Promise.allSettled(this.#backups)
    await this.#batches.stop(CLOSED)
    await Promise.allSettled(this.#backups)
    await this.#file.close(this.failure === CLOSED)
  }

  #hold({ id, at, claims, record }: Hold): Admission {
    if (this.#open.get(id) !== undefined || this.#records.ended(id)) throw new Error(`hold ${id}: this id was held before`)
    const parts: Part[] = []
    const asked: Asked[] = []
    // Told last: a ceiling that is reached is the better answer.
    let beyond: Counter | null = null
    for (const claim of claims) {
      asked.push({ claim, cell: this.#cells.find(claim.counter), ceiling: this.#ceiling(claim.ceiling, claim.counter.subject) })
    }
    for (const { claim, cell, ceiling } of asked) {
      checkAmount(id, claim.counter.meter, claim.amount)
      claimed(parts, cell, claim)
      let total = cell.posted + cell.pending
      for (const part of parts) if (part.cell === cell) total += part.amount
      if (ceiling !== null && !(total <= ceiling)) {
        const readings = asked.map(readingOf)
        return { admitted: false, refused: claim, reading: readings[claims.indexOf(claim)] as Reading, readings }
      }
      if (total > AMOUNT_MAX) beyond = claim.counter
    }
    if (beyond !== null) throw new RangeError(`hold ${id}: ${beyond.meter} of ${beyond.subject} would come to more than ${AMOUNT_MAX}`)
    this.#write()
    for (const { cell } of parts) this.#cells.idOf(cell)
    this.#records.hold({ id, at, record, parts })
    for (const { cell } of parts) if (!cell.stored) this.#cells.touch(cell)
    this.#add({ id, at, record, parts })
    if (at > this.#latest) this.#latest = at
    return { admitted: true, readings: asked.map(readingOf) }
  }

  #ceiling(ceiling: Ceiling, subject: string): Amount | null {
    if (ceiling !== 'credits') return ceiling
    const account = accountOf(subject)
    return account === null ? 0n : this.#wallets.credited(account)
  }

  #add(hold: Held): void {
    this.#open.add(hold)
    for (const { cell, amount } of hold.parts) {
      cell.pending += amount
      cell.holds++
    }
  }

  #end(id: string, state: Exclude<RecordState, 'held'>, record: EndingRecord, actual: Settlement['actual'] | null): Ending {
    const hold = this.#open.get(id)
    if (hold === undefined) return this.#records.ended(id) ? 'already_ended' : 'unknown'
    const { parts } = hold
    const amounts: Amount[] = []
    for (const part of parts) amounts.push(postedBy(id, part, actual))
    cutToRoom(parts, amounts)
    const entries: PostedEntry[] = []
    for (let i = 0; i < parts.length; i++) {
      const amount = amounts[i] as Amount
      if (amount > 0n) entries.push([(parts[i] as Part).cell.id, amount])
    }
    this.#write()
    this.#records.end(hold, state, entries, record)
    this.#timeline.note(id, hold.at)
    this.#reports.ended(id, entries)
    this.#open.remove(hold)
    for (let i = 0; i < parts.length; i++) {
      const { cell, amount } = parts[i] as Part
      const posted = amounts[i] as Amount
      cell.pending -= amount
      cell.holds--
      // Not as an argument of assert: its words would be made each time.
      if (cell.pending < 0n || cell.holds < 0)
        throw new AssertionError({ message: `${cell.key}: pending ${cell.pending} in ${cell.holds} holds` })
      if (posted === 0n) continue
      cell.posted += posted
      this.#cells.touch(cell)
    }
    return 'ended'
  }

  #openHolds(ids?: ReadonlySet<string>): OpenHold[] {
    const held = ids === undefined ? [...this.#open] : [...ids].flatMap(id => this.#open.get(id) ?? [])
    const holds = held.map(({ id, at, record }) => ({ id, at, record }))
    return holds.sort((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1))
  }

  /** False when a credit of this id is there already. */
  #credit(credit: Credit): boolean {
    this.#write()
    if (!this.#wallets.credit(credit)) return false
    this.#reports.credited(credit)
    return true
  }

  #wallet(account: string): Wallet {
    return this.#wallets.wallet(account, this.#cells.find(accountRial(account)))
  }

  #write(): void {
    this.#writes++
    if (!this.#file.db.inTransaction) this.#begin.run()
  }

  #commitBatch(): boolean {
    if (!this.#file.db.inTransaction) return false
    this.#file.look(false)
    this.#cells.flush()
    this.#timeline.flush()
    this.#commit.run()
    return true
  }

  #rollback(): void {
    try {
      if (this.#file.db.inTransaction) this.#file.db.exec('ROLLBACK')
    } catch {
      // It fails for the same reason as what failed before it; the file is as the last commit left it.
    }
  }

  #tidy(): Promise<void> | undefined {
    this.#cells.tidy(this.#latest)
    const writes = this.#writes
    this.#writes = 0
    return this.#file.tidy(writes)
  }
}
