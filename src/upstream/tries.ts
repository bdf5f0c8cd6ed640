import { GatewayError, isGatewayError } from '../errors.js'
import type { Target } from '../understand.js'
import type { Condition, Health } from './health.js'
import { TargetFailure, troubleOf } from './trouble.js'

/** Pause before a target is asked again: at most this at first, doubled with each further one. Milliseconds. */
const BACKOFF_MS = 250
const BACKOFF_MAX_MS = 4_000
/** A provider that wants more time than this has to be asked by the client itself. Milliseconds. */
const PATIENCE_MS = 5_000

/** Whose turn it is first. */
const TURNS: readonly (readonly Condition[])[] = [['up', 'probe'], ['doubtful']]

export interface TriesFacts {
  /** In the order in which they are to be tried. */
  readonly targets: readonly Target[]
  /** Most tries in all. */
  readonly attempts: number
  /** No try begins later than this. Of the monotonic clock. */
  readonly deadline: number
  readonly health: Pick<Health, 'condition' | 'waitMs' | 'limited'>
  /** From 0 up to 1. */
  readonly random: () => number
}

/** What to do next. */
export interface Step {
  readonly target: Target
  /** Milliseconds to wait before. */
  readonly waitMs: number
}

interface Later {
  readonly target: Target
  readonly at: number
}

/**
 * Which target of a request is tried next, and when. Each that is up has its turn in order, then those in doubt; after that, those whose
 * trouble may pass are asked again. Decides only: it makes no request and waits for nothing.
 */
export class Tries {
  readonly #facts: TriesFacts
  readonly #untried: Target[]
  readonly #later: Later[] = []
  readonly #failures: GatewayError[] = []
  #refusal: GatewayError | null = null
  #begun = 0

  constructor(facts: TriesFacts) {
    this.#facts = facts
    this.#untried = [...facts.targets]
  }

  /** `null`: there is nothing left to try, and `error` says why. */
  next(now: number): Step | null {
    const { attempts, deadline, health } = this.#facts
    if (this.#begun >= attempts || (this.#begun > 0 && now >= deadline)) return null
    for (const conditions of TURNS) {
      const index = this.#untried.findIndex(target => conditions.includes(health.condition(target.name, now)))
      if (index >= 0) return this.#begin(this.#untried.splice(index, 1)[0] as Target, 0)
    }
    let soonest = 0
    for (const [index, { at }] of this.#later.entries()) if (at < (this.#later[soonest] as Later).at) soonest = index
    const [again] = this.#later.splice(soonest, 1)
    if (again === undefined) return null
    const waitMs = Math.max(0, again.at - now, health.waitMs(again.target.name, now))
    return waitMs > PATIENCE_MS || now + waitMs >= deadline ? null : this.#begin(again.target, waitMs)
  }

  /** The target of this step can not be asked for what is wanted: that was no try, and the next has its turn. */
  passOver(refusal: GatewayError): void {
    this.#begun--
    this.#refusal ??= refusal
  }

  /** A try has failed. False: that was it, whatever is left. */
  failed({ target }: Step, error: unknown, now: number): boolean {
    if (!isGatewayError(error) || !error.retryable) return false
    const { passing, waitS = 0 } = troubleOf(error)
    this.#failures.push(error)
    if (passing) {
      const backoff = Math.min(BACKOFF_MAX_MS, BACKOFF_MS * 2 ** (this.#begun - 1)) * (0.5 + this.#facts.random() / 2)
      this.#later.push({ target, at: now + Math.max(backoff, waitS * 1000) })
    }
    return true
  }

  /**
   * Why there is no answer: the last failure, or the first refusal where no target can be asked for it; but 429 where every target is at its rate limit, with the soonest moment at which one may have
   * room, and `overloaded` where all are being left alone.
   */
  error(now: number): GatewayError {
    const { health, targets } = this.#facts
    const last = this.#failures.at(-1)
    if (last === undefined && this.#refusal !== null && this.#untried.length === 0) return this.#refusal
    const skipped = this.#untried.map(target => ({ limited: health.limited(target.name), s: health.waitMs(target.name, now) / 1000 }))
    const limited = this.#failures.every(({ code }) => code === 'upstream_rate_limited') && skipped.every(({ limited }) => limited)
    if (last !== undefined && !limited) return last
    const waits = [...skipped.map(({ s }) => s), ...this.#failures.map(({ retryAfter = 1 }) => retryAfter)]
    const retryAfter = Math.max(1, Math.ceil(Math.min(...waits)))
    const again = `Try again in ${retryAfter} s.`
    if (limited) {
      if (last !== undefined && last.retryAfter === retryAfter) return last
      return new TargetFailure(
        'upstream_rate_limited',
        `The provider is at its rate limit. ${again}`,
        { against: null, passing: false },
        {
          retryAfter,
          ...(retryAfter > 60 ? { shouldRetry: false } : {}),
        },
      )
    }
    const what = targets.length === 1 ? 'The provider of this model has' : `All ${targets.length} targets of this model have`
    return new GatewayError('overloaded', `${what} failed several times in a row, and it is too early for another try. ${again}`, {
      retryAfter,
      origin: 'upstream',
    })
  }

  #begin(target: Target, waitMs: number): Step {
    this.#begun++
    return { target, waitMs }
  }
}
