import { GatewayError } from '../../../errors.js'
import { isObject, type Json, type JsonObject } from '../../../json.js'
import { unreadable } from '../../chat/conversation.js'
import { type Tool, toolChoiceOf, toolsOf } from '../../chat/parameters.js'
import type { Call } from '../provider.js'

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

function unsupported(param: string, taken: string): GatewayError {
  return new GatewayError('invalid_request', `${param} is of a kind that this model does not take: it takes ${taken}.`, { param })
}

/** `null` in an optional field means that it is absent. */
function present(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined && value !== null))
}
