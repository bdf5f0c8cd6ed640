import { GatewayError } from '../../errors.js'
import { isObject, type Json, type JsonObject } from '../../json.js'

/** The messages of a chat request as they were meant, for providers that speak another wire: legacy spellings resolved, empty text left out. */
export interface Conversation {
  /** Text of the system and developer messages, in order. */
  readonly system: readonly string[]
  readonly turns: readonly Turn[]
}

export type Turn =
  | { readonly role: 'user'; readonly parts: readonly Part[] }
  | { readonly role: 'assistant'; readonly text: readonly string[]; readonly calls: readonly ToolCall[] }
  | { readonly role: 'tool'; readonly callId: string; readonly name: string | null; readonly parts: readonly Part[]; readonly path: string }

/** `path` is where the part stands in the request: `messages[2].content[0]`. */
export type Part = { readonly kind: 'text'; readonly text: string; readonly path: string } | MediaPart

export interface MediaPart {
  readonly kind: 'image' | 'audio' | 'file'
  readonly source: Source
  readonly filename: string | null
  readonly path: string
}

export type Source =
  | { readonly from: 'data'; readonly mediaType: string; readonly base64: string }
  | { readonly from: 'url'; readonly url: string }

export interface ToolCall {
  readonly id: string
  readonly name: string
  /** The parsed arguments, nested no deeper than a request's body may be; what is no JSON object is `{}`. */
  readonly args: JsonObject
  /** What Gemini wants back with a call that it made: `extra_content.google.thought_signature`. */
  readonly signature: string | null
}

/** Reads `messages`. Throws `invalid_request` with `param` for a part that can not be read. */
export function conversationOf(body: JsonObject): Conversation {
  const system: string[] = []
  const turns: Turn[] = []
  const legacyCalls = new Map<string, string>()
  for (const [index, message] of list(body.messages).entries()) {
    const path = `messages[${index}]`
    if (!isObject(message)) throw unreadable(path, 'must be an object.')
    const parts = partsOf(message.content, `${path}.content`)
    switch (message.role) {
      case 'system':
      case 'developer':
        system.push(...texts(parts))
        break
      case 'assistant': {
        const calls = [
          ...list(message.tool_calls).map((call, at) => readCall(call, `${path}.tool_calls[${at}]`)),
          ...legacyCall(message.function_call, index, legacyCalls),
        ]
        const text = texts(parts)
        const refusal = text.length === 0 && typeof message.refusal === 'string' && message.refusal !== '' ? [message.refusal] : []
        turns.push({ role: 'assistant', text: [...text, ...refusal], calls })
        break
      }
      case 'tool':
      case 'function': {
        const name = typeof message.name === 'string' ? message.name : null
        const callId = message.role === 'tool' ? message.tool_call_id : legacyCalls.get(name ?? '')
        if (typeof callId !== 'string') throw unreadable(`${path}.tool_call_id`, 'must name the call that this is the result of.')
        turns.push({ role: 'tool', callId, name, parts, path })
        break
      }
      default:
        turns.push({ role: 'user', parts })
    }
  }
  return { system, turns }
}

/** The refusal of a part that a provider has no place for. */
export function unreadable(path: string, what: string): GatewayError {
  return new GatewayError('invalid_request', `${path} ${what}`, { param: path })
}

/** The text of a turn; throws for parts of any other kind. */
export function texts(parts: readonly Part[]): string[] {
  return parts.map(part => {
    if (part.kind !== 'text') throw unreadable(part.path, 'must be text: this role takes nothing else.')
    return part.text
  })
}

function partsOf(content: Json | undefined, path: string): Part[] {
  if (content === undefined || content === null || content === '') return []
  if (typeof content === 'string') return [{ kind: 'text', text: content, path }]
  return list(content).flatMap((part, index) => readPart(part, `${path}[${index}]`))
}

