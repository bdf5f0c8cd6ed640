import type { GatewayError } from '../../../errors.js'
import { isObject, type Json, type JsonObject } from '../../../json.js'
import { unreadable } from '../../chat/conversation.js'

/** References are written out where they stand, and thirty that name each other twice would be a thousand million: one request may add so many characters. */
const ADDED_MAX = 500_000

/** As deep as a request's body may be. */
const DEPTH_MAX = 128

/** What the references of one request have added, over all its schemas: characters. */
export class Budget {
  added = 0
}

/** What is understood as it is. The rest (`$schema`, `additionalProperties`, `default`, `exclusiveMinimum`, …) the API refuses by name. */
const KEPT = [
  'title',
  'description',
  'nullable',
  'minimum',
  'maximum',
  'minItems',
  'maxItems',
  'minLength',
  'maxLength',
  'minProperties',
  'maxProperties',
  'pattern',
] as const

/** The API answers 400 to any other format. */
const FORMATS: ReadonlySet<unknown> = new Set(['enum', 'date-time', 'float', 'double', 'int32', 'int64'])

/**
 * A JSON Schema in the OpenAPI subset that Gemini reads. What the subset can not say is widened, never narrowed: a schema that contains
 * itself becomes an object of any shape, a `const` that is no string a remark in the description. `path` is where it stands in the request.
 * Throws `invalid_request` where a reference leads nowhere, or where the references would grow beyond all bounds.
 */
export function geminiSchema(schema: JsonObject, path: string, budget: Budget = new Budget()): JsonObject {
  return new Translation(schema, path, budget).node(schema, [])
}

export function isEmptyObject(value: Json): boolean {
  return isObject(value) && Object.keys(value).length === 0
}

class Translation {
  readonly #root: JsonObject
  readonly #path: string
  readonly #budget: Budget
  #depth = 0

  constructor(root: JsonObject, path: string, budget: Budget) {
    this.#root = root
    this.#path = path
    this.#budget = budget
  }

  /** `open`: the references that lead here. */
  node(schema: Json | undefined, open: readonly string[]): JsonObject {
    if (open.length > 0) this.#budget.added += weightOf(schema)
    if (this.#budget.added > ADDED_MAX || ++this.#depth > DEPTH_MAX) throw this.#unbounded()
    const result = isObject(schema) ? this.#translated(schema, open) : {}
    this.#depth--
    return result
  }

  #unbounded(): GatewayError {
    return unreadable(
      this.#path,
      `is too large when its references are written out: at most ${ADDED_MAX} characters more, ${DEPTH_MAX} levels deep.`,
    )
  }

  #translated(schema: JsonObject, open: readonly string[]): JsonObject {
    if (typeof schema.$ref === 'string') return this.#reference(schema.$ref, schema, open)
    const { type, nullable, alternatives } = typesOf(schema)
    const alone = { ...(type === undefined ? {} : { type }), ...kept(schema), ...(nullable ? { nullable: true } : {}) }
    const whole =
      alternatives.length > 0
        ? { ...alone, anyOf: alternatives.map(one => this.node({ ...shared(schema), type: one }, open)) }
        : { ...alone, ...this.#children(schema, type, open) }
    return this.#combined(schema, { ...whole, ...valuesOf(schema, whole) }, open)
  }

  #reference(ref: string, schema: JsonObject, open: readonly string[]): JsonObject {
    const { $ref: _, ...beside } = schema
    if (open.includes(ref)) return { type: 'object', ...kept(beside) }
    return this.node({ ...this.#target(ref), ...beside }, [...open, ref])
  }

  #target(ref: string): JsonObject {
    const steps = ref === '#' || ref.startsWith('#/') ? ref.split('/').slice(1) : null
    let found: Json | undefined = steps === null ? undefined : this.#root
    for (const step of steps ?? []) {
      const name = unescaped(step)
      if (Array.isArray(found)) found = (found as readonly Json[])[Number(name)]
      else found = isObject(found) && Object.hasOwn(found, name) ? found[name] : undefined
    }
    if (isObject(found)) return found
    if (found === true) return {}
    throw unreadable(this.#path, `refers to ${ref.slice(0, 100)}, which is not in it.`)
  }

  #children(schema: JsonObject, type: string | undefined, open: readonly string[]): JsonObject {
    if (type === 'object' && isObject(schema.properties)) {
      const { properties } = schema
      // A name that is required and not described is refused.
      const listed = Array.isArray(schema.required) ? (schema.required as readonly Json[]) : []
      const required = listed.filter(name => typeof name === 'string' && Object.hasOwn(properties, name))
      return {
        properties: Object.fromEntries(Object.entries(properties).map(([name, property]) => [name, this.node(property, open)])),
        ...(required.length === 0 ? {} : { required }),
      }
    }
    if (type !== 'array') return {}
    const items = Array.isArray(schema.prefixItems)
      ? { anyOf: [...schema.prefixItems, ...(isObject(schema.items) ? [schema.items] : [])] }
      : schema.items
    // An array whose items are not described is refused.
    return { items: isObject(items) ? this.node(items, open) : { type: 'string' } }
  }

