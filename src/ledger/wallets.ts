import type Database from 'better-sqlite3'
import { AMOUNT_MAX, LONE_SURROGATE } from './cells.js'
import { digest, sumOf } from './digest.js'
import { DamagedFile } from './file-errors.js'
import type { Amount, Credit, Wallet } from './ledger.js'

/** What the credits of an account come to. */
export interface Credited {
  readonly credited: Amount
  /** Their number. */
  readonly credits: bigint
  /** The sum of their digests: no credit can change, go or come without it. */
  readonly digest: bigint
}

export const NOTHING: Credited = { credited: 0n, credits: 0n, digest: 0n }

/**
 * What was credited to each account, as the file says it besides the credits themselves. All of it is read, and proven by a digest of the whole, when the
 * file is opened; from then on what is in memory counts. Whether it is what the credits come to is for `CreditCheck` to say.
 */
export class Wallets {
  readonly #accounts = new Map<string, Credited>()
  readonly #known: Database.Statement<[string]>
  readonly #insertCredit: Database.Statement<[string, string, bigint, string, number]>
  readonly #update: Database.Statement<[bigint, bigint, bigint, string]>
  readonly #insert: Database.Statement<[string, bigint, bigint, bigint]>
  readonly #setDigest: Database.Statement<[bigint]>
  #digest = 0n

  /** Throws a DamagedFile where the file does not say what was written to it. */
  constructor(db: Database.Database) {
    this.#known = db.prepare('SELECT 1 FROM credits WHERE id = ?')
    this.#insertCredit = db.prepare('INSERT INTO credits (id, account, amount, note, at) VALUES (?, ?, ?, ?, ?)')
    this.#update = db.prepare('UPDATE wallets SET credited = ?, credits = ?, digest = ? WHERE account = ?')
    this.#insert = db.prepare('INSERT INTO wallets (account, credited, credits, digest) VALUES (?, ?, ?, ?)')
    this.#setDigest = db.prepare('UPDATE wallets_digest SET digest = ?')
    const rows = db
      .prepare<[], Credited & { readonly account: string }>('SELECT account, credited, credits, digest FROM wallets')
      .safeIntegers()
    for (const { account, ...wallet } of rows.all()) {
      this.#accounts.set(account, wallet)
      this.#digest = sumOf(this.#digest, digestOf(account, wallet))
    }
    if (db.prepare<[], bigint>('SELECT digest FROM wallets_digest').pluck().safeIntegers().get() !== this.#digest)
      throw new DamagedFile('what was credited to its accounts is not as it was written')
  }

  credited(account: string): Amount {
    return this.#accounts.get(account)?.credited ?? 0n
  }

  /** With what its counter says. */
  wallet(account: string, { posted, pending }: Pick<Wallet, 'posted' | 'pending'>): Wallet {
    return { account, credited: this.credited(account), posted, pending }
  }

  /** False when a credit of this id is there already. */
  credit(credit: Credit): boolean {
    const { id, account, amount, note, at } = credit
    // Before its sum is looked at: what was credited once may be as much as there can be.
    if (this.#known.get(id) !== undefined) return false
    const before = this.#accounts.get(account)
    const after = withCredit(before ?? NOTHING, credit)
    if (absolute(amount) > AMOUNT_MAX || absolute(after.credited) > AMOUNT_MAX) {
      throw new RangeError(
        `credit ${id}: ${amount} Rial would bring what was credited to ${account} to ${after.credited}, beyond ${AMOUNT_MAX}`,
      )
    }
    if (id === '' || LONE_SURROGATE.test(`${id} ${account} ${note}`))
      throw new RangeError(`credit '${id}': it needs an id, and texts that can be written`)
    this.#insertCredit.run(id, account, amount, note, at)
    if (before === undefined) this.#insert.run(account, after.credited, after.credits, after.digest)
    else if (this.#update.run(after.credited, after.credits, after.digest, account).changes !== 1) {
      throw new DamagedFile(`it has lost the wallet of ${account}`)
    }
    this.#digest = sumOf(this.#digest, digestOf(account, after), before === undefined ? 0n : -digestOf(account, before))
    this.#setDigest.run(this.#digest)
    this.#accounts.set(account, after)
    return true
  }

  /** Every account that was ever credited. */
  all(): ReadonlyMap<string, Credited> {
    return this.#accounts
  }
}

/** What the credits of an account come to with one more, which may have come from the file. */
export function withCredit(
  before: Credited,
  { id, account, amount, note, at }: Omit<Credit, 'at'> & { readonly at: number | bigint },
): Credited {
  return {
    credited: before.credited + amount,
    credits: before.credits + 1n,
    digest: sumOf(before.digest, digest(id, account, amount, note, BigInt(at))),
  }
}

/** Fills the wallets of a file that has credits alone. */
export function sumUpCredits(db: Database.Database): void {
  const accounts = new Map<string, Credited>()
  const credits = db.prepare<[], Credit>('SELECT id, account, amount, note, at FROM credits').safeIntegers()
  for (const credit of credits.all()) accounts.set(credit.account, withCredit(accounts.get(credit.account) ?? NOTHING, credit))
  const insert = db.prepare<[string, bigint, bigint, bigint]>(
    'INSERT INTO wallets (account, credited, credits, digest) VALUES (?, ?, ?, ?)',
  )
  let sum = 0n
  for (const [account, wallet] of accounts) {
    insert.run(account, wallet.credited, wallet.credits, wallet.digest)
    sum = sumOf(sum, digestOf(account, wallet))
  }
  db.prepare<[bigint]>('UPDATE wallets_digest SET digest = ?').run(sum)
}

function digestOf(account: string, { credited, credits, digest: sum }: Credited): bigint {
  return digest(account, credited, credits, sum)
}

function absolute(amount: Amount): Amount {
  return amount < 0n ? -amount : amount
}