function readPart(part: Json, path: string): Part[] {
  if (typeof part === 'string') return part === '' ? [] : [{ kind: 'text', text: part, path }]
  if (!isObject(part)) throw unreadable(path, 'must be an object.')
  switch (part.type) {
    case 'text':
    case 'refusal': {
      const text = part[part.type]
      if (typeof text !== 'string') throw unreadable(`${path}.${part.type}`, 'must be a string.')
      return text === '' ? [] : [{ kind: 'text', text, path }]
    }
    case 'image_url': {
      const url = isObject(part.image_url) ? part.image_url.url : part.image_url
      return [{ kind: 'image', source: sourceOf(url, `${path}.image_url.url`), filename: null, path }]
    }
    case 'input_audio':
      return [{ kind: 'audio', source: audioOf(part.input_audio, `${path}.input_audio`), filename: null, path }]
    case 'file': {
      const file = isObject(part.file) ? part.file : {}
      if (file.file_data === undefined && file.file_id !== undefined) {
        throw unreadable(`${path}.file.file_id`, "can not be used: this model's provider does not know the file. Send file.file_data.")
      }
      const filename = typeof file.filename === 'string' && file.filename !== '' ? file.filename : null
      return [{ kind: 'file', source: sourceOf(file.file_data, `${path}.file.file_data`), filename, path }]
    }
    default:
      throw unreadable(`${path}.type`, 'is not a kind of part that this model takes.')
  }
}

function sourceOf(url: Json | undefined, path: string): Source {
  if (typeof url === 'string') {
    if (/^https?:\/\//i.test(url)) return { from: 'url', url }
    const data = dataUrl(url)
    if (data !== null) return data
  }
  throw unreadable(path, 'must be an https: URL or a data: URL.')
}

/** RFC 2397. The payload is not looked at when it is base64: it may be megabytes. */
function dataUrl(url: string): Source | null {
  const comma = url.indexOf(',')
  if (comma === -1 || !/^data:/i.test(url.slice(0, 5))) return null
  const [mediaType = '', ...parameters] = url.slice(5, comma).split(';')
  const payload = url.slice(comma + 1)
  const base64 = parameters.some(parameter => parameter.trim().toLowerCase() === 'base64') ? payload : percentDecoded(payload)
  if (base64 === null) return null
  const named = mediaType.trim().toLowerCase() || 'text/plain'
  // A common slip, which providers refuse.
  return { from: 'data', mediaType: named === 'image/jpg' ? 'image/jpeg' : named, base64 }
}

function percentDecoded(payload: string): string | null {
  try {
    return Buffer.from(decodeURIComponent(payload)).toString('base64')
  } catch {
    return null
  }
}

function audioOf(audio: Json | undefined, path: string): Source {
  if (!isObject(audio) || typeof audio.data !== 'string' || typeof audio.format !== 'string') {
    throw unreadable(path, 'must have data and format.')
  }
  return { from: 'data', mediaType: `audio/${audio.format}`, base64: audio.data }
}

function readCall(call: Json, path: string): ToolCall {
  const { id, function: called, custom, extra_content } = isObject(call) ? call : {}
  const google = isObject(extra_content) && isObject(extra_content.google) ? extra_content.google : {}
  const signature = typeof google.thought_signature === 'string' ? google.thought_signature : null
  const known = { id: typeof id === 'string' ? id : '', signature }
  // A custom tool's input is free text; the wires that this is read for have only objects.
  if (isObject(custom)) return { ...known, name: nameOf(custom), args: { input: custom.input ?? '' } }
  return { ...known, name: nameOf(called), args: argsOf(isObject(called) ? called.arguments : undefined, `${path}.function.arguments`) }
}

function legacyCall(call: Json | undefined, index: number, ids: Map<string, string>): ToolCall[] {
  if (!isObject(call)) return []
  const id = `function_${index}`
  ids.set(nameOf(call), id)
  return [{ id, name: nameOf(call), args: argsOf(call.arguments, `messages[${index}].function_call.arguments`), signature: null }]
}

function argsOf(text: Json | undefined, path: string): JsonObject {
  if (typeof text !== 'string') return isObject(text) ? text : {}
  const args = jsonIn(text)
  // The body's own depth has been checked, that of JSON in its strings has not: a few thousand levels overflow the stack on the way out.
  if (!shallow(args, DEPTH_MAX)) throw unreadable(path, `must not be nested deeper than ${DEPTH_MAX} levels.`)
  return isObject(args) ? args : {}
}

const DEPTH_MAX = 128

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function shallow(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  return levels > 0 && Object.values(value).every(inner => shallow(inner, levels - 1))
}

function nameOf(value: Json | undefined): string {
  return isObject(value) && typeof value.name === 'string' ? value.name : ''
}

function list(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : []
}
