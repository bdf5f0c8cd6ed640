import type { Counter, Ledger, OpenHold, RequestLedger } from '../ledger/ledger.js'
import { AnswerWriter } from './answers.js'
import { type Call, type Operation, OperationReader } from './operations.js'

/** What the door opens to, and what it asks for itself. */
export interface OwnedLedger extends RequestLedger {
  recover(at: number, ids: ReadonlySet<string>): Promise<OpenHold[]>
}

/** One worker's way to the ledger, at its owner's end. Knows which holds the worker has open. */
export class LedgerDoor {
  readonly #ledger: OwnedLedger
  readonly #send: (text: string) => void
  readonly #reader = new OperationReader()
  readonly #writer = new AnswerWriter()
  readonly #open = new Set<string>()
  #under = 0
  #scheduled = false
  #gone = false
  #idle: (() => void)[] = []

  /** `send` takes a text to the worker's RemoteLedger. */
  constructor(ledger: OwnedLedger, send: (text: string) => void) {
    this.#ledger = ledger
    this.#send = send
  }

  /** What the worker asks. It runs in the order in which it came, in the ledger's own batches. */
  asked(text: string): void {
    this.#reader.read(text, (place, operation) => {
      this.#under++
      this.#run(place, operation).then(
        () => this.#ran(),
        error => {
          this.#writer.failure(place, error)
          this.#ran()
        },
      )
    })
  }

  /**
   * The worker is gone, and all that it has asked was given to `asked`: what it left open is ended, as recovery does at a start. Resolves with that, oldest
   * first. Rejects where the ledger has failed; the next start recovers then.
   */
  async gone(at: number): Promise<OpenHold[]> {
    this.#gone = true
    if (this.#under > 0) await new Promise<void>(resolve => this.#idle.push(resolve))
    return this.#open.size === 0 ? [] : this.#ledger.recover(at, this.#open)
  }

  #run(place: number, operation: Operation): Promise<void> {
    switch (operation.kind) {
      case 'hold': {
        const { hold } = operation
        return this.#ledger.hold(hold).then(admission => {
          if (admission.admitted) this.#open.add(hold.id)
          this.#writer.admission(place, admission, hold.claims)
        })
      }
      case 'settle':
        return this.#end(place, operation.id, this.#ledger.settle(operation.id, operation.settlement))
      case 'void':
        return this.#end(place, operation.id, this.#ledger.void(operation.id, operation.record))
      default:
        return this.#call(operation.name, operation.given).then(value => this.#writer.value(place, value))
    }
  }

  #end(place: number, id: string, ended: ReturnType<Ledger['void']>): Promise<void> {
    return ended.then(ending => {
      this.#open.delete(id)
      this.#writer.ending(place, ending)
    })
  }

  /** Rejects whatever else a worker asks for: what others hold is none of its own. */
  async #call(name: Call, [given]: readonly unknown[]): Promise<unknown> {
    if (name === 'read') return this.#ledger.read(given as Counter[])
    if (name === 'wallet') return this.#ledger.wallet(given as string)
    throw new Error(`a worker can not ask for ${name}`)
  }

  /** What became durable together is answered together: all of it has been written down before the next tick. */
  #ran(): void {
    this.#under--
    if (this.#under === 0) for (const resolve of this.#idle.splice(0)) resolve()
    if (this.#scheduled || this.#gone) return
    this.#scheduled = true
    process.nextTick(() => {
      this.#scheduled = false
      if (!this.#gone) this.#send(this.#writer.take())
    })
  }
}
