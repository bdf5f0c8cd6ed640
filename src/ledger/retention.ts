import type { DayOf } from './daily-sums.js'

/** A step of pruning: some records, in the order of their ids. */
export interface Pruning {
  /** Records that were admitted before this moment; the start of a day, so that no day is in both its records and its sum. */
  readonly before: number
  readonly dayOf: DayOf
  /** The `next` of the step before. */
  readonly from?: string
}

export interface Pruned {
  readonly records: number
  /** `null`: there are no more. */
  readonly next: string | null
}

/** A ledger that can let go of old records, and keeps sums of them by day. No counter and no balance changes. */
export interface Prunable {
  /** One step, in a transaction of at most some milliseconds. Does nothing, and says where to go on, while a report or a check needs the records to stay. */
  prune(step: Pruning): Promise<Pruned>
}

export interface RetentionOptions {
  readonly ledger: Prunable
  /** How long a record is kept, at least. Milliseconds. */
  readonly retention: number
  readonly dayOf: DayOf
  readonly now: () => number
  /** Requests under way. */
  readonly busy: () => number
  /** Hears of each time that records were pruned. */
  readonly pruned: (records: number, before: number) => void
  readonly failed: (error: unknown) => void
}

/** From one look for old records to the next. */
const LOOK_MS = 60 * 60_000
/** A start has other things to do. */
const FIRST_LOOK_MS = 1000
/**
 * Between two steps of 100 records: no request is under way, some are, or half as many as at the busiest moment that was seen, or more. Under a load
 * that never ends that is still 40 million records a day, for 1 % of the event loop.
 */
const REST_MS = { idle: 20, busy: 60, peak: 200 } as const
/** Of the busiest moment that was seen, this much counts at the next look. */
const FADING = 0.9

/** Prunes what has become older than it is to be kept, step by step, the slower the more requests are under way. */
export class Retention {
  readonly #options: RetentionOptions
  #timer: NodeJS.Timeout | undefined
  #peak = 0
  #closed = false
  #step: Promise<void> = Promise.resolve()

  constructor(options: RetentionOptions) {
    this.#options = options
    this.#wait(FIRST_LOOK_MS, () => this.#look())
  }

  /** Resolves when no step is under way, and none will be. */
  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    await this.#step
  }

  #wait(ms: number, run: () => Promise<void>): void {
    if (this.#closed) return
    this.#timer = setTimeout(() => {
      // Once the ledger has failed there is nothing to go on with.
      this.#step = run().catch(error => {
        if (!this.#closed) this.#options.failed(error)
      })
    }, ms).unref()
  }

  async #look(): Promise<void> {
    const { retention, dayOf, now } = this.#options
    this.#peak *= FADING
    await this.#prune(dayOf(now() - retention).start, '', 0)
  }

  async #prune(before: number, from: string, sum: number): Promise<void> {
    const { ledger, dayOf, pruned } = this.#options
    const { records, next } = await ledger.prune({ before, dayOf, from })
    if (next !== null) return this.#wait(this.#rest(), () => this.#prune(before, next, sum + records))
    if (sum + records > 0) pruned(sum + records, before)
    this.#wait(LOOK_MS, () => this.#look())
  }

  #rest(): number {
    const busy = this.#options.busy()
    this.#peak = Math.max(this.#peak, busy)
    if (busy === 0) return REST_MS.idle
    return busy * 2 < this.#peak ? REST_MS.busy : REST_MS.peak
  }
}
