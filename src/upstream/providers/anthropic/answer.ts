import { isObject, type Json, type JsonObject } from '../../../json.js'
import { type AnsweredCall, completion, counts, type FinishReason, jsonText, noAnswer, type Reported, reported } from '../../chat/answer.js'
import type { Call } from '../provider.js'
import { failureOf } from './failure.js'

/** A whole message as a chat completion. */
export function completionsOf(body: unknown, call: Call): JsonObject {
  if (isObject(body) && body.type === 'error') throw reported(failureOf(200, body), call)
  if (!isObject(body) || !Array.isArray(body.content)) throw noAnswer('The provider answered with something that is no message.')
  let text: string | null = null
  let reasoning = ''
  const calls: AnsweredCall[] = []
  for (const block of body.content as readonly Json[]) {
    if (!isObject(block)) continue
    if (block.type === 'text') text = (text ?? '') + stringOf(block.text)
    else if (block.type === 'thinking') reasoning += stringOf(block.thinking)
    else if (block.type === 'tool_use') {
      calls.push({ id: stringOf(block.id), name: stringOf(block.name), arguments: jsonText(block.input ?? {}) })
    }
  }
  const choice = {
    text: text ?? (calls.length === 0 ? '' : null),
    reasoning,
    calls,
    finish: finishOf(body.stop_reason),
    logprobs: null,
    extra: {},
  }
  const usage = isObject(body.usage) ? reportedUsage(body.usage) : null
  return completion(call, answerId(body.id, call), new Map([[0, choice]]), usage)
}

/** The provider's id without its prefix. */
export function answerId(id: Json | undefined, call: Call): string {
  return typeof id === 'string' && id !== '' ? id.replace(/^msg_/, '') : call.id
}

/** A reason that is not known counts as an answer that came to its end. */
export function finishOf(reason: Json | undefined): FinishReason {
  switch (reason) {
    case 'max_tokens':
    case 'model_context_window_exceeded':
      return 'length'
    case 'tool_use':
      return 'tool_calls'
    case 'refusal':
      return 'content_filter'
    default:
      return 'stop'
  }
}

/** The API counts what it read from its cache and what it wrote to it apart from the rest of the input. */
export function reportedUsage(usage: JsonObject): Reported | null {
  const top = counts(usage, ['input_tokens', 'cache_creation_input_tokens', 'cache_read_input_tokens', 'output_tokens'])
  const thought = counts(isObject(usage.output_tokens_details) ? usage.output_tokens_details : {}, ['thinking_tokens'])
  const all = iterations(usage.iterations)
  if (top === null || thought === null || all === null) return null
  const written = top.cache_creation_input_tokens
  const read = top.cache_read_input_tokens
  return {
    input: Math.max(top.input_tokens, all.input) + written + read,
    output: Math.max(top.output_tokens, all.output),
    cached: read,
    cacheWrite: written,
    reasoning: thought.thinking_tokens,
  }
}

export function stringOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : ''
}

/** A message that compacted its context on the way lists each pass; the figures beside the list are those of the last one. */
function iterations(list: Json | undefined): { readonly input: number; readonly output: number } | null {
  let input = 0
  let output = 0
  for (const pass of Array.isArray(list) ? (list as readonly Json[]) : []) {
    const read = isObject(pass) ? counts(pass, ['input_tokens', 'output_tokens']) : null
    if (read === null) return null
    input += read.input_tokens
    output += read.output_tokens
  }
  return { input, output }
}
