import { createHistogram } from 'node:perf_hooks'

/** Milliseconds between two looks. */
const EVERY_MS = 20
/** So long after the last request is over there are no more. Milliseconds. */
const REST_MS = 1_000

/** Seconds, all of them; 0 where there was no look. */
export interface Lags {
  /** At the last look. */
  readonly last: number
  readonly min: number
  readonly max: number
  readonly mean: number
  readonly stddev: number
  readonly p50: number
  readonly p90: number
  readonly p99: number
}

/**
 * How late the event loop is: what a timer is too late by. Looked at while requests are under way; fifty looks a second would be most of what a gateway does that has none.
 * Keeps no process alive.
 */
export class LoopLag {
  readonly #nanoseconds = createHistogram()
  #last = 0
  #underWay = 0
  #timer: NodeJS.Timeout | null = null
  /** Of the monotonic clock, in milliseconds. */
  #lookedAt = 0
  #busyAt = 0

  /** Requests came, or went. */
  inFlight(change: number): void {
    this.#underWay += change
    if (this.#timer !== null || change <= 0) return
    this.#lookedAt = this.#busyAt = performance.now()
    this.#timer = setInterval(this.#look, EVERY_MS).unref()
  }

  /** Since this was last called. */
  take(): Lags {
    const lags = this.#nanoseconds
    const last = this.#last
    this.#last = 0
    if (lags.count === 0) return { last, min: 0, max: 0, mean: 0, stddev: 0, p50: 0, p90: 0, p99: 0 }
    const { min, max, mean, stddev } = lags
    const [p50, p90, p99] = [50, 90, 99].map(part => lags.percentile(part) / 1e9) as [number, number, number]
    lags.reset()
    return { last, min: min / 1e9, max: max / 1e9, mean: mean / 1e9, stddev: stddev / 1e9, p50, p90, p99 }
  }

  readonly #look = (): void => {
    const now = performance.now()
    // A histogram has no place for nothing.
    const late = Math.max(1, Math.round((now - this.#lookedAt - EVERY_MS) * 1e6))
    this.#nanoseconds.record(late)
    this.#last = late / 1e9
    this.#lookedAt = now
    if (this.#underWay > 0) this.#busyAt = now
    if (this.#timer === null || now - this.#busyAt < REST_MS) return
    clearInterval(this.#timer)
    this.#timer = null
  }
}
