import type Database from 'better-sqlite3'
import type { Cells } from './cells.js'
import type { Difference } from './ledger.js'
import type { PostedEntry, Records } from './records.js'
import type { WindowKind } from './windows.js'

// 1,000 rows take 1 to 2 ms: the event loop turns in between.
const CHUNK = 1000
const END = '\u{10ffff}'

interface CounterRow {
  readonly id: bigint
  readonly meter: string
  readonly subject: string
  readonly kind: WindowKind
  readonly start: bigint
  readonly posted: bigint
}

/**
 * Sums up what all records have posted, and compares it with the counters; likewise open holds and credits. The ledger goes on
 * meanwhile and tells of each hold that ends: those that were passed already are added, the others are still to come.
 */
export class Verification {
  readonly #db: Database.Database
  readonly #cells: Cells
  readonly #records: Records
  readonly #sums = new Map<number, bigint>()
  #passed = ''

  constructor(db: Database.Database, cells: Cells, records: Records) {
    this.#db = db
    this.#cells = cells
    this.#records = records
  }

  /** A record has just been written. */
  ended(id: string, posted: readonly PostedEntry[]): void {
    if (id <= this.#passed) this.#add(posted)
  }

  /** `turn` lets others work, and throws when the ledger can no longer be read. `credited` is what the ledger takes a balance to be. */
  async run(turn: () => Promise<void>, credited: ReadonlyMap<string, bigint>): Promise<Difference[]> {
    await this.#sumUp(turn)
    return [...(await this.#compareCounters(turn)), ...this.#comparePending(), ...this.#compareCredits(credited)]
  }

  async #sumUp(turn: () => Promise<void>): Promise<void> {
    for (;;) {
      const rows = this.#records.posted(this.#passed, CHUNK)
      for (const { posted } of rows) this.#add(posted)
      this.#passed = rows.length < CHUNK ? END : (rows[rows.length - 1]?.id ?? END)
      if (this.#passed === END) return
      await turn()
    }
  }

  #add(posted: readonly PostedEntry[]): void {
    for (const [counter, amount] of posted) this.#sums.set(counter, (this.#sums.get(counter) ?? 0n) + amount)
  }

  async #compareCounters(turn: () => Promise<void>): Promise<Difference[]> {
    const select = this.#db
      .prepare<[bigint, number], CounterRow>(
        'SELECT id, meter, subject, kind, start, posted FROM counters WHERE id > ? ORDER BY id LIMIT ?',
      )
      .safeIntegers()
    const differences: Difference[] = []
    const seen = new Set<number>()
    for (let after = 0n; ; await turn()) {
      const rows = select.all(after, CHUNK)
      for (const { id, meter, subject, kind, start, posted } of rows) {
        seen.add(Number(id))
        const name = `${meter} of ${subject}, ${kind} from ${start}`
        differ(differences, `${name}: posted, by the records`, this.#sums.get(Number(id)) ?? 0n, posted)
        differ(differences, `${name}: posted, in memory`, posted, this.#cells.peek(meter, subject, kind, start)?.posted ?? posted)
      }
      if (rows.length < CHUNK) break
      after = rows[rows.length - 1]?.id ?? after
    }
    for (const [id, sum] of this.#sums) {
      if (!seen.has(id)) differences.push({ what: `counter ${id}`, expected: String(sum), found: 'no such counter' })
    }
    return differences
  }

  #comparePending(): Difference[] {
    const differences: Difference[] = []
    const pending = new Map<number, bigint>()
    for (const { claims } of this.#records.holds()) {
      for (const [counter, amount] of claims) pending.set(counter, (pending.get(counter) ?? 0n) + amount)
    }
    for (const cell of this.#cells.all()) {
      const { meter, subject, window } = cell.counter
      differ(
        differences,
        `${meter} of ${subject}, ${window.kind} from ${window.start}: pending, by the open holds`,
        pending.get(cell.id) ?? 0n,
        cell.pending,
      )
    }
    return differences
  }

  #compareCredits(credited: ReadonlyMap<string, bigint>): Difference[] {
    const differences: Difference[] = []
    const sums = this.#db
      .prepare<[], { account: string; sum: bigint }>('SELECT account, sum(amount) AS sum FROM credits GROUP BY account')
      .safeIntegers()
    const found = new Map(sums.all().map(({ account, sum }) => [account, sum]))
    for (const [account, amount] of credited) differ(differences, `wallet of ${account}: credited`, found.get(account) ?? 0n, amount)
    return differences
  }
}

function differ(differences: Difference[], what: string, expected: bigint, found: bigint): void {
  if (expected !== found) differences.push({ what, expected: String(expected), found: String(found) })
}
