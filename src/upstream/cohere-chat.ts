import { GatewayError } from '../errors.js'
import { isObject, type Json, type JsonObject } from '../json.js'
import {
  type AnsweredCall,
  type Choice,
  completion,
  counts,
  cutShort,
  eventObject,
  type FinishReason,
  type Reported,
} from './chat/answer.js'
import { Chunks } from './chat/chunks.js'
import { unreadable } from './chat/conversation.js'
import { type Tool, toolChoiceOf, toolsOf } from './chat/parameters.js'
import { type Call, type EventTranslator, ProviderFailure, type SseEvent } from './providers/provider.js'

/** An OpenAI chat request in Cohere's words. What Cohere has no word for (`n`, `logprobs`, `logit_bias`, `user` …) is left out. */
export function chatRequest({ body, stream }: Call): JsonObject {
  return present({
    model: body.model,
    messages: Array.isArray(body.messages) ? body.messages.map(message) : body.messages,
    stream,
    max_tokens: body.max_tokens ?? body.max_completion_tokens,
    temperature: body.temperature,
    p: body.top_p,
    k: body.top_k,
    seed: body.seed,
    stop_sequences: typeof body.stop === 'string' ? [body.stop] : body.stop,
    frequency_penalty: body.frequency_penalty,
    presence_penalty: body.presence_penalty,
    ...offered(body),
    response_format: responseFormat(body.response_format),
    thinking: typeof body.reasoning_effort === 'string' ? { type: body.reasoning_effort === 'none' ? 'disabled' : 'enabled' } : undefined,
  })
}

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

/** Cohere's stream as chat completion chunks. */
export function chatEvents(call: Call): EventTranslator {
  return new ChatStream(call)
}

class ChatStream implements EventTranslator {
  readonly #chunks: Chunks
  /** Cohere writes one call of a tool after the other; the open one's number at the client. */
  #call: number | null = null
  /** Arguments that are not passed on yet. Where a tool has none, Cohere may write `null`, or nothing: clients need an object. */
  #held: string | null = null
  #ended = false

  constructor(call: Call) {
    this.#chunks = new Chunks(call)
  }

  get over(): boolean {
    return this.#ended
  }

  event({ data }: SseEvent): readonly JsonObject[] {
    if (data === '[DONE]') return []
    const event = eventObject(data)
    const delta = isObject(event.delta) ? event.delta : {}
    const told = isObject(delta.message) ? delta.message : {}
    switch (event.type) {
      case 'message-start':
        this.#chunks.open(0)
        break
      case 'content-start':
      case 'content-delta':
        this.#content(told.content)
        break
      case 'tool-plan-delta':
        this.#text(told.tool_plan)
        break
      case 'tool-call-start':
        this.#begin(told.tool_calls)
        break
      case 'tool-call-delta':
        this.#argue(argumentsOf(told.tool_calls))
        break
      case 'tool-call-end':
        this.#close()
        break
      case 'message-end':
        this.#end(delta)
        break
    }
    return this.#chunks.take()
  }

  end(): readonly JsonObject[] {
    if (!this.#ended) throw cutShort()
    return []
  }

  #text(text: Json | undefined): void {
    if (typeof text !== 'string' || text === '') return
    this.#chunks.open(0)
    this.#chunks.text(0, text)
  }

  #content(content: Json | undefined): void {
    if (!isObject(content)) return
    if (typeof content.thinking === 'string' && content.thinking !== '') this.#chunks.reasoning(0, content.thinking)
    else this.#text(content.text)
  }

  #begin(given: Json | undefined): void {
    if (!isObject(given) || !isObject(given.function)) return
    this.#held = ''
    this.#call = this.#chunks.tool(0, { ...named(given, given.function), arguments: this.#passed(argumentsOf(given)) })
  }

  #argue(text: string): void {
    if (this.#call !== null) this.#chunks.toolArguments(0, this.#call, this.#passed(text))
  }

  #close(): void {
    if (this.#call !== null && this.#held !== null) this.#chunks.toolArguments(0, this.#call, '{}')
    this.#call = null
    this.#held = null
  }

  #end(delta: JsonObject): void {
    this.#ended = true
    const finish = finishReason(delta.finish_reason, delta)
    this.#chunks.open(0)
    this.#close()
    this.#chunks.finish(0, finish)
    const usage = reportedUsage(delta.usage)
    if (usage !== null) this.#chunks.usage(usage)
  }

  /** What of the arguments can be passed on now. */
  #passed(text: string): string {
    if (this.#held === null) return text
    const all = this.#held + text
    this.#held = 'null'.startsWith(all) ? all : null
    return this.#held === null ? all : ''
  }
}

function argumentsOf(call: Json | undefined): string {
  return isObject(call) && isObject(call.function) && typeof call.function.arguments === 'string' ? call.function.arguments : ''
}

function wholeCall(given: Json): AnsweredCall[] {
  if (!isObject(given) || !isObject(given.function)) return []
  const text = argumentsOf(given)
  return [{ ...named(given, given.function), arguments: text === '' || text === 'null' ? '{}' : text }]
}

function named(call: JsonObject, called: JsonObject): Pick<AnsweredCall, 'id' | 'name'> {
  return { id: textOf(call.id), name: textOf(called.name) }
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : ''
}

