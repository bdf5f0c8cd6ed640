import type { LiveEvent, State } from '../control/live.js'

type Ended = Extract<LiveEvent, { kind: 'ended' }>

/** Sums of the requests of one name, or of all of them. */
export interface Sums {
  readonly name: string
  readonly requests: number
  readonly refused: number
  /** Held, and nothing came of it, or it broke off. */
  readonly failed: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly rial: bigint
  /** Milliseconds; `null`: none was answered. */
  readonly median: number | null
  readonly slow: number | null
}

/** What a look at the last minute shows. */
export interface Figures {
  /** Milliseconds that the figures are of: a minute, or as long as somebody has watched. */
  readonly span: number
  readonly state: State | null
  readonly total: Sums
  /** Of the keys and of the models, the busiest first. */
  readonly keys: readonly Sums[]
  readonly models: readonly Sums[]
  /** Codes of refusals and failures, the most frequent first. */
  readonly codes: readonly { readonly code: string; readonly status: number; readonly count: number }[]
  /** The slowest that were answered. */
  readonly slowest: readonly Ended['line'][]
  /** Requests that were not told of. */
  readonly missed: number
}

/** The figures are of the last minute. Milliseconds. */
const WINDOW_MS = 60_000
const SLOWEST = 10

/** Gathers what a gateway tells. Memory is bounded by a minute's requests. `now`: milliseconds, of any clock that goes forward. */
export class Gathered {
  readonly #since: number
  #ended: { readonly at: number; readonly event: Ended }[] = []
  #state: State | null = null
  #missed = 0

  constructor(now: number) {
    this.#since = now
  }

  add(event: LiveEvent, now: number): void {
    if (event.kind === 'ended') this.#ended.push({ at: now, event })
    else if (event.kind === 'missed') this.#missed += event.count
    else this.#state = event.state
  }

  figures(now: number): Figures {
    const first = this.#ended.findIndex(({ at }) => at > now - WINDOW_MS)
    this.#ended = first === -1 ? [] : this.#ended.slice(first)
    const total = new Sum('total')
    const keys = new Map<string, Sum>()
    const models = new Map<string, Sum>()
    const codes = new Map<string, { code: string; status: number; count: number }>()
    for (const { event } of this.#ended) {
      const { key, model, code, status } = event.line
      total.add(event)
      sumOf(keys, key ?? '(none)').add(event)
      if (model !== null) sumOf(models, model).add(event)
      if (code === null) continue
      const counted = codes.get(code) ?? { code, status, count: 0 }
      counted.count++
      codes.set(code, counted)
    }
    const answered = this.#ended.map(({ event }) => event.line).filter(({ code }) => code === null)
    return {
      span: Math.min(WINDOW_MS, Math.max(1000, now - this.#since)),
      state: this.#state,
      total: total.sums(),
      keys: busiest(keys),
      models: busiest(models),
      codes: [...codes.values()].sort((a, b) => b.count - a.count || a.code.localeCompare(b.code)),
      slowest: answered.sort((a, b) => b.duration_ms - a.duration_ms).slice(0, SLOWEST),
      missed: this.#missed,
    }
  }
}

class Sum {
  #requests = 0
  #refused = 0
  #failed = 0
  #input = 0
  #output = 0
  #rial = 0n
  readonly #durations: number[] = []

  constructor(readonly name: string) {}

  add({ state, line }: Ended): void {
    this.#requests++
    if (state === 'refused') this.#refused++
    else if (line.code !== null) this.#failed++
    else this.#durations.push(line.duration_ms)
    this.#input += line.input_tokens ?? 0
    this.#output += line.output_tokens ?? 0
    this.#rial += line.cost_rial ?? 0n
  }

  sums(): Sums {
    const sorted = Float64Array.from(this.#durations).sort()
    const at = (part: number): number | null => sorted[Math.ceil(part * sorted.length) - 1] ?? null
    return {
      name: this.name,
      requests: this.#requests,
      refused: this.#refused,
      failed: this.#failed,
      inputTokens: this.#input,
      outputTokens: this.#output,
      rial: this.#rial,
      median: at(0.5),
      slow: at(0.95),
    }
  }
}

function sumOf(sums: Map<string, Sum>, name: string): Sum {
  let sum = sums.get(name)
  if (sum === undefined) {
    sum = new Sum(name)
    sums.set(name, sum)
  }
  return sum
}

function busiest(sums: ReadonlyMap<string, Sum>): Sums[] {
  return [...sums.values()].map(sum => sum.sums()).sort((a, b) => b.requests - a.requests || a.name.localeCompare(b.name))
}
