import { isObject, type Json, type JsonObject } from '../../../json.js'
import { type AnsweredCall, type Choice, completion, counts, type FinishReason, type Reported } from '../../chat/answer.js'
import { type Call, ProviderFailure } from '../provider.js'

/** Cohere's whole answer as a chat completion. Throws `ProviderFailure` where it ended in an error. */
export function chatAnswer(body: unknown, call: Call): JsonObject {
  if (!isObject(body) || !isObject(body.message)) throw new TypeError('The answer has no message.')
  const finish = finishReason(body.finish_reason, body)
  const { content, tool_plan: plan, tool_calls: calls } = body.message
  const parts: readonly Json[] = Array.isArray(content) ? content : []
  const thinking = joined(parts, 'thinking')
  const text = joined(parts, 'text') || (typeof plan === 'string' ? plan : '')
  const toolCalls = Array.isArray(calls) ? calls.flatMap(wholeCall) : []
  const choice: Choice = {
    text: text === '' && toolCalls.length > 0 ? null : text,
    reasoning: thinking,
    calls: toolCalls,
    finish,
    logprobs: null,
    extra: {},
  }
  return completion(call, call.id, new Map([[0, choice]]), reportedUsage(body.usage))
}

function wholeCall(given: Json): AnsweredCall[] {
  if (!isObject(given) || !isObject(given.function)) return []
  const text = argumentsOf(given)
  return [{ ...named(given, given.function), arguments: text === '' || text === 'null' ? '{}' : text }]
}

/** The arguments of a call, as the text that they are; empty where there are none. */
export function argumentsOf(call: Json | undefined): string {
  return isObject(call) && isObject(call.function) && typeof call.function.arguments === 'string' ? call.function.arguments : ''
}

/** The identifier and the name of a call. */
export function named(call: JsonObject, called: JsonObject): Pick<AnsweredCall, 'id' | 'name'> {
  return { id: textOf(call.id), name: textOf(called.name) }
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : ''
}

function joined(parts: readonly Json[], type: 'text' | 'thinking'): string {
  return parts.map(part => (isObject(part) && part.type === type && typeof part[type] === 'string' ? part[type] : '')).join('')
}

const FINISH: Readonly<Record<string, FinishReason>> = {
  MAX_TOKENS: 'length',
  TOOL_CALL: 'tool_calls',
  COMPLETE: 'stop',
  STOP_SEQUENCE: 'stop',
}

/** A reason that is not known yet is `stop`: the answer did end. */
export function finishReason(reason: Json | undefined, told: JsonObject): FinishReason {
  if (reason === 'ERROR' || reason === 'TIMEOUT') {
    const message = typeof told.error === 'string' ? told.error : `The provider's generation ended with ${reason}.`
    throw new ProviderFailure({ status: reason === 'TIMEOUT' ? 504 : 502, message })
  }
  return (typeof reason === 'string' && Object.hasOwn(FINISH, reason) ? FINISH[reason] : undefined) ?? 'stop'
}

/** `billed_units` where there are any: `tokens` counts a preamble that is Cohere's own. */
export function reportedUsage(usage: Json | undefined): Reported | null {
  if (!isObject(usage)) return null
  const units = [usage.billed_units, usage.tokens].find(each => isObject(each) && typeof each.input_tokens === 'number')
  if (!isObject(units)) return null
  const read = counts({ ...units, cached_tokens: usage.cached_tokens ?? 0 }, ['input_tokens', 'output_tokens', 'cached_tokens'])
  if (read === null) return null
  // The cache is counted in tokens, not in billed units: it may hold the preamble as well.
  return { input: read.input_tokens, output: read.output_tokens, cached: Math.min(read.cached_tokens, read.input_tokens), reasoning: 0 }
}
