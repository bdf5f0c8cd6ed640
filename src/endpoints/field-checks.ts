import { GatewayError } from '../errors.js'
import { isObject, type JsonObject } from '../json.js'

/**
 * Checks of request fields. Each takes the value and its path and throws `invalid_request` with `param` where the value is of a wrong type;
 * an optional field that is absent or null is right.
 */
export type Check = (value: unknown, path: string) => void

/** `messages[1].content must be a string, got number.` */
export function wrong(path: string, expected: string, value: unknown): GatewayError {
  return new GatewayError('invalid_request', `${path} must be ${expected}, got ${kindOf(value)}.`, { param: path })
}

export function missing(path: string): GatewayError {
  return new GatewayError('invalid_request', `${path} is required.`, { param: path })
}

/** What a client's developer calls the value: `null`, `array`, `number`, or a number's own figure where that is what is wrong. */
function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return value.length === 0 ? 'an empty array' : 'array'
  return typeof value
}

export const isText: Check = (value, path) => {
  if (typeof value !== 'string') throw wrong(path, 'a string', value)
}

export const isTruth: Check = (value, path) => {
  if (typeof value !== 'boolean') throw wrong(path, 'a boolean', value)
}

/** JSON has numbers beyond those of a computer (1e400): they can be neither kept nor forwarded. */
export const isNumber: Check = (value, path) => {
  if (typeof value !== 'number') throw wrong(path, 'a number', value)
  if (!Number.isFinite(value)) throw new GatewayError('invalid_request', `${path} is too large a number.`, { param: path })
}

export const isRecord: Check = (value, path) => {
  if (!isObject(value)) throw wrong(path, 'an object', value)
}

/** Whole, within bounds, both inclusive. */
export function isInteger(least: number, most = Number.MAX_SAFE_INTEGER): Check {
  const bounds = most === Number.MAX_SAFE_INTEGER ? `an integer of at least ${least}` : `an integer from ${least} to ${most}`
  const expected = least === Number.MIN_SAFE_INTEGER ? 'an integer' : bounds
  return (value, path) => {
    if (typeof value !== 'number') throw wrong(path, expected, value)
    if (!Number.isSafeInteger(value) || value < least || value > most) {
      throw new GatewayError('invalid_request', `${path} must be ${expected}, got ${value}.`, { param: path })
    }
  }
}

export function isListOf(item: Check, expected: string): Check {
  return (value, path) => {
    if (!Array.isArray(value)) throw wrong(path, expected, value)
    value.forEach((inner, i) => {
      item(inner, `${path}[${i}]`)
    })
  }
}

/** The first check whose kind of value it is decides. */
export function isTextOr(other: Check, accepts: (value: unknown) => boolean, expected: string): Check {
  return (value, path) => {
    if (typeof value === 'string') return
    if (!accepts(value)) throw wrong(path, expected, value)
    other(value, path)
  }
}

/** Applies each field's check to the fields that are there. */
export function checkFields(body: JsonObject, checks: ReadonlyMap<string, Check>): void {
  for (const [name, check] of checks) {
    const value = body[name]
    if (value !== undefined && value !== null) check(value, name)
  }
}
