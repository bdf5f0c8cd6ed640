import { GatewayError } from '../errors.js'
import { isObject, type JsonObject } from '../json.js'
import { isText, missing, wrong } from './field-checks.js'

const ROLES = ['system', 'developer', 'user', 'assistant', 'tool', 'function']
/** Roles whose message says nothing without a content. */
const SPEAKING = ['system', 'developer', 'user']

/** `messages` of a chat request. What a message holds beyond the checked fields is the provider's matter. */
export function checkMessages(messages: unknown): void {
  if (messages === undefined || messages === null) throw missing('messages')
  if (!Array.isArray(messages) || messages.length === 0) throw wrong('messages', 'a non-empty array', messages)
  messages.forEach((message, i) => {
    const path = `messages[${i}]`
    if (!isObject(message)) throw wrong(path, 'an object', message)
    checkMessage(message, path)
  })
}

function checkMessage(message: JsonObject, path: string): void {
  const { role, content } = message
  if (role === undefined) throw missing(`${path}.role`)
  if (typeof role !== 'string') throw wrong(`${path}.role`, `one of ${ROLES.join(', ')}`, role)
  if (!ROLES.includes(role)) {
    const shown = role.length > 40 ? `${role.slice(0, 40)}…` : role
    throw new GatewayError('invalid_request', `${path}.role must be one of ${ROLES.join(', ')}, got "${shown}".`, { param: `${path}.role` })
  }
  if (content === undefined || content === null) {
    if (SPEAKING.includes(role)) throw missing(`${path}.content`)
  } else if (Array.isArray(content)) {
    content.forEach((part, i) => {
      checkPart(part, `${path}.content[${i}]`)
    })
  } else if (typeof content !== 'string') throw wrong(`${path}.content`, 'a string, an array of parts or null', content)
  optionalText(message.name, `${path}.name`)
  optionalText(message.tool_call_id, `${path}.tool_call_id`)
  optionalText(message.refusal, `${path}.refusal`)
  checkCalls(message.tool_calls, `${path}.tool_calls`)
  if (message.function_call !== undefined && message.function_call !== null) checkCalled(message.function_call, `${path}.function_call`)
}

function checkPart(part: unknown, path: string): void {
  if (!isObject(part)) throw wrong(path, 'an object', part)
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

function checkCalls(calls: unknown, path: string): void {
  if (calls === undefined || calls === null) return
  if (!Array.isArray(calls)) throw wrong(path, 'an array', calls)
  calls.forEach((call, i) => {
    const at = `${path}[${i}]`
    if (!isObject(call)) throw wrong(at, 'an object', call)
    optionalText(call.id, `${at}.id`)
    optionalText(call.type, `${at}.type`)
    if (call.function !== undefined) checkCalled(call.function, `${at}.function`)
    if (call.custom !== undefined) checkCalled(call.custom, `${at}.custom`)
  })
}

function checkCalled(called: unknown, path: string): void {
  const { name, arguments: given, input } = inner(called, path)
  requiredText(name, `${path}.name`)
  optionalText(given, `${path}.arguments`)
  optionalText(input, `${path}.input`)
}

function inner(value: unknown, path: string): JsonObject {
  if (value === undefined || value === null) throw missing(path)
  if (!isObject(value)) throw wrong(path, 'an object', value)
  return value
}

function requiredText(value: unknown, path: string): void {
  if (value === undefined || value === null) throw missing(path)
  isText(value, path)
}

function optionalText(value: unknown, path: string): void {
  if (value !== undefined && value !== null) isText(value, path)
}
