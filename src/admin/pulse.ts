import type { Access } from '../telemetry/log.js'
import type { RecentExchange } from '../telemetry/recent.js'

/** What ended in one second. Tokens of input and output together; Rial. */
export interface Second {
  requests: number
  refused: number
  failed: number
  tokens: number
  rial: bigint
}

/** One try at a target. Milliseconds; `null` where it had none. */
export interface Sample {
  /** Milliseconds since the epoch. */
  readonly at: number
  /** `answered`, or the code of the error. */
  readonly result: string
  readonly ms: number
  /** Until a stream began. */
  readonly first_ms: number | null
  /** Output tokens per second, from the first to the last. */
  readonly pace: number | null
}

/** Seconds that are kept. */
export const SECONDS = 120
/** Tries that are kept of each target. */
export const SAMPLES = 240
const TARGETS_MAX = 500
/** An answer that came in less is no measure of pace. Milliseconds. */
const PACE_MS_MIN = 20

/**
 * The pace of the last two minutes, and how each target has answered lately. Memory is bounded: of targets, which the config names, the 500
 * that were asked last.
 */
export class Pulse {
  readonly #seconds: Second[] = Array.from({ length: SECONDS }, nothing)
  /** Of the newest second. */
  #second = 0
  readonly #targets = new Map<string, Sample[]>()

  /** `now`: milliseconds since the epoch. */
  add({ line, state, attempts, marks }: RecentExchange, now: number): void {
    const second = this.#at(Math.floor(now / 1000))
    second.requests++
    if (state === 'refused') second.refused++
    else if (line.code !== null) second.failed++
    second.tokens += (line.input_tokens ?? 0) + (line.output_tokens ?? 0)
    second.rial += line.cost_rial ?? 0n
    for (const { target, result, ms } of attempts) {
      const answered = result === 'answered'
      this.#sample(target, {
        at: line.time,
        result,
        // A try has answered with the first that there is to tell.
        ms: answered ? ms + Math.max(0, (marks.answered ?? 0) - (marks.first ?? 0)) : ms,
        first_ms: answered && line.stream ? ms : null,
        pace: answered ? paceOf(line, marks) : null,
      })
    }
  }

  /** The last two minutes, oldest first; the last one is the second that is under way. */
  seconds(now: number): readonly Second[] {
    this.#at(Math.floor(now / 1000))
    const oldest = (this.#second + 1) % SECONDS
    return [...this.#seconds.slice(oldest), ...this.#seconds.slice(0, oldest)]
  }

  /** The last tries at a target, oldest first. */
  samples(target: string): readonly Sample[] {
    return this.#targets.get(target) ?? []
  }

  #at(second: number): Second {
    // The seconds between are empty; a clock that was set back goes on in the newest.
    for (let at = Math.max(this.#second, second - SECONDS) + 1; at <= second; at++) this.#seconds[at % SECONDS] = nothing()
    this.#second = Math.max(this.#second, second)
    return this.#seconds[this.#second % SECONDS] as Second
  }

  #sample(target: string, sample: Sample): void {
    const samples = this.#targets.get(target) ?? []
    // Put back last: the first of the map is the one that was asked longest ago.
    this.#targets.delete(target)
    this.#targets.set(target, samples)
    if (samples.length >= SAMPLES) samples.shift()
    samples.push(sample)
    if (this.#targets.size > TARGETS_MAX) this.#targets.delete(this.#targets.keys().next().value as string)
  }
}

function nothing(): Second {
  return { requests: 0, refused: 0, failed: 0, tokens: 0, rial: 0n }
}

function paceOf({ output_tokens, stream }: Access, { sent, first, answered }: RecentExchange['marks']): number | null {
  const from = stream ? first : sent
  if (output_tokens === null || output_tokens < 2 || from === null || answered === null || answered - from < PACE_MS_MIN) return null
  return (output_tokens * 1000) / (answered - from)
}

/** The value that a part of them do not exceed: 0.5 is the median. `null`: there are none. */
export function quantile(values: readonly number[], part: number): number | null {
  if (values.length === 0) return null
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.ceil(part * sorted.length) - 1)] ?? null
}
