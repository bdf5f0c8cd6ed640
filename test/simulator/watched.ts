import { isGatewayError } from '../../src/errors.js'
import type { Admission, Credit, Ending, EndingRecord, Hold, Ledger, Settlement } from '../../src/ledger/ledger.js'
import { type Books, type Fate, must } from './books.js'

/** Looks at what the gateway asks of its ledger, before it is asked. */
export interface Inspector {
  hold(hold: Hold): void
  end(id: string, fate: Fate, record: EndingRecord, actual: Settlement['actual'] | null): void
}

/**
 * The ledger of one process, with the books beside it: each answer is entered, in the order in which it was given, and what was never answered
 * is in doubt. What belongs to reading alone is the ledger's own.
 */
export class Watched {
  readonly ledger: Ledger
  readonly #books: Books
  readonly #inspector: Inspector
  readonly #dead: () => boolean
  /** Asked for, and not answered yet: how to enter it as doubtful. */
  readonly #asked = new Set<() => void>()
  #abandoned = false
  /** The first thing that was not as it must be; the gateway would take it for a fault of its ledger. */
  violation: unknown = null

  constructor(ledger: Ledger, books: Books, inspector: Inspector, dead: () => boolean) {
    this.#books = books
    this.#inspector = inspector
    this.#dead = dead
    this.ledger = {
      hold: hold => this.#hold(ledger, hold),
      settle: (id, settlement) =>
        this.#end(id, settlement.state, settlement.record, settlement.actual, () => ledger.settle(id, settlement)),
      void: (id, record) => this.#end(id, 'voided', record, null, () => ledger.void(id, record)),
      credit: credit => this.#credit(ledger, credit),
      read: counters => ledger.read(counters),
      wallet: account => ledger.wallet(account),
      open: () => ledger.open(),
      records: query => ledger.records(query),
      verify: () => ledger.verify(),
      recover: at => ledger.recover(at),
      get failure() {
        return ledger.failure
      },
      close: () => ledger.close(),
    }
  }

  get idle(): boolean {
    return this.#asked.size === 0
  }

  /** The process is no more: what it has not heard an answer to, nobody has. */
  abandon(): void {
    for (const doubt of this.#asked) doubt()
    this.#asked.clear()
    this.#abandoned = true
  }

  #hold(ledger: Ledger, hold: Hold): Promise<Admission> {
    this.#check(() => this.#inspector.hold(hold))
    return this.#answered(
      ledger.hold(hold),
      admission => this.#books.held(hold, admission),
      () => this.#books.doubt(hold.id, { kind: 'hold', hold }),
    )
  }

  #end(id: string, fate: Fate, record: EndingRecord, actual: Settlement['actual'] | null, ask: () => Promise<Ending>): Promise<Ending> {
    this.#check(() => this.#inspector.end(id, fate, record, actual))
    return this.#answered(
      ask(),
      ending => {
        must(ending === 'ended', () => `${id} was to end as ${fate}, and the ledger says ${ending}`)
        this.#books.ended(id, fate, actual)
      },
      () => this.#books.doubt(id, { kind: 'end', fate, actual }),
    )
  }

  #credit(ledger: Ledger, credit: Credit): Promise<'credited' | 'already_credited'> {
    return this.#answered(
      ledger.credit(credit),
      answer => this.#books.credited(credit, answer),
      () => this.#books.doubtCredit(credit),
    )
  }

  async #answered<T>(asked: Promise<T>, enter: (answer: T) => void, doubt: () => void): Promise<T> {
    this.#asked.add(doubt)
    try {
      const answer = await asked
      if (this.#dead()) this.#doubt(doubt)
      else this.#check(() => enter(answer))
      return answer
    } catch (error) {
      if (this.#dead() || (isGatewayError(error) && error.code === 'ledger_unavailable')) this.#doubt(doubt)
      throw error
    } finally {
      this.#asked.delete(doubt)
    }
  }

  #doubt(doubt: () => void): void {
    if (!this.#abandoned) doubt()
  }

  #check(look: () => void): void {
    try {
      look()
    } catch (error) {
      this.violation ??= error
    }
  }
}
