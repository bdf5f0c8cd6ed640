import type Database from 'better-sqlite3'
import { DamagedFile } from './file-errors.js'
import type { Credit, Difference } from './ledger.js'
import { type Credited, NOTHING, type Wallets, withCredit } from './wallets.js'

/** 1,000 credits take 5 ms, other rows 1 to 2 ms: the event loop turns in between. */
export const ROWS_PER_TURN = 1000

type Row = Omit<Credit, 'at'> & { readonly at: bigint; readonly listed: bigint }

/**
 * Sums up all credits and compares them with the wallets: a credit that is not as it was written, that has gone, or that nobody booked. The ledger goes on
 * meanwhile, and tells of each credit: those whose place was passed already are added, the others are still to come.
 */
export class CreditCheck {
  readonly #wallets: Wallets
  readonly #credits: Database.Statement<[string], Row>
  readonly #wallet: Database.Statement<[string], Credited>
  readonly #sums = new Map<string, Credited>()
  /** The id up to which all credits are in the sums; `null`: all are. */
  #passed: string | null = ''

  constructor(db: Database.Database, wallets: Wallets) {
    this.#wallets = wallets
    // That the index knows it: an account's list of credits goes by it.
    this.#credits = db
      .prepare<[string], Row>(
        `SELECT id, account, amount, note, at,
          EXISTS (SELECT 1 FROM credits AS other INDEXED BY credits_of_account WHERE other.account = credits.account AND other.id = credits.id) AS listed
          FROM credits WHERE id > ? ORDER BY id LIMIT ${ROWS_PER_TURN}`,
      )
      .safeIntegers()
    this.#wallet = db.prepare<[string], Credited>('SELECT credited, credits, digest FROM wallets WHERE account = ?').safeIntegers()
  }

  /** A credit has just been written. */
  credited(credit: Credit): void {
    if (this.#passed === null || inOrder(credit.id, this.#passed)) this.#add(credit)
  }

  /** `turn` lets others work, and throws when the ledger can no longer be read. Throws where the file is damaged so much that it can not be read through. */
  async run(turn: () => Promise<void>): Promise<Difference[]> {
    const differences: Difference[] = []
    while (this.#passed !== null) {
      const rows = this.#credits.all(this.#passed)
      for (const row of rows) {
        if (row.listed !== 1n)
          differences.push({ what: `credit ${row.id}: in the list of ${row.account}`, expected: 'there', found: 'missing' })
        // What a damaged row says may be of any kind.
        if (typeof row.amount === 'bigint' && typeof row.at === 'bigint') this.#add(row)
        else differences.push({ what: `credit ${row.id}`, expected: 'whole numbers', found: `${row.amount} at ${row.at}` })
      }
      const last = rows.length < ROWS_PER_TURN ? null : (rows[rows.length - 1] as Row).id
      // It would go round in a circle.
      if (last !== null && inOrder(last, this.#passed)) throw new DamagedFile(`credit ${last} is out of its place`)
      this.#passed = last
      if (last !== null) await turn()
    }
    let compared = 0
    for (const [account, wallet] of this.#wallets.all()) {
      differ(differences, `wallet of ${account}: by its credits`, words(this.#sums.get(account) ?? NOTHING), words(wallet))
      differ(differences, `wallet of ${account}: in memory`, words(this.#wallet.get(account) ?? NOTHING), words(wallet))
      if (++compared % ROWS_PER_TURN === 0) await turn()
    }
    for (const [account, sum] of this.#sums) {
      if (!this.#wallets.all().has(account))
        differences.push({ what: `wallet of ${account}`, expected: words(sum), found: 'no such wallet' })
    }
    return differences
  }

  #add(credit: Credit | Row): void {
    this.#sums.set(credit.account, withCredit(this.#sums.get(credit.account) ?? NOTHING, credit))
  }
}

/** Adds what differs to the differences. */
export function differ<Value extends bigint | string>(differences: Difference[], what: string, expected: Value, found: Value): void {
  if (expected !== found) differences.push({ what, expected: String(expected), found: String(found) })
}

function words({ credited, credits, digest }: Credited): string {
  return `${credited} in ${credits} credits (digest ${digest})`
}

/** Whether an id is another, or comes before it, in the order of the file: by the bytes of UTF-8. */
function inOrder(id: string, other: string): boolean {
  return Buffer.compare(Buffer.from(id), Buffer.from(other)) <= 0
}
