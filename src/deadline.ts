import { InFlight } from './in-flight.js'

/** What Node's timers can wait at most. */
const LONGEST_MS = 2 ** 31 - 1
/** With this many or more under way they may be reached so much later. */
const MANY = 256
const MANY_LATER_MS = 10

/** Those that are set, and the one timer that all of them share: to set and clear one of Node's for each request costs more than a request's log line. */
const set = new InFlight<Deadline>()
let timer: NodeJS.Timeout | undefined
/** Of the monotonic clock, in milliseconds. */
let goesOff = Number.POSITIVE_INFINITY

/**
 * A moment that is moved often and seldom reached. To move it later, or to clear it, costs an assignment: the timer is left to go off, and set
 * again for the rest. Never reached early. Keeps the process alive while it is set.
 */
export class Deadline {
  readonly #reached: () => void
  /** Of the monotonic clock, in milliseconds. */
  #at = Number.POSITIVE_INFINITY
  /** Only InFlight writes it. */
  place = -1

  constructor(reached: () => void) {
    this.#reached = reached
  }

  /** When it will be reached. */
  get at(): number {
    return this.#at
  }

  /** From now on it is then; `Infinity`: never. `at`, `now`: of the monotonic clock, in milliseconds. */
  move(at: number, now: number): void {
    if (at === Number.POSITIVE_INFINITY) {
      this.clear()
      return
    }
    if (this.#at === Number.POSITIVE_INFINITY) add(this)
    this.#at = at
    if (at < goesOff) arm(at, now)
  }

  clear(): void {
    if (this.#at === Number.POSITIVE_INFINITY) return
    this.#at = Number.POSITIVE_INFINITY
    set.remove(this)
    if (set.size === 0) timer?.unref()
  }

  /** For the timer alone: it is over, unless what was reached before it has moved it. */
  reach(now: number): void {
    if (this.#at > now) return
    this.clear()
    this.#reached()
  }
}

function add(deadline: Deadline): void {
  set.add(deadline)
  if (set.size === 1) timer?.ref()
}

function arm(at: number, now: number): void {
  clearTimeout(timer)
  goesOff = at
  timer = setTimeout(wake, Math.min(Math.max(Math.ceil(at - now), 1), LONGEST_MS))
}

function wake(): void {
  timer = undefined
  goesOff = Number.POSITIVE_INFINITY
  const now = performance.now()
  for (const deadline of [...set].filter(({ at }) => at <= now)) deadline.reach(now)
  let soonest = Number.POSITIVE_INFINITY
  for (const { at } of set) if (at < soonest) soonest = at
  if (set.size >= MANY) soonest = Math.max(soonest, now + MANY_LATER_MS)
  if (soonest < goesOff) arm(soonest, now)
}
