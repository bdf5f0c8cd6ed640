/**
 * A moment that is moved often and seldom reached. To move it later costs an assignment: the timer is left to go off, and set again for the
 * rest. Never reached early.
 */
export class Deadline {
  readonly #reached: () => void
  /** Of the monotonic clock, in milliseconds. */
  #at = Number.POSITIVE_INFINITY
  #goesOff = Number.POSITIVE_INFINITY
  #timer: NodeJS.Timeout | undefined

  constructor(reached: () => void) {
    this.#reached = reached
  }

  /** From now on it is then; `Infinity`: never. `at`, `now`: of the monotonic clock, in milliseconds. */
  move(at: number, now: number): void {
    this.#at = at
    if (at >= this.#goesOff) return
    clearTimeout(this.#timer)
    this.#set(at, now)
  }

  clear(): void {
    this.#at = Number.POSITIVE_INFINITY
    this.#goesOff = Number.POSITIVE_INFINITY
    clearTimeout(this.#timer)
  }

  #set(at: number, now: number): void {
    this.#goesOff = at
    this.#timer = setTimeout(this.#wake, Math.min(Math.ceil(at - now), LONGEST_MS))
  }

  readonly #wake = (): void => {
    this.#goesOff = Number.POSITIVE_INFINITY
    if (this.#at === Number.POSITIVE_INFINITY) return
    const now = performance.now()
    if (now < this.#at) this.#set(this.#at, now)
    else this.#reached()
  }
}

/** What Node's timers can wait at most. */
const LONGEST_MS = 2 ** 31 - 1
