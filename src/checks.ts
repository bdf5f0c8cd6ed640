import { GatewayError } from './errors.js'
import type { Json, JsonObject } from './json.js'

/*
 * Checks of a request's fields, with the messages that clients read. A field that is absent or `null` passes each of the optional checks.
 */

/** The refusal of a field: `<param> must be <what>, got <type>.` */
export function mustBe(param: string, what: string, got: unknown): GatewayError {
  return new GatewayError('invalid_request', `${param} must be ${what}, got ${typeName(got)}.`, { param })
}

/** The same for a value of the right type that is none of those allowed. */
function outOfRange(param: string, what: string, got: unknown): GatewayError {
  return typeof got === 'number' ? invalid(param, `${param} must be ${what}, got ${got}.`) : mustBe(param, what, got)
}

/** The refusal of a field for another reason than its type. */
export function invalid(param: string, message: string): GatewayError {
  return new GatewayError('invalid_request', message, { param })
}

/** The refusal of a provider's answer, for the endpoints' `shape`. */
export function unfit(why: string): GatewayError {
  return new GatewayError('upstream_invalid_response', `The provider's answer does not fit the request: ${why}.`)
}

/** Absent and `null` are the same for an optional field. */
export function absent(value: Json | undefined): value is null | undefined {
  return value === undefined || value === null
}

/** `model` of any request: a non-empty string. */
export function checkModel(body: JsonObject): void {
  if (absent(body.model)) throw invalid('model', 'model is required: a string, <provider>/<model> or an alias.')
  if (typeof body.model !== 'string') throw mustBe('model', 'a string', body.model)
  if (body.model === '') throw invalid('model', 'model must not be empty.')
}

export function checkInteger(body: JsonObject, name: string, least: number, most = Number.MAX_SAFE_INTEGER): void {
  const value = body[name]
  if (absent(value)) return
  if (Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most) return
  const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`
  throw outOfRange(name, `an integer ${range}`, value)
}

/** Any whole number of 64 bits, negative ones too: beyond 2^53 it is what JSON.parse has rounded it to. */
export function checkWhole(body: JsonObject, name: string): void {
  const value = body[name]
  if (absent(value) || (Number.isInteger(value) && Math.abs(value as number) <= 2 ** 63)) return
  throw outOfRange(name, Number.isInteger(value) ? 'an integer of 64 bits' : 'an integer', value)
}

export function checkNumber(body: JsonObject, name: string): void {
  const value = body[name]
  // 1e400 is valid JSON, parses to Infinity, and would be forwarded as null.
  if (!absent(value) && !Number.isFinite(value)) throw outOfRange(name, 'a finite number', value)
}

export function checkBoolean(body: JsonObject, name: string): void {
  const value = body[name]
  if (!absent(value) && typeof value !== 'boolean') throw mustBe(name, 'true or false', value)
}

export function checkString(body: JsonObject, name: string): void {
  const value = body[name]
  if (!absent(value) && typeof value !== 'string') throw mustBe(name, 'a string', value)
}

export function checkOneOf(body: JsonObject, name: string, allowed: readonly string[]): void {
  const value = body[name]
  if (absent(value) || (typeof value === 'string' && allowed.includes(value))) return
  const what = allowed.map(word => `"${word}"`).join(' or ')
  throw typeof value === 'string' ? invalid(name, `${name} must be ${what}.`) : mustBe(name, what, value)
}

export function checkObject(body: JsonObject, name: string): void {
  const value = body[name]
  if (!absent(value) && (typeof value !== 'object' || Array.isArray(value))) throw mustBe(name, 'an object', value)
}

/** `stop`: a string or an array of strings. */
export function checkStop(body: JsonObject): void {
  const value = body.stop
  if (absent(value) || typeof value === 'string') return
  if (!Array.isArray(value)) throw mustBe('stop', 'a string or an array of strings', value)
  value.forEach((item, index) => {
    if (typeof item !== 'string') throw mustBe(`stop[${index}]`, 'a string', item)
  })
}

const TEXT = 'a string, an array of strings, an array of token ids or an array of such arrays'

/** `prompt` or `input`: required; a string, strings, token ids, or arrays of token ids; no array is empty or of mixed kinds. */
export function checkTexts(body: JsonObject, name: string): void {
  const value = body[name]
  if (absent(value)) throw invalid(name, `${name} is required: ${TEXT}.`)
  if (typeof value === 'string') return
  if (!Array.isArray(value)) throw mustBe(name, TEXT, value)
  const items: readonly Json[] = value
  if (items.length === 0) throw invalid(name, `${name} must not be an empty array.`)
  const first = items[0]
  if (typeof first === 'string') {
    const index = items.findIndex(item => typeof item !== 'string')
    if (index >= 0) throw mustBe(`${name}[${index}]`, `a string like ${name}[0]`, items[index])
  } else if (typeof first === 'number') {
    checkTokens(items, name)
  } else if (Array.isArray(first)) {
    items.forEach((item, index) => {
      const path = `${name}[${index}]`
      if (!Array.isArray(item)) throw mustBe(path, `an array of token ids like ${name}[0]`, item)
      if (item.length === 0) throw invalid(path, `${path} must not be an empty array.`)
      checkTokens(item, path)
    })
  } else {
    throw mustBe(`${name}[0]`, 'a string, a token id or an array of token ids', first)
  }
}

function checkTokens(items: readonly Json[], path: string): void {
  const index = items.findIndex(item => !Number.isSafeInteger(item) || (item as number) < 0)
  if (index >= 0) throw outOfRange(`${path}[${index}]`, 'a token id (an integer of at least 0)', items[index])
}

/** How many texts a checked `prompt` or `input` holds. */
export function textCount(value: Json | undefined): number {
  return Array.isArray(value) && typeof value[0] !== 'number' ? value.length : 1
}

/** The type alone: what a client sent may be long, or secret. */
function typeName(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}
