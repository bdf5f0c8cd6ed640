import { accountOf, accountRial } from '../../src/ledger/counters.js'
import type {
  Admission,
  Amount,
  Claim,
  Counter,
  Credit,
  Ending,
  EndingRecord,
  Hold,
  OpenHold,
  Reading,
  RecordState,
  Settlement,
  Wallet,
} from '../../src/ledger/ledger.js'

type State = Exclude<RecordState, 'held'>

/** The ledger's rules and nothing else: in memory, at once, nothing durable. What another implementation answers is compared with this. */
export class Reference {
  readonly #posted = new Map<string, Amount>()
  readonly #credits = new Map<string, Credit>()
  readonly #holds = new Map<string, Hold>()
  readonly #ended = new Map<string, { readonly state: State; readonly record: EndingRecord }>()

  hold(hold: Hold): Admission {
    if (this.#holds.has(hold.id)) throw new Error('held before')
    const readings = () => hold.claims.map(({ counter, ceiling }) => this.#reading(counter, this.#ceiling(counter, ceiling)))
    for (const [i, claim] of hold.claims.entries()) {
      const ceiling = this.#ceiling(claim.counter, claim.ceiling)
      const asked = sum(hold.claims.slice(0, i + 1).filter(({ counter }) => name(counter) === name(claim.counter)))
      if (ceiling !== null && this.#of(claim.counter) + this.#pending(claim.counter) + asked > ceiling) {
        return { admitted: false, refused: claim, reading: readings()[i] as Reading, readings: readings() }
      }
    }
    this.#holds.set(hold.id, hold)
    return { admitted: true, readings: readings() }
  }

  end(id: string, state: State, record: EndingRecord, actual: Settlement['actual'] | null): Ending {
    const hold = this.#holds.get(id)
    if (hold === undefined) return 'unknown'
    if (this.#ended.has(id)) return 'already_ended'
    this.#ended.set(id, { state, record })
    const done = new Set<string>()
    for (const { counter, amount, ends = 'measured' } of hold.claims) {
      if (ends === 'counted') this.#post(counter, amount)
      if (ends !== 'measured' || actual === null) continue
      const measured = actual[counter.meter]
      if (measured === undefined) this.#post(counter, amount)
      else if (!done.has(name(counter))) this.#post(counter, measured)
      done.add(name(counter))
    }
    return 'ended'
  }

  credit(credit: Credit): 'credited' | 'already_credited' {
    if (this.#credits.has(credit.id)) return 'already_credited'
    this.#credits.set(credit.id, credit)
    return 'credited'
  }

  read(counters: readonly Counter[]): Reading[] {
    return counters.map(counter => this.#reading(counter, null))
  }

  wallet(account: string): Wallet {
    const counter = accountRial(account)
    return { account, credited: this.#credited(account), posted: this.#of(counter), pending: this.#pending(counter) }
  }

  open(): OpenHold[] {
    const open = [...this.#holds.values()].filter(({ id }) => !this.#ended.has(id)).map(({ id, at, record }) => ({ id, at, record }))
    return open.sort((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1))
  }

  /** Of each record: its id and state. */
  states(): [string, RecordState][] {
    const states = [...this.#holds.keys()].map((id): [string, RecordState] => [id, this.#ended.get(id)?.state ?? 'held'])
    return states.sort(([a], [b]) => (a < b ? -1 : 1))
  }

  #ceiling(counter: Counter, ceiling: Claim['ceiling']): Amount | null {
    return ceiling === 'credits' ? this.#credited(accountOf(counter.subject) ?? '') : ceiling
  }

  #credited(account: string): Amount {
    return sum([...this.#credits.values()].filter(credit => credit.account === account))
  }

  #reading(counter: Counter, ceiling: Amount | null): Reading {
    return { counter, ceiling, posted: this.#of(counter), pending: this.#pending(counter) }
  }

  #of(counter: Counter): Amount {
    return this.#posted.get(name(counter)) ?? 0n
  }

  /** Never kept, always summed up: whatever is pending is of an open hold. */
  #pending(counter: Counter): Amount {
    const claims = [...this.#holds.values()].filter(({ id }) => !this.#ended.has(id)).flatMap(hold => hold.claims)
    return sum(claims.filter(claim => name(claim.counter) === name(counter)))
  }

  #post(counter: Counter, amount: Amount): void {
    this.#posted.set(name(counter), this.#of(counter) + amount)
  }
}

function name({ meter, subject, window }: Counter): string {
  return JSON.stringify([meter, subject, window.kind, window.start])
}

function sum(amounts: readonly { readonly amount: Amount }[]): Amount {
  return amounts.reduce((total, { amount }) => total + amount, 0n)
}
