import type Database from 'better-sqlite3'
import { AMOUNT_MAX } from './cells.js'
import type { Amount, Credit } from './ledger.js'

/** What was credited to each account: the sum of its credits, kept from the first time that it is asked for. */
export class Wallets {
  readonly #credited = new Map<string, Amount>()
  readonly #insert: Database.Statement<[string, string, bigint, string, number]>
  readonly #sum: Database.Statement<[string], bigint>

  constructor(db: Database.Database) {
    this.#insert = db.prepare('INSERT INTO credits (id, account, amount, note, at) VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING')
    this.#sum = db.prepare<[string], bigint>('SELECT coalesce(sum(amount), 0) FROM credits WHERE account = ?').pluck().safeIntegers()
  }

  credited(account: string): Amount {
    const known = this.#credited.get(account)
    if (known !== undefined) return known
    const sum = this.#sum.get(account) ?? 0n
    // An account that has no credits may be anyone's invention: what is kept is bounded by what is in the file.
    if (sum !== 0n) this.#credited.set(account, sum)
    return sum
  }

  /** False when a credit of this id is there already. */
  credit({ id, account, amount, note, at }: Credit): boolean {
    const sum = this.credited(account) + amount
    if (absolute(amount) > AMOUNT_MAX || absolute(sum) > AMOUNT_MAX) {
      throw new RangeError(`credit ${id}: ${amount} Rial would bring what was credited to ${account} to ${sum}, beyond ${AMOUNT_MAX}`)
    }
    if (this.#insert.run(id, account, amount, note, at).changes === 0) return false
    this.#credited.set(account, sum)
    return true
  }

  /** Those that are in memory. */
  all(): ReadonlyMap<string, Amount> {
    return this.#credited
  }
}

function absolute(amount: Amount): Amount {
  return amount < 0n ? -amount : amount
}
