import { GatewayError } from '../errors.js'
import { isObject, type Json, type JsonObject } from '../json.js'
import { scrub } from './failure.js'
import { type Call, type EventTranslator, ProviderFailure, type SseEvent } from './providers/provider.js'
import { parsed } from './tidy.js'

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
  const toolCalls = Array.isArray(calls) && calls.length > 0 ? calls.map(wholeCall) : undefined
  return defined({
    id: `chatcmpl-${call.id}`,
    object: 'chat.completion',
    created: call.created,
    model: call.model.id,
    choices: [
      {
        index: 0,
        message: defined({
          role: 'assistant',
          content: text === '' && toolCalls !== undefined ? null : text,
          refusal: null,
          reasoning_content: thinking === '' ? undefined : thinking,
          tool_calls: toolCalls,
        }),
        logprobs: null,
        finish_reason: finish,
      },
    ],
    usage: usageOf(body.usage),
  })
}

/** Cohere's stream as chat completion chunks. */
export function chatEvents(call: Call): EventTranslator {
  const base = { id: `chatcmpl-${call.id}`, object: 'chat.completion.chunk', created: call.created, model: call.model.id }
  const calls = toolCalls()
  let begun = false
  let ended = false

  const chunk = (delta: JsonObject, finish: string | null = null): JsonObject => ({
    ...base,
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
  })
  const begin = (): JsonObject[] => {
    if (begun) return []
    begun = true
    return [chunk({ role: 'assistant', content: '' })]
  }
  const said = (delta: JsonObject | undefined): JsonObject[] => (delta === undefined ? [] : [...begin(), chunk(delta)])

  return {
    event({ data }: SseEvent) {
      if (data === '[DONE]') return []
      const event = parsed(data)
      const delta = isObject(event.delta) ? event.delta : {}
      const told = isObject(delta.message) ? delta.message : {}
      switch (event.type) {
        case 'message-start':
          return begin()
        case 'content-start':
        case 'content-delta':
          return said(contentDelta(told.content))
        case 'tool-plan-delta':
          return said(typeof told.tool_plan === 'string' && told.tool_plan !== '' ? { content: told.tool_plan } : undefined)
        case 'tool-call-start':
          return said(calls.start(told.tool_calls))
        case 'tool-call-delta':
          return said(calls.go(told.tool_calls))
        case 'tool-call-end':
          return said(calls.stop())
        case 'message-end': {
          ended = true
          const finish = finishReason(delta.finish_reason, delta)
          const usage = usageOf(delta.usage)
          const last = [...begin(), ...said(calls.stop()), chunk({}, finish)]
          return usage === undefined ? last : [...last, { ...base, choices: [], usage }]
        }
        default:
          return []
      }
    },
    end() {
      if (!ended) throw new ProviderFailure({ message: 'The provider ended its stream before the answer was whole.' })
      return []
    },
  }
}

/** The state of tool calls in a stream. Cohere writes one after the other; their index at the client counts from 0. */
function toolCalls() {
  let index = -1
  let open = false
  /** Arguments that are not passed on yet. Where a tool has none, Cohere may write `null`, or nothing: clients need an object. */
  let held: string | undefined

  const pass = (text: string): string => {
    if (held === undefined) return text
    const all = held + text
    held = 'null'.startsWith(all) ? all : undefined
    return held === undefined ? all : ''
  }
  const written = (text: string): JsonObject => ({ tool_calls: [{ index, function: { arguments: text } }] })
  return {
    start(given: Json | undefined): JsonObject | undefined {
      if (!isObject(given) || !isObject(given.function)) return undefined
      index++
      open = true
      held = ''
      const called = { name: given.function.name, arguments: pass(argumentsOf(given)) }
      return { tool_calls: [{ index, id: given.id, type: 'function', function: called }] }
    },
    go(given: Json | undefined): JsonObject | undefined {
      const text = open ? pass(argumentsOf(given)) : ''
      return text === '' ? undefined : written(text)
    },
    stop(): JsonObject | undefined {
      const empty = open && held !== undefined
      open = false
      held = undefined
      return empty ? written('{}') : undefined
    },
  }
}

