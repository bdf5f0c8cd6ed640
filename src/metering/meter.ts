import { isObject, type JsonObject } from '../json.js'
import type { Usage } from './usage.js'

export interface MeterOptions {
  /** True: `total_tokens` does not correct a `completion_tokens` that was reported (for providers whose total counts cached input twice). */
  readonly strict: boolean
  /** True: nothing is generated. What is told beside the prompt is not billed, and a total alone is input. Default: false. */
  readonly inputOnly?: boolean
}

/** The most tokens that a report may name: a hundred times what the largest windows hold. */
export const COUNT_MAX = 1_000_000_000

/**
 * A usage object in the format of chat completions, normalised; `null` where it is none. Counts that are missing or null are 0, an explicit 0
 * is a count. One count that is negative, fractional, no number or beyond COUNT_MAX makes the whole usage none: a bill is not made
 * from a figure that can not be, and two of 10^15 would be more than a counter holds.
 *
 * Providers differ in what `completion_tokens` covers (some leave reasoning out), but their totals agree: output is the larger of it and
 * total − prompt. A cached part that is larger than the prompt was reported beside it, and is added to it.
 */
export function usageOf(reported: unknown, options: MeterOptions): Usage | null {
  if (!isObject(reported)) return null
  const inputDetails = isObject(reported.prompt_tokens_details) ? reported.prompt_tokens_details : {}
  const outputDetails = isObject(reported.completion_tokens_details) ? reported.completion_tokens_details : {}
  const prompt = reported.prompt_tokens ?? undefined
  const completion = reported.completion_tokens ?? undefined
  const total = reported.total_tokens ?? undefined
  const cached = inputDetails.cached_tokens ?? reported.prompt_cache_hit_tokens ?? reported.num_cached_tokens ?? 0
  const reasoning = outputDetails.reasoning_tokens ?? 0
  if (prompt === undefined && completion === undefined && total === undefined) return null
  if (!isCount(prompt ?? 0) || !isCount(completion ?? 0) || !isCount(total ?? 0) || !isCount(cached) || !isCount(reasoning)) return null

  if (options.inputOnly && prompt === undefined && total === undefined) return null
  const told = options.inputOnly ? 0 : Number(completion ?? 0)
  // Rerankers report a total alone: all of it is input.
  const read = prompt === undefined ? Math.max(0, Number(total ?? 0) - told) : Number(prompt)
  const beside = cached > read
  let output = told
  if (total !== undefined && !options.inputOnly && (!options.strict || completion === undefined)) {
    const rest = Number(total) - read
    // Cached input that was reported beside the prompt may be in the total, too; it is not output.
    output = Math.max(told, beside && rest > told + reasoning ? rest - cached : rest)
  }
  const input = beside ? read + cached : read
  return { source: 'provider', input, cached, output, reasoning: Math.min(reasoning, output) }
}

/** What is billed where nothing is generated, by a report; `null`: it tells of none. */
export function inputOf(reported: JsonObject): number | null {
  return usageOf(reported, { strict: false, inputOnly: true })?.input ?? null
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= COUNT_MAX
}

/**
 * The usage of a stream, from its parsed chunks in their order. The last usage counts: some servers send zeros first, or running totals with
 * every chunk. A usage that is none (see `usageOf`) does not displace an earlier one.
 *
 * With several choices llama.cpp sends one usage-only chunk (`choices: []`) per choice, right after that choice has finished, each counting
 * its own choice alone: billed by the last, n = 2 would pay half. Usage-only chunks are therefore added up as long as each of them closes
 * exactly one choice; the prompt, which all choices share, counts once. A usage-only chunk that closes none, or several choices at once,
 * speaks for all choices, and from then on the last counts again. llama.cpp's answer that is no stream tells the first choice's output only,
 * and nothing in it tells so: such a figure is left as it is.
 */
export class StreamUsage {
  readonly #options: MeterOptions
  readonly #finished = new Set<number>()
  /** Choices that finished since the last usage-only chunk. */
  #closing = 0
  #perChoice = true
  /** How many usage-only chunks have closed one choice each, and what they come to. */
  #parts = 0
  #sum: Usage | null = null
  #last: Usage | null = null

  constructor(options: MeterOptions) {
    this.#options = options
  }

  /** One event's JSON. The usage of all choices so far, where this is the chunk of a further one alone; else `null`: its own figures hold. */
  add(chunk: JsonObject): Usage | null {
    const choices = Array.isArray(chunk.choices) ? chunk.choices : []
    for (const choice of choices) if (isObject(choice)) this.#choice(choice)
    const usage = usageOf(chunk.usage, this.#options) ?? (isObject(chunk.x_groq) ? usageOf(chunk.x_groq.usage, this.#options) : null)
    if (usage === null) return null
    this.#last = usage
    if (choices.length > 0) return null
    if (this.#closing !== 1) this.#perChoice = false
    this.#closing = 0
    if (!this.#perChoice) return null
    this.#sum = this.#sum === null ? usage : joined(this.#sum, usage)
    return ++this.#parts > 1 ? this.#sum : null
  }

  /** What the stream has reported so far; `null`: nothing. */
  get usage(): Usage | null {
    return this.#perChoice && this.#parts > 1 ? this.#sum : this.#last
  }

  #choice(choice: JsonObject): void {
    if (typeof choice.finish_reason !== 'string') return
    const index = typeof choice.index === 'number' ? choice.index : 0
    if (this.#finished.has(index)) return
    this.#finished.add(index)
    this.#closing++
  }
}

/** Two choices of one request. */
function joined(a: Usage, b: Usage): Usage {
  return {
    source: 'provider',
    input: Math.max(a.input, b.input),
    cached: Math.max(a.cached, b.cached),
    output: a.output + b.output,
    reasoning: a.reasoning + b.reasoning,
  }
}

/** What one choice's usage has to say for all of them: these figures, and all else as it was. */
export function asReport(report: JsonObject, { input, cached, output, reasoning }: Usage): JsonObject {
  const { prompt_tokens_details: read, completion_tokens_details: written } = report
  return {
    ...report,
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    ...(isObject(read) ? { prompt_tokens_details: { ...read, cached_tokens: cached } } : {}),
    ...(isObject(written) ? { completion_tokens_details: { ...written, reasoning_tokens: reasoning } } : {}),
  }
}
