import type { Timeouts } from '../../../config/config.js'
import type { Delivery, Receiver, TransportFailure } from '../provider.js'

/** One piece of an answer, after a silence. */
export interface Step {
  readonly waitMs: number
  readonly data: string | Buffer
}

/** An answer before it is given: what comes, and after which silence. */
export interface Answer {
  /** Infinity: never. */
  readonly delayMs: number
  /** `null`: the connection fails before any answer, and `ending` says how. */
  readonly head: { readonly status: number; readonly headers: Readonly<Record<string, string>> } | null
  readonly steps: Iterable<Step>
  readonly ending: 'end' | TransportFailure
}

/** Pieces given in one turn of the event loop: a long answer without a pace lets others have their turn. */
const BURST = 64

/** The longest delay that a timer of Node holds. */
const TIMER_MAX_MS = 2 ** 31 - 1

/**
 * Gives an answer to a receiver: never within the constructor or `resume`, at the earliest in the next microtask; nothing while paused,
 * nothing after an abort. A silence that is longer than the timeouts allow ends in a failure `timeout`, as it would with a server.
 * `ended` is called once: after the receiver's last call, or at the abort.
 */
export class Playback implements Delivery {
  readonly sent: boolean
  readonly #answer: Answer
  readonly #receiver: Receiver
  readonly #timeouts: Timeouts
  readonly #ended: () => void
  readonly #steps: Iterator<Step>
  #step: Step | undefined
  #timer: NodeJS.Timeout | undefined
  #silenceMs = 0
  #headed = false
  #paused = false
  #scheduled = false
  #over = false

  constructor(answer: Answer, receiver: Receiver, timeouts: Timeouts, ended: () => void) {
    this.#answer = answer
    this.#receiver = receiver
    this.#timeouts = timeouts
    this.#ended = ended
    this.#steps = answer.steps[Symbol.iterator]()
    this.sent = answer.ending === 'end' || answer.ending.sent
    if (answer.delayMs > 0) this.#wait(answer.delayMs, 'first_byte')
    else this.#schedule()
  }

  pause(): void {
    this.#paused = true
  }

  resume(): void {
    if (!this.#paused) return
    this.#paused = false
    this.#schedule()
  }

  abort(): void {
    this.#close()
  }

  #schedule(): void {
    if (this.#scheduled || this.#over) return
    this.#scheduled = true
    queueMicrotask(this.#run)
  }

  readonly #run = (): void => {
    this.#scheduled = false
    for (let given = 0; given < BURST; given++) {
      if (this.#over || this.#paused || this.#timer !== undefined) return
      this.#advance()
    }
    if (this.#over) return
    this.#scheduled = true
    setImmediate(this.#run)
  }

  /** Gives one thing, or begins to wait for it. */
  #advance(): void {
    const { head, ending } = this.#answer
    if (!this.#headed && head !== null) {
      this.#headed = true
      this.#receiver.head(head.status, head.headers)
      return
    }
    let step = this.#step
    if (step === undefined) {
      const next = this.#steps.next()
      if (next.done) {
        this.#close(() => {
          if (ending === 'end') this.#receiver.end()
          else this.#receiver.failed(ending)
        })
        return
      }
      step = next.value
      if (step.waitMs > 0) {
        this.#step = step
        this.#wait(step.waitMs, 'idle')
        return
      }
    }
    this.#step = undefined
    this.#receiver.data(typeof step.data === 'string' ? Buffer.from(step.data) : step.data)
  }

  #wait(ms: number, name: 'first_byte' | 'idle'): void {
    const left = this.#timeouts.total - this.#silenceMs
    const limit = Math.min(this.#timeouts[name], left)
    this.#silenceMs += ms
    this.#timer =
      ms <= limit
        ? setTimeout(() => {
            this.#timer = undefined
            this.#run()
          }, ms)
        : setTimeout(
            () => {
              const which = limit === left ? 'total' : name
              const message = `${which}: the sandbox was silent for ${limit} ms.`
              this.#close(() => this.#receiver.failed({ kind: 'timeout', sent: true, message }))
            },
            Math.min(limit, TIMER_MAX_MS),
          )
  }

  #close(last?: () => void): void {
    if (this.#over) return
    this.#over = true
    clearTimeout(this.#timer)
    last?.()
    this.#ended()
  }
}
