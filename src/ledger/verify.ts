import type Database from 'better-sqlite3'
import type { Cells } from './cells.js'
import { CreditCheck, differ, ROWS_PER_TURN } from './credit-check.js'
import type { DailySums } from './daily-sums.js'
import { DamagedFile } from './file-errors.js'
import type { Credit, Difference } from './ledger.js'
import type { PostedEntry, Records } from './records.js'
import type { Wallets } from './wallets.js'
import type { WindowKind } from './windows.js'

const END = '\u{10ffff}'
// Some 100 bytes each. Counters that are in use at the same time are fewer: each key has four minutes and hours, four days, and a month.
const SUMS_MAX = 50_000
const BITS_MAX = 2 ** 27

interface CounterRow {
  readonly id: bigint
  readonly meter: string
  readonly subject: string
  readonly kind: WindowKind
  readonly start: bigint
  readonly posted: bigint
  /** The id that it is found by, by all else: the index says so, and a ledger that does not find it takes it for 0. */
  readonly known: bigint | null
}

/**
 * Sums up what all records have posted, and those that were pruned, and compares it with the counters; likewise open holds, and credits (CreditCheck). The ledger goes on
 * meanwhile, but prunes nothing, and tells of each hold that ends: those that were passed already are added, the others are still to come.
 *
 * A file has as many counters as there were minutes, so sums are not kept until the end: one that has come to what its counter says is done
 * with, and what would be added to it later is a difference. Memory grows with the counters in use, and by a bit for each in the file.
 */
export class Verification {
  readonly #db: Database.Database
  readonly #cells: Cells
  readonly #records: Records
  readonly #pruned: Pick<DailySums, 'posted'>
  readonly #credits: CreditCheck
  readonly #selectPosted: Database.Statement<[number], bigint>
  readonly #sums = new Map<number, bigint>()
  readonly #done: Bits
  /** By how much more than is still to come the records have posted on counters that are done with. */
  readonly #beyond = new Map<number, bigint>()
  #settleAt: number
  #passed = ''

  constructor(
    db: Database.Database,
    cells: Cells,
    records: Records,
    pruned: Pick<DailySums, 'posted'>,
    wallets: Wallets,
    sumsMax: number = SUMS_MAX,
  ) {
    this.#db = db
    this.#cells = cells
    this.#records = records
    this.#pruned = pruned
    this.#credits = new CreditCheck(db, wallets)
    this.#settleAt = sumsMax
    this.#selectPosted = db.prepare<[number], bigint>('SELECT posted FROM counters WHERE id = ?').pluck().safeIntegers()
    this.#done = new Bits(db.prepare<[], number>('SELECT coalesce(max(id), 0) FROM counters').pluck().get() as number)
  }

  /** How many sums are kept, for tests. */
  get kept(): number {
    return this.#sums.size + this.#beyond.size
  }