  /** `oneOf` is read as `anyOf`; the parts of `allOf` are laid over each other. */
  #combined(schema: JsonObject, result: JsonObject, open: readonly string[]): JsonObject {
    const all = Array.isArray(schema.allOf) ? (schema.allOf as readonly Json[]) : []
    const combined = all.length === 0 ? result : merged([result, ...all.map(part => this.node(part, open))])
    const any = Array.isArray(schema.anyOf) ? schema.anyOf : Array.isArray(schema.oneOf) ? schema.oneOf : null
    if (any === null) return combined
    const parts = (any as readonly Json[]).filter(part => !(isObject(part) && part.type === 'null'))
    const nullable = parts.length < any.length ? { nullable: true } : {}
    const nodes = parts.map(part => this.node(part, open))
    const [only] = nodes
    if (nodes.length === 1 && only !== undefined) return { ...merged([combined, only]), ...nullable }
    return nodes.length === 0 ? { ...combined, ...nullable } : { ...combined, anyOf: nodes, ...nullable }
  }
}

/** About as many characters as the schema is long without the schemas in it. */
function weightOf(schema: Json | undefined): number {
  if (!isObject(schema)) return 8
  const { properties, type, enum: values, const: value, required } = schema
  const names = isObject(properties) ? Object.keys(properties) : []
  return JSON.stringify([names, type, values, value, required, kept(schema)]).length
}

const TYPES: ReadonlySet<string> = new Set(['string', 'number', 'integer', 'boolean', 'array', 'object'])

interface Types {
  readonly type: string | undefined
  readonly nullable: boolean
  /** Where there are several. */
  readonly alternatives: readonly string[]
}

function typesOf(schema: JsonObject): Types {
  const named = Array.isArray(schema.type) ? schema.type : [schema.type ?? implied(schema)]
  const lower = new Set(named.map(type => (typeof type === 'string' ? type.toLowerCase() : '')))
  const types = [...lower].filter(type => TYPES.has(type))
  const nullable = types.length > 0 && lower.has('null')
  if (types.length > 1) return { type: undefined, nullable, alternatives: types }
  return { type: types[0] ?? (lower.has('null') ? 'null' : undefined), nullable, alternatives: [] }
}

function implied(schema: JsonObject): string | undefined {
  if (isObject(schema.properties)) return 'object'
  if (schema.items !== undefined || schema.prefixItems !== undefined) return 'array'
  return undefined
}

const UNSHARED: ReadonlySet<string> = new Set(['title', 'description', 'anyOf', 'oneOf', 'allOf', 'enum', 'const'])

/** What each of several types may repeat of their schema. */
function shared(schema: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(schema).filter(([name]) => !UNSHARED.has(name)))
}

function kept(schema: JsonObject): JsonObject {
  const pairs = KEPT.filter(name => schema[name] !== undefined && schema[name] !== null).map(name => [name, schema[name]] as const)
  return { ...Object.fromEntries(pairs), ...(FORMATS.has(schema.format) ? { format: schema.format } : {}) }
}

/** `enum` can only list strings; other values are told in words. */
function valuesOf(schema: JsonObject, result: JsonObject): JsonObject {
  const all = schema.const !== undefined ? [schema.const] : Array.isArray(schema.enum) ? (schema.enum as readonly Json[]) : []
  const values = all.filter(value => value !== null)
  const nullable = values.length < all.length ? { nullable: true } : {}
  if (values.length === 0) return nullable
  const untyped = result.type === undefined && result.anyOf === undefined
  if (values.every(value => typeof value === 'string') && (untyped || result.type === 'string')) {
    return { type: 'string', enum: values, ...nullable }
  }
  const said = typeof result.description === 'string' ? `${result.description} ` : ''
  const kind = typeof values[0]
  const scalar = (kind === 'number' || kind === 'boolean') && values.every(value => typeof value === kind)
  return {
    ...(untyped && scalar ? { type: kind } : {}),
    description: `${said}One of: ${values.map(value => JSON.stringify(value)).join(', ')}.`,
    ...nullable,
  }
}

/** One schema that says what all of them say; of contradictions the first counts. */
function merged(schemas: readonly JsonObject[]): JsonObject {
  const reversed = schemas.toReversed()
  const properties = reversed.flatMap(schema => (isObject(schema.properties) ? Object.entries(schema.properties) : []))
  const required = schemas.flatMap(schema => (Array.isArray(schema.required) ? (schema.required as readonly Json[]) : []))
  return {
    ...Object.fromEntries(reversed.flatMap(schema => Object.entries(schema))),
    ...(properties.length === 0 ? {} : { properties: Object.fromEntries(properties) }),
    ...(required.length === 0 ? {} : { required: [...new Set(required)] }),
  }
}

function unescaped(step: string): string {
  try {
    return decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~')
  } catch {
    return step
  }
}
