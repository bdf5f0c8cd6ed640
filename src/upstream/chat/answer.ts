import { isObject, type Json, type JsonObject } from '../../json.js'
import type { Call, Failure } from '../providers/provider.js'
import { ProviderFailure } from '../providers/provider.js'

export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter'

/** What a provider reported, in tokens; `total` where it reports one of its own, `cacheWrite` where it knows of such. */
export interface Reported {
  /** All input, cached tokens included. */
  readonly input: number
  /** All output, reasoning included. */
  readonly output: number
  readonly total?: number
  readonly cached: number
  readonly cacheWrite?: number
  readonly reasoning: number
}

/** One call of a tool as the client reads it. `arguments` is JSON text. */
export interface AnsweredCall {
  readonly id: string
  readonly name: string
  readonly arguments: string
  /** Further fields of the call, such as `extra_content`. */
  readonly extra?: JsonObject
}

export interface Choice {
  readonly text: string | null
  readonly reasoning: string
  readonly calls: readonly AnsweredCall[]
  readonly finish: FinishReason
  readonly logprobs: Json
  /** Further fields of the choice, such as `native_finish_reason`. */
  readonly extra: JsonObject
}

/** A whole chat completion. Without `usage` where the provider reported none: it is counted then, and nothing is billed as zero. */
export function completion(call: Call, id: string, choices: ReadonlyMap<number, Choice>, usage: Reported | null): JsonObject {
  return {
    id: completionId(id),
    object: 'chat.completion',
    created: call.created,
    model: call.model.id,
    choices: [...choices].map(([index, choice]) => ({
      index,
      message: messageOf(choice),
      logprobs: choice.logprobs,
      finish_reason: choice.finish,
      ...choice.extra,
    })),
    ...(usage === null ? {} : { usage: usageOf(usage) }),
  }
}

export function completionId(id: string): string {
  return `chatcmpl-${id}`
}

export function usageOf(usage: Reported): JsonObject {
  return {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: Math.max(usage.total ?? 0, usage.input + usage.output),
    prompt_tokens_details: {
      cached_tokens: usage.cached,
      ...(usage.cacheWrite === undefined ? {} : { cache_write_tokens: usage.cacheWrite }),
    },
    completion_tokens_details: { reasoning_tokens: usage.reasoning },
  }
}

/** Reads token counts, absent ones as 0. `null` where one is negative, fractional or no number: then none can be believed. */
export function counts<const Name extends string>(source: JsonObject, names: readonly Name[]): { readonly [N in Name]: number } | null {
  const read = {} as { [N in Name]: number }
  for (const name of names) {
    const value = source[name] ?? 0
    if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) return null
    read[name] = value
  }
  return read
}

/** The JSON of an event's data. */
export function eventJson(data: string): unknown {
  try {
    return JSON.parse(data)
  } catch {
    throw noAnswer('The provider sent an event that is no JSON object.')
  }
}

/** The JSON object of an event's data. */
export function eventObject(data: string): JsonObject {
  const event = eventJson(data)
  if (!isObject(event)) throw noAnswer('The provider sent an event that is no JSON object.')
  return event
}

/** A value that the provider sent, as JSON text. Throws where it is nested too deeply to be written. */
export function jsonText(value: Json): string {
  try {
    return JSON.stringify(value)
  } catch (error) {
    if (error instanceof RangeError) throw noAnswer('The provider answered with arguments that are nested too deeply.')
    throw error
  }
}

/** The error to throw for what a provider reported; its words never carry the key that we sent it. */
export function reported(failure: Failure, call: Call): ProviderFailure {
  const key = call.model.provider.api_key
  if (failure.message === undefined || key === null || key === '') return new ProviderFailure(failure)
  return new ProviderFailure({ ...failure, message: failure.message.replaceAll(key, '***') })
}

/** An answer with status 200 that is none. */
export function noAnswer(what: string): ProviderFailure {
  return new ProviderFailure({ status: 502, code: 'upstream_invalid_response', message: what })
}

/** A stream that ended before its answer did. */
export function cutShort(): ProviderFailure {
  return new ProviderFailure({
    status: 502,
    code: 'upstream_error',
    message: 'The provider ended the stream before the answer was complete.',
  })
}

function messageOf(choice: Choice): JsonObject {
  return {
    role: 'assistant',
    content: choice.text,
    refusal: null,
    ...(choice.reasoning === '' ? {} : { reasoning_content: choice.reasoning }),
    ...(choice.calls.length === 0
      ? {}
      : {
          tool_calls: choice.calls.map(({ id, name, arguments: args, extra }) => ({
            id,
            type: 'function',
            function: { name, arguments: args },
            ...extra,
          })),
        }),
  }
}
