import type { Endpoint } from '../endpoints/endpoint.js'
import { isObject, type Json, type JsonObject } from '../json.js'
import { patch } from './patch.js'
import { type Call, type HeaderFields, ProviderFailure, type Wire } from './providers/provider.js'
import { ErrorEvent, tellsError } from './stream.js'

type Mutable = { [name: string]: Json | undefined }

export interface WholeAnswer {
  /** The provider's answer in the client's wire, before it is shaped: what is metered. */
  readonly metered: JsonObject
  /** Tokens of the output, where it has been counted already and `metered` says only what the provider reports. */
  readonly counted?: number
  /** The client's answer, parsed. Not to be changed. */
  readonly json: JsonObject
  /** What the client gets. */
  readonly text: string | Uint8Array
}

/**
 * A provider's answer that is no stream, in the client's wire: the provider's own text with `model` (and `id` where its shape is wrong) put
 * right, or the translation of it. Throws ProviderFailure where it is no answer, ErrorEvent where it is an error under a good status.
 */
export function wholeAnswer(
  bytes: Buffer,
  call: Call,
  wire: Wire,
  endpoint: Endpoint,
  headers: HeaderFields,
): WholeAnswer & { readonly text: string } {
  const text = marked(bytes) ? bytes.toString('utf8', 3) : bytes.toString('utf8')
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    throw new ProviderFailure({ message: 'The provider answered with something that is not JSON.', torn: /^\s*(?:\{|$)/.test(text) })
  }
  if (isObject(body) && tellsError(body)) throw new ErrorEvent(body)
  const metered = wire.response === undefined ? body : wire.response(body, call, headers)
  if (!isObject(metered) || !endpoint.answers(metered)) throw noAnswer()
  const shaped = endpoint.shape?.(metered, call.body, call.model) ?? metered
  const changed = normalise(shaped) || shaped !== body
  const id = idOf(shaped, endpoint.idPrefix, call.id)
  if (changed) {
    const json = { ...shaped, model: call.model.id, ...id }
    return { metered, json, text: JSON.stringify(json) }
  }
  if (shaped.model === call.model.id && id.id === undefined) return { metered, json: shaped, text }
  return { metered, json: shaped, text: patch(text, shaped.model === call.model.id ? id : { model: call.model.id, ...id }) }
}

/** Does it begin with a byte order mark? JSON.parse takes none, and neither do clients. */
function marked(bytes: Buffer): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
}

function noAnswer(): ProviderFailure {
  return new ProviderFailure({ message: 'The provider answered with something that is no answer to this request.' })
}

function idOf(answer: JsonObject, prefix: string, id: string): { id?: string } {
  if (prefix === '' || (typeof answer.id === 'string' && answer.id.startsWith(prefix) && answer.id.length > prefix.length)) return {}
  return { id: prefix + id }
}

/** Mends what makes strict clients refuse an answer; true when anything had to change. */
function normalise(answer: JsonObject): boolean {
  let changed = false
  if (!Array.isArray(answer.choices)) return false
  const choices = answer.choices as Json[]
  for (let position = 0; position < choices.length; position++) {
    const choice = choices[position]
    if (!isObject(choice)) continue
    if (!Number.isInteger(choice.index)) {
      ;(choice as Mutable).index = position
      changed = true
    }
    const calls = isObject(choice.message) ? choice.message.tool_calls : undefined
    if (!Array.isArray(calls)) continue
    for (const call of calls as Json[]) {
      if (isObject(call)) changed = normaliseCall(call as Mutable) || changed
    }
  }
  return changed
}

function normaliseCall(call: Mutable): boolean {
  let changed = false
  if (typeof call.type !== 'string') {
    call.type = 'function'
    changed = true
  }
  if (isObject(call.function) && isObject(call.function.arguments)) {
    ;(call.function as Mutable).arguments = JSON.stringify(call.function.arguments)
    changed = true
  }
  return changed
}
