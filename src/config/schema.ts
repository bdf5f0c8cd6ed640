import { isObject, type JsonObject } from '../json.js'
import { Filled, settled, typed } from './document.js'
import type { Path, Problem } from './problems.js'
import { didYouMean, nearest } from './suggest.js'

/** A value that has been held against a schema. */
export interface Conformed {
  /**
   * The value with the schema's defaults in place of what is absent, and text from variables turned into the type that the schema wants.
   * What is wrong is left out (its default stands in, where it has one), so that the rest can be checked further. Undefined: nothing is left.
   */
  readonly value: unknown
  readonly problems: readonly Problem[]
}

/**
 * Holds a value against a JSON Schema (2020-12, the keywords of `KEYWORDS`) and finds every problem, with its path below `path`. An empty
 * map may be written as nothing at all. Messages never quote a value, since it may be a secret. A schema's `title` is used in messages:
 * «must be <title>».
 */
export function conform(schema: JsonObject, value: unknown, path: Path = []): Conformed {
  const walk = new Walk(schema)
  const result = walk.visit(schema, value, path)
  return { value: result === NOTHING ? undefined : result, problems: walk.problems }
}

const ASSERTIONS = [
  ...['type', 'enum', 'const', 'anyOf', 'oneOf', 'required', 'properties', 'patternProperties', 'additionalProperties', 'propertyNames'],
  ...['minProperties', 'maxProperties', 'items', 'minItems', 'maxItems', 'uniqueItems', 'minLength', 'maxLength', 'pattern'],
  ...['minimum', 'maximum', 'exclusiveMinimum'],
]
const ANNOTATIONS = ['$schema', '$id', '$ref', '$defs', 'title', 'description', 'default', 'examples', 'deprecated', 'writeOnly']

/** What `conform` knows. `oneOf` only chooses between names that are required; `$ref` only leads to the schema's own `$defs`. */
export const KEYWORDS: ReadonlySet<string> = new Set([...ASSERTIONS, ...ANNOTATIONS])

/** Keywords of a schema that `conform` would not see, as `path: keyword`. A schema with one of them checks less than it says. */
export function unknownKeywords(schema: unknown, path = '#'): string[] {
  if (!isObject(schema)) return []
  const found: string[] = []
  for (const [keyword, below] of Object.entries(schema)) {
    const at = `${path}/${keyword}`
    if (!KEYWORDS.has(keyword)) found.push(at)
    else if (NAMED.has(keyword) && isObject(below)) {
      for (const [name, one] of Object.entries(below)) found.push(...unknownKeywords(one, `${at}/${name}`))
    } else if (Array.isArray(below) && (keyword === 'anyOf' || keyword === 'oneOf')) {
      for (const [index, one] of below.entries()) found.push(...unknownKeywords(one, `${at}/${index}`))
    } else if (NESTED.has(keyword)) found.push(...unknownKeywords(below, at))
  }
  return found
}

const NAMED = new Set(['properties', 'patternProperties', '$defs'])
const NESTED = new Set(['items', 'additionalProperties', 'propertyNames'])
const NOTHING = Symbol('nothing')
/** Of more choices than these the nearest alone is told, where one is near. */
const CHOICES_TOLD = 12

class Walk {
  readonly problems: Problem[] = []
  readonly #resolved = new Map<JsonObject, JsonObject>()
  readonly #patterns = new Map<string, RegExp>()
  readonly #types = new Map<JsonObject, ReadonlySet<string>>()
  readonly #defaults = new Map<JsonObject, unknown>()

  constructor(readonly root: JsonObject) {}

