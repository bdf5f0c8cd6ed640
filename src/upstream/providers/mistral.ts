import { createHash } from 'node:crypto'
import { isObject, type Json, type JsonObject } from '../../json.js'
import { changedChunks, compatible, only, renamed } from '../compatible.js'
import { type Call, ProviderFailure } from './provider.js'

/**
 * Mistral. It answers 422 to any field that it does not know, at any depth, so that only those that it knows are sent: `seed` is called
 * `random_seed`, `stream_options` does not exist (streams always carry usage). Thinking comes as parts of the content; clients get it as
 * `reasoning_content`, and the text as a string; `num_cached_tokens` as the format has it, too. Ids of calls that another provider gave are
 * sent as ones that it takes; an answer that it ended for an error is a failure. Completions are its filling in of text, whose answers have
 * the shape of chat.
 */
export default compatible('mistral', {
  baseUrl: 'https://api.mistral.ai/v1',
  defaults: { usage_stream: 'always', cap: 'max_tokens' },
  chat: {
    request(body) {
      const request = known(spelled(body))
      return Array.isArray(request.messages) ? { ...request, messages: request.messages.map(message) } : request
    },
    response(body) {
      if (!isObject(body)) throw new TypeError('The answer is no object.')
      if (!Array.isArray(body.choices)) return body
      return withCached(ended({ ...body, choices: body.choices.map(choice) }))
    },
    events: () =>
      changedChunks(chunk => withCached(ended(Array.isArray(chunk.choices) ? { ...chunk, choices: chunk.choices.map(delta) } : chunk))),
  },
  path: segment => (segment === '/completions' ? '/fim/completions' : segment),
  completions: {
    request: body => knownFill(spelled(body)),
    response(body, call) {
      if (!isObject(body) || !Array.isArray(body.choices)) throw new TypeError('The answer has no choices.')
      return filled(ended({ ...body, choices: body.choices.map(choice) }), call)
    },
  },
  // The encoding is the gateway's affair: every answer is brought into the one that was asked for.
  embeddings: { request: body => embedded(renamed({ dimensions: 'output_dimension' })(body)) },
})

const spelled = renamed({ seed: 'random_seed', max_completion_tokens: 'max_tokens' })

const known = only(
  'model',
  'messages',
  'max_tokens',
  'stream',
  'temperature',
  'top_p',
  'stop',
  'random_seed',
  'n',
  'presence_penalty',
  'frequency_penalty',
  'response_format',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'prediction',
  'reasoning_effort',
  'prompt_mode',
  'prompt_cache_key',
  'safe_prompt',
  'guardrails',
)

/** Of text to be filled in, which is what its completions are. */
const knownFill = only(
  'model',
  'prompt',
  'suffix',
  'max_tokens',
  'min_tokens',
  'temperature',
  'top_p',
  'stop',
  'random_seed',
  'prompt_cache_key',
)

const embedded = only('model', 'input', 'output_dimension')

const FIELDS: Readonly<Record<string, (message: JsonObject) => JsonObject>> = {
  system: only('role', 'content'),
  user: only('role', 'content'),
  assistant: only('role', 'content', 'tool_calls', 'prefix'),
  tool: only('role', 'content', 'name', 'tool_call_id'),
}

function message(given: Json): Json {
  if (!isObject(given)) return given
  const role = given.role === 'developer' ? 'system' : given.role
  const fields = typeof role === 'string' && Object.hasOwn(FIELDS, role) ? FIELDS[role] : undefined
  if (fields === undefined) return given
  const kept: JsonObject = { ...fields(given), role }
  if (typeof kept.tool_call_id === 'string') return { ...kept, tool_call_id: callId(kept.tool_call_id) }
  if (!Array.isArray(kept.tool_calls)) return kept
  return { ...kept, tool_calls: kept.tool_calls.map(each => (isObject(each) ? toolCall(each) : each)) }
}

function toolCall(given: JsonObject): JsonObject {
  const call = only('id', 'type', 'function')(given)
  return typeof call.id === 'string' ? { ...call, id: callId(call.id) } : call
}

/** The API refuses ids of any other shape; other providers' ids come here after a change of model within one conversation. */
function callId(id: string): string {
  return /^[a-zA-Z0-9]{9}$/.test(id) ? id : createHash('sha256').update(id).digest('hex').slice(0, 9)
}

function choice(given: Json): Json {
  return isObject(given) && isObject(given.message) ? { ...given, message: plainContent(given.message) } : given
}

function delta(given: Json): Json {
  return isObject(given) && isObject(given.delta) ? { ...given, delta: plainContent(given.delta) } : given
}

/** A message or delta whose content is a string. */
function plainContent(given: JsonObject): JsonObject {
  if (!Array.isArray(given.content)) return given
  const parts: readonly Json[] = given.content
  const thinking = parts.map(part => (isObject(part) && part.type === 'thinking' ? texts(part.thinking) : '')).join('')
  const content = texts(parts)
  return {
    ...given,
    content: content === '' && thinking !== '' ? null : content,
    ...(thinking === '' ? {} : { reasoning_content: thinking }),
  }
}

/** An answer, or a chunk, whose reasons are those of the format. Throws `ProviderFailure` where one of them is an error. */
function ended(given: JsonObject): JsonObject {
  if (!Array.isArray(given.choices)) return given
  const choices = given.choices.map((each: Json) => {
    if (!isObject(each)) return each
    if (each.finish_reason === 'error') throw new ProviderFailure({ message: "The provider's generation ended with an error." })
    return each.finish_reason === 'model_length' ? { ...each, finish_reason: 'length' } : each
  })
  return { ...given, choices }
}

/** An answer of chat as one of completions, which never stream. */
function filled(given: JsonObject, call: Call): JsonObject {
  const choices = (Array.isArray(given.choices) ? given.choices : []).map((each: Json) => {
    const { index = 0, message, finish_reason = null }: JsonObject = isObject(each) ? each : {}
    const text = isObject(message) && typeof message.content === 'string' ? message.content : ''
    return { index, text, logprobs: null, finish_reason }
  })
  return withCached({ ...given, id: `cmpl-${call.id}`, object: 'text_completion', choices })
}

/** An answer, or a chunk, whose usage tells the cached part of its input where clients look for it. */
function withCached(given: JsonObject): JsonObject {
  const { usage } = given
  if (!isObject(usage) || typeof usage.num_cached_tokens !== 'number' || isObject(usage.prompt_tokens_details)) return given
  return { ...given, usage: { ...usage, prompt_tokens_details: { cached_tokens: usage.num_cached_tokens } } }
}

function texts(parts: Json | undefined): string {
  if (typeof parts === 'string') return parts
  if (!Array.isArray(parts)) return ''
  return parts.map((part: Json) => (isObject(part) && part.type === 'text' && typeof part.text === 'string' ? part.text : '')).join('')
}