function message(given: Json, position: number): Json {
  if (!isObject(given)) return given
  const path = `messages[${position}]`
  switch (given.role) {
    case 'system':
    case 'developer':
      return { role: 'system', content: textContent(given.content, path) }
    case 'user':
      return { role: 'user', content: userContent(given.content, path) }
    case 'assistant':
      return assistant(given, path)
    case 'tool':
      return { role: 'tool', tool_call_id: given.tool_call_id, content: textContent(given.content, path) }
    default:
      throw unsupported(`${path}.role`, 'system, developer, user, assistant and tool')
  }
}

/** Text beside calls is what Cohere calls their plan: it refuses content there. */
function assistant(given: JsonObject, path: string): JsonObject {
  const text = textContent(given.content, path)
  if (!Array.isArray(given.tool_calls) || given.tool_calls.length === 0) return { role: 'assistant', content: text }
  const calls = given.tool_calls.map((call: Json, index) => {
    if (!isObject(call) || !isObject(call.function)) throw unsupported(`${path}.tool_calls[${index}]`, 'calls of functions')
    return { id: call.id, type: 'function', function: { name: call.function.name, arguments: call.function.arguments } }
  })
  return { role: 'assistant', tool_calls: calls, ...(text === '' ? {} : { tool_plan: text }) }
}

function textContent(content: Json | undefined, path: string): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content
    .map((part: Json, index) => {
      if (isObject(part) && typeof part.text === 'string') return part.text
      if (isObject(part) && typeof part.refusal === 'string') return part.refusal
      throw unsupported(`${path}.content[${index}]`, 'text')
    })
    .join('')
}

function userContent(content: Json | undefined, path: string): Json {
  if (!Array.isArray(content)) return typeof content === 'string' ? content : ''
  return content.map((part: Json, index) => {
    if (isObject(part) && part.type === 'text') return { type: 'text', text: part.text }
    if (isObject(part) && part.type === 'image_url') return { type: 'image_url', image_url: part.image_url }
    throw unsupported(`${path}.content[${index}]`, 'text and images')
  }) as Json
}

/** `tools` and `tool_choice`. There is no way to name a tool that must be called, but to offer no other. */
function offered(body: JsonObject): JsonObject {
  const choice = toolChoiceOf(body)
  const all = toolsOf(body)
  const tools = choice?.mode === 'function' ? all.filter(({ name }) => name === choice.name) : all
  if (choice?.mode === 'function' && tools.length === 0) throw unreadable('tool_choice', 'names a function that is not among the tools.')
  if (tools.length === 0) return {}
  const told = { tools: tools.map(toolOf) }
  if (choice?.mode === 'function' || choice?.mode === 'required') return { ...told, tool_choice: 'REQUIRED' }
  return choice?.mode === 'none' ? { ...told, tool_choice: 'NONE' } : told
}

function toolOf({ name, description, parameters }: Tool): JsonObject {
  return { type: 'function', function: present({ name, description, parameters: parameters ?? { type: 'object', properties: {} } }) }
}

function responseFormat(format: Json | undefined): JsonObject | undefined {
  if (!isObject(format)) return undefined
  if (format.type === 'json_object') return { type: 'json_object' }
  if (format.type !== 'json_schema') return undefined
  return present({ type: 'json_object', json_schema: isObject(format.json_schema) ? format.json_schema.schema : undefined })
}

const FINISH: Readonly<Record<string, FinishReason>> = {
  MAX_TOKENS: 'length',
  TOOL_CALL: 'tool_calls',
  COMPLETE: 'stop',
  STOP_SEQUENCE: 'stop',
}

/** A reason that is not known yet is `stop`: the answer did end. */
function finishReason(reason: Json | undefined, told: JsonObject): FinishReason {
  if (reason === 'ERROR' || reason === 'TIMEOUT') {
    const message = typeof told.error === 'string' ? told.error : `The provider's generation ended with ${reason}.`
    throw new ProviderFailure({ status: reason === 'TIMEOUT' ? 504 : 502, message })
  }
  return (typeof reason === 'string' && Object.hasOwn(FINISH, reason) ? FINISH[reason] : undefined) ?? 'stop'
}

/** `billed_units` where there are any: `tokens` counts a preamble that is Cohere's own. */
function reportedUsage(usage: Json | undefined): Reported | null {
  if (!isObject(usage)) return null
  const units = [usage.billed_units, usage.tokens].find(each => isObject(each) && typeof each.input_tokens === 'number')
  if (!isObject(units)) return null
  const read = counts({ ...units, cached_tokens: usage.cached_tokens ?? 0 }, ['input_tokens', 'output_tokens', 'cached_tokens'])
  if (read === null) return null
  // The cache is counted in tokens, not in billed units: it may hold the preamble as well.
  return { input: read.input_tokens, output: read.output_tokens, cached: Math.min(read.cached_tokens, read.input_tokens), reasoning: 0 }
}

function joined(parts: readonly Json[], type: 'text' | 'thinking'): string {
  return parts.map(part => (isObject(part) && part.type === type && typeof part[type] === 'string' ? part[type] : '')).join('')
}

function unsupported(param: string, taken: string): GatewayError {
  return new GatewayError('invalid_request', `${param} is of a kind that this model does not take: it takes ${taken}.`, { param })
}

/** `null` in an optional field means that it is absent. */
function present(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined && value !== null))
}