  visit(reference: JsonObject, given: unknown, path: Path): unknown {
    const schema = this.#resolve(reference)
    const value = this.#typed(schema, given)
    if (value instanceof Filled) return NOTHING
    if (Array.isArray(schema.anyOf)) return this.#anyOf(schema, schema.anyOf as JsonObject[], value, path)
    const types = this.types(schema)
    // Nothing is said of it: it stays as it is.
    if (types.size === 0 && !('enum' in schema) && !('const' in schema)) return settled(value)
    const type = typeOf(value)
    if (type === 'null' && types.has('object') && !types.has('null')) return this.visit(reference, {}, path)
    if (types.size > 0 && !types.has(type) && !(type === 'integer' && types.has('number'))) {
      return this.#wrong(path, `must be ${titleOf(schema, types)}${this.#insteadOf(schema, type, value)}`)
    }
    const chosen = this.#choice(schema, value)
    if (chosen !== undefined) return this.#wrong(path, chosen)
    if (typeof value === 'string') return this.#text(schema, value, path)
    if (typeof value === 'number') return this.#number(schema, value, path)
    if (Array.isArray(value)) return this.#list(schema, value, path)
    if (isMap(value)) return this.#map(schema, value, path)
    // An empty section is an empty map, where the schema says that null may stand for it.
    return value === null && types.has('object') ? this.#map(schema, {}, path) : value
  }

  /** Types that a schema admits; empty: all there are. */
  types(reference: JsonObject): ReadonlySet<string> {
    const schema = this.#resolve(reference)
    let types = this.#types.get(schema)
    if (types === undefined) {
      types = this.#findTypes(schema)
      this.#types.set(schema, types)
    }
    return types
  }

