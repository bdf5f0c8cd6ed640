import { absent, invalid, mustBe } from '../checks.js'
import type { GatewayError } from '../errors.js'
import { isObject, type Json, type JsonObject } from '../json.js'

const ROLES = ['system', 'developer', 'user', 'assistant', 'tool', 'function']
/** Roles whose message says nothing without a content. */
const SPEAKING = ['system', 'developer', 'user']

/** `messages` of a chat request. What a message holds beyond the checked fields is the provider's matter. */
export function checkMessages(messages: Json | undefined): void {
  if (absent(messages)) throw missing('messages')
  if (!Array.isArray(messages)) throw mustBe('messages', 'a non-empty array', messages)
  if (messages.length === 0) throw invalid('messages', 'messages must not be empty.')
  messages.forEach((message, i) => {
    const path = `messages[${i}]`
    if (!isObject(message)) throw mustBe(path, 'an object', message)
    checkMessage(message, path)
  })
}

function checkMessage(message: JsonObject, path: string): void {
  const { role, content } = message
  if (role === undefined) throw missing(`${path}.role`)
  if (typeof role !== 'string') throw mustBe(`${path}.role`, `one of ${ROLES.join(', ')}`, role)
  if (!ROLES.includes(role)) {
    const shown = role.length > 40 ? `${role.slice(0, 40)}…` : role
    throw invalid(`${path}.role`, `${path}.role must be one of ${ROLES.join(', ')}, got ${JSON.stringify(shown)}.`)
  }
  if (absent(content)) {
    if (SPEAKING.includes(role)) throw missing(`${path}.content`)
  } else if (Array.isArray(content)) {
    content.forEach((part, i) => {
      checkPart(part, `${path}.content[${i}]`)
    })
  } else if (typeof content !== 'string') throw mustBe(`${path}.content`, 'a string, an array of parts or null', content)
  optionalText(message.name, `${path}.name`)
  optionalText(message.tool_call_id, `${path}.tool_call_id`)
  optionalText(message.refusal, `${path}.refusal`)
  checkCalls(message.tool_calls, `${path}.tool_calls`)
  if (!absent(message.function_call)) checkCalled(message.function_call, `${path}.function_call`)
}

function checkPart(part: Json | undefined, path: string): void {
  if (!isObject(part)) throw mustBe(path, 'an object', part)
  if (part.type === undefined) throw missing(`${path}.type`)
  isText(part.type, `${path}.type`)
  switch (part.type) {
    case 'text':
    case 'refusal':
      requiredText(part[part.type], `${path}.${part.type}`)
      return
    case 'image_url': {
      // Some servers take the address itself.
      if (typeof part.image_url === 'string') return
      requiredText(inner(part.image_url, `${path}.image_url`).url, `${path}.image_url.url`)
      return
    }
    case 'input_audio':
      requiredText(inner(part.input_audio, `${path}.input_audio`).data, `${path}.input_audio.data`)
      return
    case 'file': {
      const file = inner(part.file, `${path}.file`)
      for (const name of ['file_data', 'file_id', 'filename']) optionalText(file[name], `${path}.file.${name}`)
    }
  }
}

function checkCalls(calls: Json | undefined, path: string): void {
  if (absent(calls)) return
  if (!Array.isArray(calls)) throw mustBe(path, 'an array', calls)
  calls.forEach((call, i) => {
    const at = `${path}[${i}]`
    if (!isObject(call)) throw mustBe(at, 'an object', call)
    optionalText(call.id, `${at}.id`)
    optionalText(call.type, `${at}.type`)
    if (call.function !== undefined) checkCalled(call.function, `${at}.function`)
    if (call.custom !== undefined) checkCalled(call.custom, `${at}.custom`)
  })
}

function checkCalled(called: Json | undefined, path: string): void {
  const { name, arguments: given, input } = inner(called, path)
  requiredText(name, `${path}.name`)
  optionalText(given, `${path}.arguments`)
  optionalText(input, `${path}.input`)
}

function inner(value: Json | undefined, path: string): JsonObject {
  if (absent(value)) throw missing(path)
  if (!isObject(value)) throw mustBe(path, 'an object', value)
  return value
}

function requiredText(value: Json | undefined, path: string): void {
  if (absent(value)) throw missing(path)
  isText(value, path)
}

function optionalText(value: Json | undefined, path: string): void {
  if (!absent(value)) isText(value, path)
}

function isText(value: Json | undefined, path: string): void {
  if (typeof value !== 'string') throw mustBe(path, 'a string', value)
}

function missing(path: string): GatewayError {
  return invalid(path, `${path} is required.`)
}