function argumentsOf(call: Json | undefined): string {
  return isObject(call) && isObject(call.function) && typeof call.function.arguments === 'string' ? call.function.arguments : ''
}

function contentDelta(content: Json | undefined): JsonObject | undefined {
  if (!isObject(content)) return undefined
  if (typeof content.thinking === 'string' && content.thinking !== '') return { reasoning_content: content.thinking }
  return typeof content.text === 'string' && content.text !== '' ? { content: content.text } : undefined
}

function wholeCall(given: Json): Json {
  if (!isObject(given) || !isObject(given.function)) return given
  const text = argumentsOf(given)
  return {
    id: given.id,
    type: 'function',
    function: { name: given.function.name, arguments: text === '' || text === 'null' ? '{}' : text },
  }
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
  const choice = body.tool_choice
  const chosen = isObject(choice) && isObject(choice.function) ? choice.function.name : undefined
  const tools = functionTools(body.tools)?.filter(
    tool => chosen === undefined || (isObject(tool.function) && tool.function.name === chosen),
  )
  if (tools === undefined || tools.length === 0) return {}
  if (chosen !== undefined || choice === 'required') return { tools, tool_choice: 'REQUIRED' }
  return choice === 'none' ? { tools, tool_choice: 'NONE' } : { tools }
}

function functionTools(tools: Json | undefined): JsonObject[] | undefined {
  if (!Array.isArray(tools)) return undefined
  const functions = tools.flatMap((tool: Json) => {
    if (!isObject(tool) || !isObject(tool.function)) return []
    const { name, description, parameters } = tool.function
    return [{ type: 'function', function: present({ name, description, parameters: parameters ?? { type: 'object', properties: {} } }) }]
  })
  return functions.length === 0 ? undefined : functions
}

function responseFormat(format: Json | undefined): JsonObject | undefined {
  if (!isObject(format)) return undefined
  if (format.type === 'json_object') return { type: 'json_object' }
  if (format.type !== 'json_schema') return undefined
  return defined({ type: 'json_object', json_schema: isObject(format.json_schema) ? format.json_schema.schema : undefined })
}

const FINISH: Readonly<Record<string, string>> = { MAX_TOKENS: 'length', TOOL_CALL: 'tool_calls', COMPLETE: 'stop', STOP_SEQUENCE: 'stop' }

/** A reason that is not known yet is `stop`: the answer did end. */
function finishReason(reason: Json | undefined, told: JsonObject): string {
  if (reason === 'ERROR' || reason === 'TIMEOUT') {
    const message = typeof told.error === 'string' ? scrub(told.error) : `The provider's generation ended with ${reason}.`
    throw new ProviderFailure({ status: reason === 'TIMEOUT' ? 504 : 502, message })
  }
  return (typeof reason === 'string' && Object.hasOwn(FINISH, reason) ? FINISH[reason] : undefined) ?? 'stop'
}

/** `billed_units` where there are any: `tokens` counts a preamble that is Cohere's own. */
function usageOf(usage: Json | undefined): JsonObject | undefined {
  if (!isObject(usage)) return undefined
  const counts = [usage.billed_units, usage.tokens].find(units => isObject(units) && typeof units.input_tokens === 'number')
  if (!isObject(counts)) return undefined
  const [input, output] = [Number(counts.input_tokens), Number(counts.output_tokens ?? 0)]
  // The cache is counted in tokens, not in billed units: it may hold the preamble as well.
  const cached = Math.min(typeof usage.cached_tokens === 'number' ? usage.cached_tokens : 0, input)
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: cached },
  }
}

function joined(parts: readonly Json[], type: 'text' | 'thinking'): string {
  return parts.map(part => (isObject(part) && part.type === type && typeof part[type] === 'string' ? part[type] : '')).join('')
}

function unsupported(param: string, taken: string): GatewayError {
  return new GatewayError('invalid_request', `${param} is of a kind that this model does not take: it takes ${taken}.`, { param })
}

function defined(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined))
}

/** `null` in an optional field means that it is absent. */
function present(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined && value !== null))
}
