import type { Json, JsonObject } from '../../../json.js'
import { conversationOf, type MediaPart, type Part, type Turn, unreadable } from '../../chat/conversation.js'
import { answerSchemaOf, capOf, numberOf, present, stopsOf, type Tool, toolChoiceOf, toolsOf } from '../../chat/parameters.js'
import type { Call } from '../provider.js'

/** The version of the API that is spoken unless the provider's settings name another. */
export const VERSION = '2023-06-01'

/** From this version on the API refuses every sampling parameter, default values included. */
const NO_SAMPLING = '2026-10-21'

/** A chat request as a Messages request. */
export function messagesRequest(call: Call): JsonObject {
  const { body } = call
  const { system, turns } = conversationOf(body)
  const tools = toolsOf(body)
  const texts = system.filter(isVisible).map(text => ({ type: 'text', text }))
  const stops = stopsOf(body).filter(isVisible)
  return present({
    model: call.model.upstream,
    max_tokens: capOf(call),
    stream: call.stream ? true : undefined,
    stop_sequences: stops.length === 0 ? undefined : stops,
    ...sampling(call),
    metadata: typeof body.user === 'string' ? { user_id: body.user } : undefined,
    output_config: outputConfig(body),
    system: texts.length === 0 ? undefined : texts,
    messages: merged(turns),
    tools: tools.length === 0 ? undefined : tools.map(toolOf),
    tool_choice: tools.length === 0 ? undefined : toolChoice(body),
  })
}

interface Message {
  readonly role: 'user' | 'assistant'
  /** Added to while turns of the role go on: copying it for each would take a long conversation quadratic time. */
  readonly content: JsonObject[]
}

/** Turns of one role that follow each other become one. Results of tools come first in theirs: the API wants them right after the calls. */
function merged(turns: readonly Turn[]): readonly JsonObject[] {
  const messages: Message[] = []
  for (const turn of turns) {
    const role = turn.role === 'assistant' ? 'assistant' : 'user'
    const content = contentOf(turn)
    if (content.length === 0) continue
    const last = messages.at(-1)
    if (last?.role === role) for (const block of content) last.content.push(block)
    else messages.push({ role, content })
  }
  return messages.map(({ role, content }) => ({ role, content: resultsFirst(content) }))
}

function resultsFirst(content: readonly JsonObject[]): readonly JsonObject[] {
  const isResult = (block: JsonObject) => block.type === 'tool_result'
  return [...content.filter(isResult), ...content.filter(block => !isResult(block))]
}

function contentOf(turn: Turn): JsonObject[] {
  switch (turn.role) {
    case 'user':
      return turn.parts.flatMap(blockOf)
    case 'assistant':
      return [
        ...turn.text.filter(isVisible).map(text => ({ type: 'text', text })),
        ...turn.calls.map(({ id, name, args }) => ({ type: 'tool_use', id: idOf(id), name, input: args })),
      ]
    case 'tool':
      return [present({ type: 'tool_result', tool_use_id: idOf(turn.callId), content: resultOf(turn.parts) })]
  }
}

function resultOf(parts: readonly Part[]): Json | undefined {
  const blocks = parts.flatMap(blockOf)
  const [first] = blocks
  if (blocks.length === 1 && first?.type === 'text') return first.text
  return blocks.length === 0 ? undefined : blocks
}

function blockOf(part: Part): JsonObject[] {
  switch (part.kind) {
    case 'text':
      return isVisible(part.text) ? [{ type: 'text', text: part.text }] : []
    case 'image':
      return [imageOf(part)]
    case 'file':
      return [fileOf(part)]
    case 'audio':
      throw unreadable(part.path, 'is audio, which this model does not take.')
  }
}

function imageOf({ source }: MediaPart): JsonObject {
  if (source.from === 'url') return { type: 'image', source: { type: 'url', url: source.url } }
  return { type: 'image', source: { type: 'base64', media_type: source.mediaType, data: source.base64 } }
}

function fileOf(part: MediaPart): JsonObject {
  const { source, filename, path } = part
  const document = (from: JsonObject) => present({ type: 'document', source: from, title: filename ?? undefined })
  if (source.from === 'url') return document({ type: 'url', url: source.url })
  const { mediaType, base64 } = source
  if (mediaType === 'application/pdf') return document({ type: 'base64', media_type: mediaType, data: base64 })
  if (mediaType.startsWith('image/')) return imageOf(part)
  if (mediaType.startsWith('text/') || mediaType === 'application/json') {
    return document({ type: 'text', media_type: 'text/plain', data: Buffer.from(base64, 'base64').toString() })
  }
  throw unreadable(path, `is a file of type ${mediaType}; this model takes PDF, text and images.`)
}

function toolOf({ name, description, parameters, strict }: Tool): JsonObject {
  return present({
    name,
    description: description ?? undefined,
    input_schema: parameters === null || Object.keys(parameters).length === 0 ? { type: 'object', properties: {} } : parameters,
    strict: strict ?? undefined,
  })
}

function toolChoice(body: JsonObject): JsonObject | undefined {
  const choice = toolChoiceOf(body)
  const serial = body.parallel_tool_calls === false ? { disable_parallel_tool_use: true } : {}
  switch (choice?.mode) {
    case 'none':
      return { type: 'none' }
    case 'required':
      return { type: 'any', ...serial }
    case 'function':
      return { type: 'tool', name: choice.name, ...serial }
    case 'auto':
      return { type: 'auto', ...serial }
    default:
      return body.parallel_tool_calls === false ? { type: 'auto', ...serial } : undefined
  }
}

const EFFORT: ReadonlyMap<Json | undefined, string> = new Map([
  // The API has no effort below low.
  ['none', 'low'],
  ['minimal', 'low'],
  ['low', 'low'],
  ['medium', 'medium'],
  ['high', 'high'],
  ['xhigh', 'xhigh'],
  ['max', 'max'],
])

function outputConfig(body: JsonObject): JsonObject | undefined {
  const schema = answerSchemaOf(body)
  const config = present({
    effort: EFFORT.get(body.reasoning_effort),
    // There is no mode for «some JSON»: without a schema the prompt alone has to ask for it.
    format: schema === null || schema === 'any' ? undefined : { type: 'json_schema', schema },
  })
  return Object.keys(config).length === 0 ? undefined : config
}

function sampling({ body, model }: Call): { readonly [name: string]: number | undefined } {
  const { version } = model.provider.options
  if (typeof version === 'string' && version >= NO_SAMPLING) return {}
  const temperature = numberOf(body.temperature)
  return {
    temperature: temperature === undefined ? undefined : Math.min(1, Math.max(0, temperature)),
    top_p: numberOf(body.top_p),
    top_k: numberOf(body.top_k),
  }
}

/** The API refuses text blocks, and stop sequences, that have nothing but white space. */
function isVisible(text: string): boolean {
  return text.trim() !== ''
}

/** The API refuses ids with any other character; other providers' ids come here after a change of model within one conversation. */
function idOf(id: string): string {
  return id.replaceAll(/[^a-zA-Z0-9_-]/g, '_')
}