  /** A record has just been written. */
  ended(id: string, posted: readonly PostedEntry[]): void {
    if (id <= this.#passed) {
      // Of a counter that is done with, both sides have grown by as much.
      for (const [counter, amount] of posted) if (!this.#done.has(counter)) add(this.#sums, counter, amount)
    } else {
      for (const [counter, amount] of posted) if (this.#done.has(counter)) add(this.#beyond, counter, -amount)
    }
  }

  /** A credit has just been written. */
  credited(credit: Credit): void {
    this.#credits.credited(credit)
  }

  /** `turn` lets others work, and throws when the ledger can no longer be read. */
  async run(turn: () => Promise<void>): Promise<Difference[]> {
    await this.#sumUp(turn)
    return [...(await this.#compareCounters(turn)), ...this.#comparePending(), ...(await this.#credits.run(turn))]
  }

  async #sumUp(turn: () => Promise<void>): Promise<void> {
    for (let after = 0; ; await turn()) {
      const rows = this.#pruned.posted(after, ROWS_PER_TURN)
      for (const [counter, amount] of rows) add(this.#sums, counter, amount)
      if (rows.length < ROWS_PER_TURN) break
      after = onward(after, rows[rows.length - 1]?.[0] ?? after)
      if (this.#sums.size > this.#settleAt) await this.#settle(turn)
    }
    for (;;) {
      const rows = this.#records.posted(this.#passed, ROWS_PER_TURN)
      for (const { posted } of rows) {
        for (const [counter, amount] of posted) add(this.#done.has(counter) ? this.#beyond : this.#sums, counter, amount)
      }
      this.#passed = rows.length < ROWS_PER_TURN ? END : onward(this.#passed, rows[rows.length - 1]?.id ?? END)
      if (this.#passed === END) return
      await turn()
      if (this.#sums.size > this.#settleAt) await this.#settle(turn)
    }
  }

  /** Lets go of the sums that have come to what their counters say. */
  async #settle(turn: () => Promise<void>): Promise<void> {
    let looked = 0
    for (const [counter, sum] of this.#sums) {
      if (this.#selectPosted.get(counter) === sum && this.#done.add(counter)) this.#sums.delete(counter)
      if (++looked % ROWS_PER_TURN === 0) await turn()
    }
    // Those that are left are not looked through again at each chunk.
    this.#settleAt = Math.max(this.#settleAt, 2 * this.#sums.size)
  }

  async #compareCounters(turn: () => Promise<void>): Promise<Difference[]> {
    const select = this.#db
      .prepare<[bigint, number], CounterRow>(
        `SELECT id, meter, subject, kind, start, posted, (SELECT other.id FROM counters AS other WHERE other.meter = counters.meter
          AND other.subject = counters.subject AND other.kind = counters.kind AND other.start = counters.start) AS known
          FROM counters WHERE id > ? ORDER BY id LIMIT ?`,
      )
      .safeIntegers()
    const differences: Difference[] = []
    for (let after = 0n; ; await turn()) {
      const rows = select.all(after, ROWS_PER_TURN)
      for (const { id, meter, subject, kind, start, posted, known } of rows) {
        const sum = this.#sum(Number(id), posted)
        const cell = this.#cells.peek(meter, subject, kind, start)?.posted ?? posted
        if (sum === posted && cell === posted && known === id) continue
        const name = `${meter} of ${subject}, ${kind} from ${start}`
        differ(differences, `${name}: posted, by the records`, sum, posted)
        differ(differences, `${name}: posted, in memory`, posted, cell)
        if (known !== id) differences.push({ what: `${name}: in the index`, expected: String(id), found: String(known) })
      }
      if (rows.length < ROWS_PER_TURN) break
      after = onward(after, rows[rows.length - 1]?.id ?? after)
    }
    for (const [id, sum] of [...this.#sums, ...this.#beyond]) {
      if (this.#selectPosted.get(id) === undefined)
        differences.push({ what: `counter ${id}`, expected: String(sum), found: 'no such counter' })
    }
    return differences
  }

  /** What the records come to, of a counter that says `posted`. */
  #sum(counter: number, posted: bigint): bigint {
    return this.#done.has(counter) ? posted + (this.#beyond.get(counter) ?? 0n) : (this.#sums.get(counter) ?? 0n)
  }

  #comparePending(): Difference[] {
    const differences: Difference[] = []
    const pending = new Map<number, bigint>()
    const parts = new Map<number, bigint>()
    for (const { claims } of this.#records.holds()) {
      for (const [counter, amount] of claims) {
        add(pending, counter, amount)
        add(parts, counter, 1n)
      }
    }
    for (const cell of this.#cells.all()) {
      const { meter, subject, window } = cell.counter
      const name = `${meter} of ${subject}, ${window.kind} from ${window.start}`
      differ(differences, `${name}: pending, by the open holds`, pending.get(cell.id) ?? 0n, cell.pending)
      differ(differences, `${name}: claims of open holds, in memory`, parts.get(cell.id) ?? 0n, BigInt(cell.holds))
    }
    return differences
  }
}

/** Where to go on. In a damaged file, rows may not be in their order, and to go on there would be to go in a circle. */
function onward<Id extends string | number | bigint>(after: Id, last: Id): Id {
  if (last > after) return last
  throw new DamagedFile(`${last} comes after ${after} in it`)
}

function add(sums: Map<number, bigint>, counter: number, amount: bigint): void {
  const sum = (sums.get(counter) ?? 0n) + amount
  sums.set(counter, sum)
}

/** A set of ids of counters. Only the lowest have a place in it, which are all that a file comes to in a century. */
class Bits {
  readonly #max: number
  readonly #bytes: Uint8Array

  constructor(max: number) {
    this.#max = Math.min(max, BITS_MAX)
    this.#bytes = new Uint8Array((this.#max >> 3) + 1)
  }

  has(id: number): boolean {
    return id <= this.#max && ((this.#bytes[id >> 3] ?? 0) & (1 << (id & 7))) !== 0
  }

  /** False where there is no place for it. */
  add(id: number): boolean {
    if (!(id <= this.#max)) return false
    this.#bytes[id >> 3] = (this.#bytes[id >> 3] as number) | (1 << (id & 7))
    return true
  }
}
