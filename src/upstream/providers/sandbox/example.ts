import { isObject, type Json, type JsonObject } from '../../../json.js'

/** A client's schema must not make us build more than this: values in all, characters of a string, levels. */
const VALUES_MAX = 2000
const LETTERS_MAX = 4096
const DEPTH_MAX = 64
/** References and lists of `allOf` followed for one value. */
const HOPS_MAX = 16

/** Strings that a `format` takes. */
const FORMATS: ReadonlyMap<string, string> = new Map([
  ['date', '2000-01-01'],
  ['date-time', '2000-01-01T00:00:00Z'],
  ['time', '00:00:00Z'],
  ['duration', 'P1D'],
  ['email', 'someone@example.com'],
  ['hostname', 'example.com'],
  ['ipv4', '192.0.2.1'],
  ['ipv6', '2001:db8::1'],
  ['uri', 'https://example.com/'],
  ['uuid', '00000000-0000-4000-8000-000000000000'],
])

/**
 * A small value that a JSON Schema admits: required properties only, the first of a choice, the least number, the shortest list.
 * `pattern`, `not`, conditions and `uniqueItems` are not looked at, nor references outside the schema.
 */
export function example(schema: unknown): Json {
  return new Example(schema).of(schema, 0)
}

/** The same, where an object is wanted whatever the schema says. */
export function exampleObject(schema: unknown): JsonObject {
  const value = example(schema)
  return isObject(value) ? value : {}
}

class Example {
  #left = VALUES_MAX

  constructor(readonly root: unknown) {}

  of(given: unknown, depth: number): Json {
    if (!isObject(given) || depth > DEPTH_MAX || this.#left-- <= 0) return null
    const schema = this.#merged(given)
    if (schema.const !== undefined) return schema.const
    for (const list of [schema.enum, schema.examples]) {
      if (Array.isArray(list) && list.length > 0) return list[0] as Json
    }
    if (schema.default !== undefined) return schema.default
    const choice = firstOf(schema.anyOf) ?? firstOf(schema.oneOf)
    if (choice !== undefined) return this.of(isObject(choice) ? merge(without(schema, 'anyOf', 'oneOf'), choice) : choice, depth + 1)
    switch (typeOf(schema)) {
      case 'object':
        return this.#object(schema, depth)
      case 'array':
        return this.#array(schema, depth)
      case 'string':
        return string(schema)
      case 'integer':
        return number(schema, 1)
      case 'number':
        return number(schema, 0)
      case 'boolean':
        return false
      default:
        return null
    }
  }

  /** References followed and `allOf` folded in. */
  #merged(schema: JsonObject): JsonObject {
    let merged = schema
    for (let hops = 0; hops < HOPS_MAX && this.#left > 0; hops++, this.#left--) {
      const { $ref, allOf } = merged
      if (typeof $ref === 'string') {
        const target = this.#resolve($ref)
        const beside = without(merged, '$ref')
        merged = isObject(target) ? merge(beside, target) : beside
      } else if (Array.isArray(allOf)) {
        merged = allOf.filter(isObject).slice(0, DEPTH_MAX).reduce(merge, without(merged, 'allOf'))
      } else break
    }
    return merged
  }

  /** RFC 6901, within the schema itself. */
  #resolve(ref: string): unknown {
    if (!ref.startsWith('#')) return undefined
    let at: unknown = this.root
    for (const part of ref.slice(1).split('/').slice(1)) {
      const name = part.replaceAll('~1', '/').replaceAll('~0', '~')
      if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return undefined
      at = (at as { [name: string]: unknown })[name]
    }
    return at
  }

  #object(schema: JsonObject, depth: number): JsonObject {
    const properties = isObject(schema.properties) ? schema.properties : {}
    const required = Array.isArray(schema.required) ? schema.required : []
    const entries: [string, Json][] = []
    for (const name of required) {
      if (this.#left <= 0) break
      if (typeof name !== 'string') continue
      entries.push([name, Object.hasOwn(properties, name) ? this.of(properties[name], depth + 1) : null])
    }
    // Not by assignment: a property `__proto__` would set the prototype.
    return Object.fromEntries(entries)
  }

  #array(schema: JsonObject, depth: number): Json[] {
    const length = whole(schema.minItems)
    const first = Array.isArray(schema.prefixItems) ? schema.prefixItems : []
    const items: Json[] = []
    while (items.length < length && this.#left > 0) items.push(this.of(first[items.length] ?? schema.items ?? {}, depth + 1))
    return items
  }
}

function typeOf(schema: JsonObject): unknown {
  const { type } = schema
  if (Array.isArray(type)) return type.find(name => name !== 'null') ?? type[0]
  if (type !== undefined) return type
  if (schema.properties !== undefined || schema.required !== undefined) return 'object'
  return schema.items === undefined ? undefined : 'array'
}

function string(schema: JsonObject): string {
  const format = typeof schema.format === 'string' ? FORMATS.get(schema.format) : undefined
  return format ?? 'x'.repeat(Math.min(whole(schema.minLength), LETTERS_MAX))
}

/** The number nearest to 0 that the bounds admit; `grain` 1 for integers. */
function number(schema: JsonObject, grain: 0 | 1): number {
  const bound = (value: unknown, none: number): number => (typeof value === 'number' ? value : none)
  const { multipleOf } = schema
  const given = typeof multipleOf === 'number' && multipleOf > 0 ? multipleOf : 0
  // A fraction as `multipleOf` of an integer is taken to divide 1.
  const step = grain === 1 && !Number.isInteger(given) ? 1 : given || grain
  const above = bound(schema.exclusiveMinimum, Number.NEGATIVE_INFINITY)
  const below = bound(schema.exclusiveMaximum, Number.POSITIVE_INFINITY)
  const least = Math.max(bound(schema.minimum, Number.NEGATIVE_INFINITY), above)
  const most = Math.min(bound(schema.maximum, Number.POSITIVE_INFINITY), below)
  if (least > 0 || above === 0) return climb(least, least === above, step, most)
  if (most < 0 || below === 0) return 0 - climb(-most, most === below, step, -least)
  return 0
}

/** The first multiple of `step` from `least` on, or beyond it; without a step, what lies between. */
function climb(least: number, beyond: boolean, step: number, most: number): number {
  if (step === 0) {
    if (!beyond) return least
    return most === Number.POSITIVE_INFINITY ? Math.floor(least) + 1 : (least + most) / 2
  }
  const multiple = Math.ceil(least / step) * step
  return beyond && multiple === least ? multiple + step : multiple
}

function merge(into: JsonObject, more: JsonObject): JsonObject {
  const merged: { [name: string]: Json | undefined } = { ...into, ...more }
  if (isObject(into.properties) && isObject(more.properties)) merged.properties = { ...into.properties, ...more.properties }
  if (Array.isArray(into.required) && Array.isArray(more.required)) merged.required = [...new Set([...into.required, ...more.required])]
  return merged
}

function without(schema: JsonObject, ...names: string[]): JsonObject {
  return Object.fromEntries(Object.entries(schema).filter(([name]) => !names.includes(name)))
}

function firstOf(list: unknown): unknown {
  return Array.isArray(list) ? list[0] : undefined
}

function whole(value: unknown): number {
  return typeof value === 'number' && value > 0 ? Math.floor(value) : 0
}