  #findTypes(schema: JsonObject): ReadonlySet<string> {
    const of = (values: readonly unknown[]) => new Set(values.map(typeOf))
    if (typeof schema.type === 'string') return new Set([schema.type])
    if (Array.isArray(schema.type)) return new Set(schema.type as string[])
    if ('const' in schema) return of([schema.const])
    if (Array.isArray(schema.enum)) return of(schema.enum)
    if (Array.isArray(schema.anyOf)) return new Set((schema.anyOf as JsonObject[]).flatMap(branch => [...this.types(branch)]))
    return new Set('pattern' in schema || 'minLength' in schema ? ['string'] : [])
  }

  #wrong(path: Path, message: string): typeof NOTHING {
    this.problems.push({ path, message })
    return NOTHING
  }

  #resolve(schema: JsonObject): JsonObject {
    if (typeof schema.$ref !== 'string') return schema
    const known = this.#resolved.get(schema)
    if (known !== undefined) return known
    const { $ref, ...rest } = schema
    const target = (this.root.$defs as JsonObject | undefined)?.[$ref.replace('#/$defs/', '')]
    if (!isObject(target)) throw new Error(`The schema refers to ${$ref}, which it does not have.`)
    const resolved = this.#resolve({ ...target, ...rest })
    this.#resolved.set(schema, resolved)
    return resolved
  }

  /** Text from a variable becomes what is expected in its place: a secret of digits stays text where text is expected. */
  #typed(schema: JsonObject, value: unknown): unknown {
    if (!(value instanceof Filled) || value.text === null) return value
    const types = this.types(schema)
    if (!types.has('string')) return typed(value.text)
    const other = typed(value.text)
    return typeof other !== 'string' && types.size > 1 && types.has(typeOf(other)) ? other : value.text
  }

  /** The branch of the value's type reports its problems; without one, all branches are named. */
  #anyOf(schema: JsonObject, branches: readonly JsonObject[], value: unknown, path: Path): unknown {
    const type = typeOf(value)
    const fitting = branches.filter(branch => {
      const types = this.types(branch)
      return types.has(type) || (type === 'integer' && types.has('number'))
    })
    const [only] = fitting
    // One branch alone: what is right in it is kept, so that the rest of it can be checked further.
    if (only !== undefined && fitting.length === 1 && !(typeof value === 'string' && typeof schema.title === 'string')) {
      return this.visit(only, value, path)
    }
    const before = this.problems.length
    let first: Problem[] | undefined
    for (const branch of fitting) {
      const result = this.visit(branch, value, path)
      const problems = this.problems.splice(before)
      if (problems.length === 0) return result
      first ??= problems
    }
    const plain = typeof value === 'string' && typeof schema.title === 'string'
    if (first === undefined || plain) return this.#wrong(path, `must be ${titleOf(schema, this.types(schema))}`)
    this.problems.push(...first)
    return NOTHING
  }

  #choice(schema: JsonObject, value: unknown): string | undefined {
    const choices = 'const' in schema ? [schema.const] : Array.isArray(schema.enum) ? (schema.enum as unknown[]) : undefined
    if (choices === undefined || choices.includes(value)) return undefined
    const guess = typeof value === 'string' ? didYouMean(value, choices.map(String)) : ''
    if (guess !== '' && choices.length > CHOICES_TOLD) return `must not be ${JSON.stringify(value)}${guess}`
    return `must be ${either(choices.map(String))}${guess}`
  }

  #text(schema: JsonObject, value: string, path: Path): unknown {
    const { minLength, maxLength, pattern } = schema
    if (typeof minLength === 'number' && value.length < minLength) {
      return this.#wrong(path, minLength === 1 ? 'must not be empty' : `must have at least ${minLength} characters`)
    }
    if (typeof maxLength === 'number' && value.length > maxLength) return this.#wrong(path, `must have at most ${maxLength} characters`)
    if (typeof pattern === 'string' && !this.#pattern(pattern).test(value)) return this.#wrong(path, `must be ${titleOf(schema, NO_TYPES)}`)
    return value
  }

  #number(schema: JsonObject, value: number, path: Path): unknown {
    const { minimum, maximum, exclusiveMinimum } = schema
    if (typeof minimum === 'number' && !(value >= minimum)) return this.#wrong(path, `must be at least ${minimum}`)
    if (typeof exclusiveMinimum === 'number' && !(value > exclusiveMinimum))
      return this.#wrong(path, `must be more than ${exclusiveMinimum}`)
    if (typeof maximum === 'number' && !(value <= maximum)) return this.#wrong(path, `must be at most ${maximum}`)
    return value
  }

  #list(schema: JsonObject, value: readonly unknown[], path: Path): unknown {
    const { items, minItems, maxItems, uniqueItems } = schema
    const kept: unknown[] = []
    for (const [index, item] of value.entries()) {
      const one = isObject(items) ? this.visit(items, item, [...path, index]) : settled(item)
      if (one === NOTHING) continue
      if (uniqueItems === true && kept.includes(one)) this.problems.push({ path: [...path, index], message: 'stands in the list twice' })
      else kept.push(one)
    }
    if (typeof minItems === 'number' && value.length < minItems)
      this.problems.push({ path, message: `must have at least ${entries(minItems)}` })
    if (typeof maxItems === 'number' && value.length > maxItems)
      this.problems.push({ path, message: `must have at most ${entries(maxItems)}` })
    return kept
  }

  #map(schema: JsonObject, value: Readonly<Record<string, unknown>>, path: Path): unknown {
    const properties = isObject(schema.properties) ? schema.properties : {}
    const result: Record<string, unknown> = {}
    const names = Object.keys(value)
    for (const name of names) {
      const below = [...path, name]
      const one = this.#property(schema, properties, name, value[name], below)
      if (one !== NOTHING) result[name] = one
    }
    this.#bounds(schema, value, path)
    for (const [name, property] of Object.entries(properties)) {
      if (Object.hasOwn(result, name) || !isObject(property)) continue
      const byDefault = this.#default(this.#resolve(property))
      if (byDefault !== NOTHING) result[name] = byDefault
    }
    return result
  }

  #default(schema: JsonObject): unknown {
    if (!('default' in schema)) return NOTHING
    if (!this.#defaults.has(schema)) this.#defaults.set(schema, this.visit(schema, schema.default, []))
    return this.#defaults.get(schema)
  }

  #property(schema: JsonObject, properties: JsonObject, name: string, value: unknown, path: Path): unknown {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined
    if (isObject(property)) return this.visit(property, value, path)
    if (isObject(schema.propertyNames) && !this.#named(schema.propertyNames, name, path)) return NOTHING
    for (const [pattern, below] of Object.entries(isObject(schema.patternProperties) ? schema.patternProperties : {})) {
      if (this.#pattern(pattern).test(name) && isObject(below)) return this.visit(below, value, path)
    }
    const { additionalProperties } = schema
    if (isObject(additionalProperties)) return this.visit(additionalProperties, value, path)
    if (additionalProperties !== false) return settled(value)
    const known = Object.keys(properties)
    const guess = nearest(name, known) === undefined ? ` (known here: ${known.join(', ')})` : didYouMean(name, known)
    this.problems.push({ path, message: `unknown key${guess}`, part: 'name' })
    return NOTHING
  }

  #named(reference: JsonObject, name: string, path: Path): boolean {
    const schema = this.#resolve(reference)
    if (typeof schema.pattern !== 'string' || this.#pattern(schema.pattern).test(name)) return true
    this.problems.push({ path, message: `the name must be ${titleOf(schema, NO_TYPES)}`, part: 'name' })
    return false
  }

  #bounds(schema: JsonObject, value: Readonly<Record<string, unknown>>, path: Path): void {
    const { required, oneOf, minProperties, maxProperties } = schema
    const has = (name: unknown) => Object.hasOwn(value, String(name))
    for (const name of Array.isArray(required) ? required : []) {
      if (!has(name)) this.problems.push({ path, message: `${JSON.stringify(name)} is missing` })
    }
    if (Array.isArray(oneOf)) {
      const alternatives = (oneOf as JsonObject[]).map(({ required: names }) => (Array.isArray(names) ? (names as string[]) : []))
      const words = alternatives.map(names => names.map(name => JSON.stringify(name)).join(' and '))
      if (alternatives.filter(names => names.every(has)).length !== 1) {
        this.problems.push({
          path,
          message: `must have ${either(words)}${alternatives.some(names => names.every(has)) ? ', not both' : ''}`,
        })
      }
    }
    const count = Object.keys(value).length
    if (typeof minProperties === 'number' && count < minProperties) {
      this.problems.push({ path, message: `must have at least ${entries(minProperties)}` })
    }
    if (typeof maxProperties === 'number' && count > maxProperties) {
      this.problems.push({ path, message: `must have at most ${entries(maxProperties)}` })
    }
  }

  /** Says what stands there, without quoting it. */
  #insteadOf(schema: JsonObject, type: string, value: unknown): string {
    if (type === 'null') return ', but nothing stands here'
    if (value === '') return ', but the text is empty'
    if (typeof value === 'string' && /^[0-9]+(_[0-9]+)+$/.test(value)) return ', written without _'
    if (type === 'number' && this.types(schema).has('integer')) return ', not a fraction'
    const what = type === 'integer' ? 'a number' : (NAMES[type] ?? type)
    // 12345 would be right as "12345".
    const scalar = type === 'integer' || type === 'number' || type === 'boolean'
    const { pattern } = schema
    const quotable =
      scalar && this.types(schema).has('string') && (typeof pattern !== 'string' || this.#pattern(pattern).test(String(value)))
    return `, not ${what}${quotable ? ' (put it in quotes)' : ''}`
  }

  #pattern(source: string): RegExp {
    let pattern = this.#patterns.get(source)
    if (pattern === undefined) {
      pattern = new RegExp(source, 'u')
      this.#patterns.set(source, pattern)
    }
    return pattern
  }
}

const NO_TYPES: ReadonlySet<string> = new Set()
const NAMES: Readonly<Record<string, string>> = {
  string: 'text',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  object: 'a map',
  array: 'a list',
  null: 'null',
  infinite: 'infinity',
}

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value !== 'number') return typeof value
  // .inf and .nan are numbers of YAML, not of JSON.
  return Number.isInteger(value) ? 'integer' : Number.isFinite(value) ? 'number' : 'infinite'
}

function titleOf(schema: JsonObject, types: ReadonlySet<string>): string {
  if (typeof schema.title === 'string') return schema.title
  if (types.size > 0) return either([...types].filter(type => type !== 'null' || types.size === 1).map(type => NAMES[type] ?? type))
  return typeof schema.pattern === 'string' ? `text that matches ${schema.pattern}` : 'something else'
}

function either(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`
}

function entries(count: number): string {
  return count === 1 ? 'one entry' : `${count} entries`
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
