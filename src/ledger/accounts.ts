import type Database from 'better-sqlite3'
import { accountSubject } from './counters.js'
import type { Amount, Credit, Wallet } from './ledger.js'

/** What became of a credit that was booked, and the wallet as it is after it. */
export interface Booking {
  /** `conflict`: its id belongs to another credit. `short`: it would take out more than is available. In both cases nothing was changed. */
  readonly outcome: 'credited' | 'already_credited' | 'conflict' | 'short'
  readonly wallet: Wallet
  /** The one of this id that counts; where it was `short`, the one that was asked for. */
  readonly credit: Credit
}

/** A ledger's own account book, for its operator. */
export interface AccountBook {
  /** As `credit`; what becomes of it is told whole, and unless `overdraw`, no more is taken out than is available. */
  book(credit: Credit, overdraw: boolean): Promise<Booking>
  /** Every account that was ever credited or charged. */
  accounts(): Promise<string[]>
  /** The wallets of these accounts in their order: at most `limit`, of those that come after a name. */
  wallets(after: string, limit: number): Promise<Wallet[]>
  /** The latest credits of an account, latest first. */
  credits(account: string, limit: number): Promise<Credit[]>
}

interface Row {
  readonly id: string
  readonly account: string
  readonly amount: bigint
  readonly note: string
  readonly at: bigint
}

/** What the file says of accounts beyond their balances. */
export class Accounts {
  readonly #names: Database.Statement<{ readonly after: string; readonly limit: number }, string>
  readonly #credits: Database.Statement<[string, number], Row>
  readonly #credit: Database.Statement<[string], Row>

  constructor(db: Database.Database) {
    const prefix = accountSubject('')
    // Each half reads no more than it gives: a page costs the same however many accounts there are.
    this.#names = db
      .prepare<{ readonly after: string; readonly limit: number }, string>(
        `SELECT * FROM (SELECT account FROM wallets WHERE account > @after ORDER BY account LIMIT @limit) UNION
          SELECT * FROM (SELECT DISTINCT substr(subject, ${prefix.length + 1}) FROM counters
            WHERE meter = 'rial' AND subject > '${prefix}' || @after AND subject < '${prefix}\u{10ffff}' ORDER BY subject LIMIT @limit)
          ORDER BY 1 LIMIT @limit`,
      )
      .pluck()
    const columns = 'id, account, amount, note, at'
    this.#credits = db
      .prepare<[string, number], Row>(`SELECT ${columns} FROM credits WHERE account = ? ORDER BY at DESC, id DESC LIMIT ?`)
      .safeIntegers()
    this.#credit = db.prepare<[string], Row>(`SELECT ${columns} FROM credits WHERE id = ?`).safeIntegers()
  }

  /** The accounts that were ever credited or charged, in their order; with a `limit` so many of them, of those that come after a name. */
  names(after = '', limit = -1): string[] {
    return this.#names.all({ after, limit })
  }

  /** The latest credits of an account, latest first. */
  credits(account: string, limit: number): Credit[] {
    return this.#credits.all(account, limit).map(creditOf)
  }

  credit(id: string): Credit | undefined {
    const row = this.#credit.get(id)
    return row === undefined ? undefined : creditOf(row)
  }
}

/** Rial that new holds may claim; below zero when more was taken out than there was. */
export function available({ credited, posted, pending }: Pick<Wallet, 'credited' | 'posted' | 'pending'>): Amount {
  return credited - posted - pending
}

/** Whether two credits of one id are the same one, sent again. */
export function sameCredit(one: Credit, other: Credit): boolean {
  return one.account === other.account && one.amount === other.amount
}

function creditOf({ at, ...row }: Row): Credit {
  return { ...row, at: Number(at) }
}
