import type { JsonObject } from '../../../json.js'
import type { SandboxOptions } from './options.js'

/** `usage` of an answer as `options.usage` wants it; `undefined` where it is to be left out. `output: null`: the surface generates nothing. */
export function usage(input: number, output: number | null, options: SandboxOptions): JsonObject | undefined {
  const set = options.usage ?? 'report'
  if (set === 'omit') return undefined
  const figures = set === 'report' ? {} : set
  const prompt = figures.input ?? input
  const completion = figures.output ?? output
  const total = figures.total ?? prompt + (completion ?? 0)
  if (completion === null) {
    if (figures.cached === undefined) return { prompt_tokens: prompt, total_tokens: total }
    return { prompt_tokens: prompt, total_tokens: total, prompt_tokens_details: { cached_tokens: figures.cached } }
  }
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: total,
    prompt_tokens_details: { cached_tokens: figures.cached ?? 0 },
    completion_tokens_details: { reasoning_tokens: figures.reasoning ?? 0 },
  }
}
