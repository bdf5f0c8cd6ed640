import { GatewayError } from '../errors.js'
import type { Admission, Claim, Counter, Ending, EndingRecord, Hold, Reading, RequestLedger, Settlement, Wallet } from '../ledger/ledger.js'
import { unavailable } from '../ledger/unavailable.js'
import { readAnswers } from './answers.js'
import { type Call, OperationWriter } from './operations.js'

const CLOSED = 'the ledger is closed'
const NO_CLAIMS: readonly Claim[] = []

interface Asked {
  /** Of a hold. */
  readonly claims: readonly Claim[]
  readonly resolve: (value: never) => void
  readonly reject: (error: unknown) => void
}

/**
 * The ledger as a worker has it: it asks the process that owns it. All that is asked in one turn of the event loop goes over at once, and all that became
 * durable together comes back so. What is asked when the owner is gone is never answered: the worker ends with it.
 */
export class RemoteLedger implements RequestLedger {
  readonly #send: (text: string) => void
  readonly #writer = new OperationWriter()
  /** By place; a place is used again when its answer is there. */
  readonly #asked: (Asked | undefined)[] = []
  readonly #free: number[] = []
  #scheduled = false
  #under = 0
  #failure: string | null = null
  #idle: (() => void)[] = []

  /** `send` takes a text to the owner's LedgerDoor. */
  constructor(send: (text: string) => void) {
    this.#send = send
  }

  /** What the owner has answered. */
  answered(text: string): void {
    for (const answer of readAnswers(text)) {
      const { claims, resolve, reject } = this.#asked[answer.place] as Asked
      this.#asked[answer.place] = undefined
      this.#free.push(answer.place)
      this.#under--
      if (answer.kind === 'admission') resolve(answer.admission(claims) as never)
      else if (answer.kind === 'value') resolve(answer.value as never)
      else reject(this.#failed(answer.error))
    }
    if (this.#under === 0) for (const resolve of this.#idle.splice(0)) resolve()
  }

  hold(hold: Hold): Promise<Admission> {
    return this.#ask(hold.claims, place => this.#writer.hold(place, hold))
  }

  settle(id: string, settlement: Settlement): Promise<Ending> {
    return this.#ask(NO_CLAIMS, place => this.#writer.settle(place, id, settlement))
  }

  void(id: string, record: EndingRecord): Promise<Ending> {
    return this.#ask(NO_CLAIMS, place => this.#writer.void(place, id, record))
  }

  read(counters: readonly Counter[]): Promise<Reading[]> {
    return this.#call('read', [
      counters.map(({ meter, subject, window: { kind, start, end } }) => ({ meter, subject, window: { kind, start, end } })),
    ])
  }

  wallet(account: string): Promise<Wallet> {
    return this.#call('wallet', [account])
  }

  /** Lets what was asked for be answered; what is asked after this is rejected. The ledger itself is its owner's. */
  async close(): Promise<void> {
    this.#failure ??= CLOSED
    if (this.#under > 0) await new Promise<void>(resolve => this.#idle.push(resolve))
  }

  #call<T>(name: Call, given: readonly unknown[]): Promise<T> {
    return this.#ask(NO_CLAIMS, place => this.#writer.call(place, name, given))
  }

  #ask<T>(claims: readonly Claim[], write: (place: number) => void): Promise<T> {
    if (this.#failure !== null) return Promise.reject(unavailable(this.#failure))
    return new Promise((resolve, reject) => {
      const place = this.#free.pop() ?? this.#asked.length
      this.#asked[place] = { claims, resolve, reject }
      try {
        write(place)
      } catch (error) {
        this.#asked[place] = undefined
        this.#free.push(place)
        reject(error)
        return
      }
      this.#under++
      if (this.#scheduled) return
      this.#scheduled = true
      // All that the other callbacks of this turn have to say goes along.
      setImmediate(() => {
        this.#scheduled = false
        this.#send(this.#writer.take())
      })
    })
  }

  /** A ledger that can not be written stays so: nobody need ask it again. */
  #failed(error: Error): Error {
    if (error instanceof GatewayError && error.code === 'ledger_unavailable')
      this.#failure ??= (error.cause as Error | undefined)?.message ?? error.message
    return error
  }
}
