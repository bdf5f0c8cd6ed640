import { isObject, type JsonObject } from '../../../json.js'
import type { Call } from '../provider.js'
import { count } from './pieces.js'
import type { Step } from './playback.js'
import { type Reply, reply, type ToolCall } from './reply.js'
import { choices, textOf } from './request.js'
import type { Said, Spoken, Streamed } from './spoken.js'
import { usage } from './usage.js'

/** A chat completion, or what its chunks are made of. */
export function chat({ body, call, options }: Spoken): Said {
  const said = reply(body, options)
  const n = choices(body)
  const used = usage(promptTokens(body), n * said.tokens, options)
  if (body.stream === true && options.ignore_stream !== true) {
    const wanted = isObject(body.stream_options) && body.stream_options.include_usage === true
    return { kind: 'stream', reply: said, n, ...(wanted && used !== undefined ? { usage: used } : {}) }
  }
  const completion = {
    ...envelope(call, 'chat.completion'),
    choices: Array.from({ length: n }, (_, index) => ({
      index,
      message: message(said, choiceId(call.id, index)),
      logprobs: null,
      finish_reason: said.finish,
    })),
    ...(used === undefined ? {} : { usage: used }),
  }
  return { kind: 'json', body: completion, tokens: said.tokens }
}

/** The input in the sandbox's own tokens: all texts, one for each message, tools and schemas as JSON. Pictures and sounds count nothing. */
export function promptTokens(body: JsonObject): number {
  let tokens = 0
  for (const message of Array.isArray(body.messages) ? body.messages.filter(isObject) : []) {
    tokens += 1 + count(textOf(message.content))
    if (typeof message.name === 'string') tokens += count(message.name)
    for (const call of Array.isArray(message.tool_calls) ? message.tool_calls.filter(isObject) : []) {
      const said = call[call.type === 'custom' ? 'custom' : 'function']
      if (isObject(said)) tokens += 1 + count(`${said.name} ${said.arguments ?? said.input ?? ''}`)
    }
  }
  const format = isObject(body.response_format) ? body.response_format.json_schema : undefined
  for (const field of [body.tools, format]) {
    if (field !== undefined && field !== null) tokens += count(JSON.stringify(field))
  }
  return tokens
}

function envelope({ id, created, model }: Call, object: string): JsonObject {
  return { id: `chatcmpl-${id}`, object, created, model: model.upstream }
}

/** Within the 40 characters that OpenAI allows a call's id. */
function choiceId(id: string, index: number): string {
  return `call_${id}_${index}`
}

function message(said: Reply, id: string): JsonObject {
  if (said.calls.length === 0) return { role: 'assistant', content: said.text.join(''), refusal: null }
  const tool_calls = said.calls.map((call, index) => ({ id: `${id}_${index}`, type: call.type, ...body(call, call.input.join('')) }))
  return { role: 'assistant', content: null, refusal: null, tool_calls }
}

function body(call: ToolCall, input: string): JsonObject {
  return call.type === 'custom' ? { custom: { name: call.name, input } } : { function: { name: call.name, arguments: input } }
}

/** The role of each choice, then a piece of each in turn. Made as they are asked for: a long answer is never held as a whole. */
export function* events({ reply: said, n }: Streamed, call: Call, pace: number): Generator<Step> {
  const frames = Array.from({ length: n }, (_, index) => frame(call, index))
  const role = JSON.stringify({ role: 'assistant', content: said.calls.length === 0 ? '' : null, refusal: null })
  for (const wrap of frames) yield { waitMs: 0, data: wrap(role, 'null') }
  const all = frames.map((_, index) => deltas(said, choiceId(call.id, index)))
  for (let round = 0; round < said.tokens; round++) {
    for (const [index, wrap] of frames.entries()) {
      const next = all[index]?.next()
      if (next?.done === false) yield { waitMs: round > 0 && index === 0 ? pace : 0, data: wrap(next.value, 'null') }
    }
  }
}

/** What makes the stream whole: finish, usage, [DONE]. */
export function* closing({ reply: said, n, usage: used }: Streamed, call: Call): Generator<Step> {
  for (let index = 0; index < n; index++) yield { waitMs: 0, data: frame(call, index)('{}', `"${said.finish}"`) }
  if (used !== undefined) {
    const last = { ...envelope(call, 'chat.completion.chunk'), choices: [], usage: used }
    yield { waitMs: 0, data: `data: ${JSON.stringify(last)}\n\n` }
  }
  yield { waitMs: 0, data: 'data: [DONE]\n\n' }
}

/** What changes from chunk to chunk is put between two texts that do not: a tenth of the cost of serialising each. */
function frame(call: Call, index: number): (delta: string, finish: string) => string {
  const open = JSON.stringify(envelope(call, 'chat.completion.chunk')).slice(0, -1)
  const before = `data: ${open},"choices":[{"index":${index},"delta":`
  return (delta, finish) => `${before}${delta},"logprobs":null,"finish_reason":${finish}}]}\n\n`
}

/** One per token: a call's id, type and name come in its first delta only. */
function* deltas(said: Reply, id: string): Generator<string> {
  for (const piece of said.text) yield `{"content":${JSON.stringify(piece)}}`
  for (const [index, call] of said.calls.entries()) {
    yield JSON.stringify({ tool_calls: [{ index, id: `${id}_${index}`, type: call.type, ...body(call, '') }] })
    for (const piece of call.input) {
      const more = call.type === 'custom' ? { custom: { input: piece } } : { function: { arguments: piece } }
      yield JSON.stringify({ tool_calls: [{ index, ...more }] })
    }
  }
}
