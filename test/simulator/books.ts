import { accountOf } from '../../src/ledger/counters.js'
import type { Admission, Amount, Claim, Counter, Credit, Hold, Settlement } from '../../src/ledger/ledger.js'

/** What became of a hold. `held`: nothing yet. */
export type Fate = 'held' | 'settled' | 'partial' | 'voided' | 'recovered'

export interface Entry {
  readonly hold: Hold
  fate: Fate
  actual: Settlement['actual'] | null
}

/** An operation that was never answered: it may or may not be in the file. */
type Doubt =
  | { readonly kind: 'hold'; readonly hold: Hold }
  | { readonly kind: 'end'; readonly fate: Fate; readonly actual: Settlement['actual'] | null }

export interface Balance {
  readonly counter: Counter
  posted: Amount
  pending: Amount
}

/** Thrown where the gateway breaks its word. */
export class Violation extends Error {}

export function must(held: boolean, words: () => string): asserts held {
  if (!held) throw new Violation(words())
}

/**
 * The second bookkeeper: it hears what the ledger answers, keeps its own sums in plain words of the contract, and says no where the ledger's
 * answer is not the only right one.
 */
export class Books {
  readonly entries = new Map<string, Entry>()
  readonly balances = new Map<string, Balance>()
  readonly #credits = new Map<string, Credit>()
  readonly #doubts = new Map<string, Doubt>()
  /** Credits that were never answered: asked for again, they say either. */
  readonly #doubtedCredits = new Map<string, Credit>()

  held(hold: Hold, admission: Admission): void {
    must(!this.entries.has(hold.id), () => `${hold.id} was held twice`)
    const first = hold.claims.findIndex((claim, i) => !this.#fits(hold, claim, i))
    const { admitted } = admission
    must(admitted === (first === -1), () => `${hold.id} was ${admitted ? 'admitted' : 'refused'}, and claim ${first} says otherwise`)
    if (!admission.admitted) must(admission.refused === hold.claims[first], () => `${hold.id} was refused for ${admission.refused.code}`)
    else this.#enter({ hold, fate: 'held', actual: null })
    for (const [i, reading] of admission.readings.entries()) {
      const claim = hold.claims[i] as Claim
      const { posted, pending } = this.balance(claim.counter)
      const ceiling = this.#ceiling(claim)
      const right = reading.posted === posted && reading.pending === pending && reading.ceiling === ceiling
      must(
        right,
        () => `${hold.id} reads ${claim.counter.subject} as ${reading.posted} and ${reading.pending}, not ${posted} and ${pending}`,
      )
      const within = !admitted || ceiling === null || posted + pending <= ceiling
      must(within, () => `${hold.id} crosses ${claim.code}: ${posted} + ${pending} of ${ceiling}`)
    }
  }

  ended(id: string, fate: Fate, actual: Settlement['actual'] | null): void {
    const entry = this.entries.get(id)
    must(entry?.fate === 'held', () => `${id} ends as ${fate}, and is ${entry?.fate}`)
    entry.fate = fate
    entry.actual = actual
    const measured = new Set<Balance>()
    for (const { counter, amount, ends = 'measured' } of entry.hold.claims) {
      const balance = this.balance(counter)
      balance.pending -= amount
      if (ends === 'counted') balance.posted += amount
      if (ends === 'measured' && actual !== null && !measured.has(balance)) {
        measured.add(balance)
        balance.posted += actual[counter.meter] ?? amount
      }
    }
  }

  credited(credit: Credit, answer: 'credited' | 'already_credited'): void {
    const known = this.#credits.has(credit.id)
    const right = this.#doubtedCredits.delete(credit.id) || known === (answer === 'already_credited')
    must(right, () => `credit ${credit.id} is ${answer}`)
    if (!known) this.#credits.set(credit.id, credit)
  }

  doubt(id: string, doubt: Doubt): void {
    this.#doubts.set(id, doubt)
  }

  doubtCredit(credit: Credit): void {
    this.#doubtedCredits.set(credit.id, credit)
  }

  get doubtedCredits(): readonly Credit[] {
    return [...this.#doubtedCredits.values()]
  }

  creditOf(account: string): Amount {
    let sum = 0n
    for (const credit of this.#credits.values()) if (credit.account === account) sum += credit.amount
    return sum
  }

  balance(counter: Counter): Balance {
    const name = `${counter.meter} ${counter.subject} ${counter.window.kind} ${counter.window.start}`
    let balance = this.balances.get(name)
    if (balance === undefined) {
      balance = { counter, posted: 0n, pending: 0n }
      this.balances.set(name, balance)
    }
    return balance
  }

  open(): string[] {
    return [...this.entries].filter(([, { fate }]) => fate === 'held').map(([id]) => id)
  }

  /**
   * After a restart: what was in doubt is as the file says, and all else must be as it was. `mayBeGone`: once it had ended, its record may have been
   * pruned.
   */
  resolve(found: ReadonlyMap<string, Fate>, mayBeGone: (id: string) => boolean): void {
    for (const [id, doubt] of this.#doubts) {
      const fate = found.get(id)
      if (doubt.kind === 'hold' && fate === 'held') this.#enter({ hold: doubt.hold, fate, actual: null })
      else if (doubt.kind === 'end' && (fate === doubt.fate || (fate === undefined && mayBeGone(id))))
        this.ended(id, doubt.fate, doubt.actual)
    }
    this.#doubts.clear()
    for (const [id, { fate }] of this.entries) {
      const gone = fate !== 'held' && !found.has(id) && mayBeGone(id)
      must(gone || found.get(id) === fate, () => `${id} was ${fate} before the restart, and is ${found.get(id) ?? 'lost'} after it`)
    }
    for (const id of found.keys()) must(this.entries.has(id), () => `${id} is in the file, and nobody asked for it`)
  }

  #enter(entry: Entry): void {
    this.entries.set(entry.hold.id, entry)
    for (const { counter, amount } of entry.hold.claims) this.balance(counter).pending += amount
  }

  #fits(hold: Hold, claim: Claim, position: number): boolean {
    const ceiling = this.#ceiling(claim)
    if (ceiling === null) return true
    const own = this.balance(claim.counter)
    let total = own.posted + own.pending
    for (const { counter, amount } of hold.claims.slice(0, position + 1)) if (this.balance(counter) === own) total += amount
    return total <= ceiling
  }

  #ceiling({ ceiling, counter }: Claim): Amount | null {
    return ceiling === 'credits' ? this.creditOf(accountOf(counter.subject) ?? '') : ceiling
  }
}
