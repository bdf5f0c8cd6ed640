import { isObject, type Json, type JsonObject } from '../json.js'
import type { Texts } from './text.js'

/**
 * Adds what a schema holds: fields, listed values, items, alternatives, definitions. What else it may hold counts as its JSON, which costs more than a declaration:
 * a client can put text wherever it likes. `field`: its type and description stand beside its name, and are counted there.
 */
export function schemaTokens(schema: JsonObject, texts: Texts, field = false): number {
  let tokens = 0
  for (const keyword in schema) {
    const value = schema[keyword]
    if (QUIET.has(keyword) && !isText(value)) continue
    switch (keyword) {
      case 'type':
        if (field || isTypeName(value)) continue
        break
      case 'description':
        if (field && typeof value === 'string') continue
        break
      case 'format':
        if (FORMATS.has(value)) continue
        break
      case 'required':
        if (Array.isArray(value)) {
          addRequired(value, schema.properties, texts)
          continue
        }
        break
      case 'properties':
        if (isObject(value)) {
          tokens += fields(value, texts)
          continue
        }
        break
      case 'enum':
        if (Array.isArray(value)) {
          for (const one of value) texts.add(typeof one === 'string' ? one : JSON.stringify(one))
          tokens += 3 * Math.max(0, value.length - 1)
          continue
        }
        break
      case 'items':
        if (isObject(value)) {
          tokens += schemaTokens(value, texts)
          continue
        }
        break
      case 'anyOf':
      case 'oneOf':
      case 'allOf':
        if (Array.isArray(value)) {
          for (const branch of value) tokens += 3 + innerTokens('', branch, texts)
          continue
        }
        break
      case '$defs':
      case 'definitions':
        if (isObject(value)) {
          for (const name in value) tokens += 3 + innerTokens(name, value[name], texts)
          continue
        }
    }
    addJson(keyword, value, texts)
  }
  return tokens
}

/** A declaration does not show these where they are a number or a yes or no. */
const QUIET: ReadonlySet<string> = new Set([
  'additionalItems',
  'additionalProperties',
  'default',
  'deprecated',
  'exclusiveMaximum',
  'exclusiveMinimum',
  'maxItems',
  'maxLength',
  'maxProperties',
  'maximum',
  'minItems',
  'minLength',
  'minProperties',
  'minimum',
  'multipleOf',
  'nullable',
  'readOnly',
  'unevaluatedItems',
  'unevaluatedProperties',
  'uniqueItems',
  'writeOnly',
])

/** Nor these words of JSON Schema and OpenAPI. */
const FORMATS: ReadonlySet<unknown> = new Set(
  'date date-time time duration email hostname ipv4 ipv6 uri uri-reference uuid regex byte binary int32 int64 float double'.split(' '),
)
const TYPES: ReadonlySet<unknown> = new Set(['object', 'array', 'string', 'number', 'integer', 'boolean', 'null'])

function isTypeName(value: unknown): boolean {
  return Array.isArray(value) ? value.length <= TYPES.size && value.every(one => TYPES.has(one)) : TYPES.has(value)
}

/** Anything longer than a number. */
function isText(value: unknown): boolean {
  return typeof value === 'string' || (typeof value === 'object' && value !== null)
}

function fields(properties: JsonObject, texts: Texts): number {
  let tokens = 0
  for (const name in properties) {
    const field = properties[name]
    if (tokens === 0) tokens = 3
    if (!isObject(field)) {
      addJson(name, field, texts)
      tokens += 1
      continue
    }
    texts.add(
      `${name}:${typeof field.type === 'string' ? field.type : field.type === undefined ? '' : JSON.stringify(field.type)}:${text(field.description)}\n`,
    )
    tokens += (field.description === undefined ? 1 : 3) + schemaTokens(field, texts, true)
  }
  return tokens
}

function innerTokens(name: string, schema: Json | undefined, texts: Texts): number {
  if (name !== '') texts.add(name)
  if (isObject(schema)) return schemaTokens(schema, texts)
  addJson('', schema, texts)
  return 0
}

/** A field that is not required is marked so; whatever else is listed is no mark. */
function addRequired(required: readonly Json[], properties: Json | undefined, texts: Texts): void {
  const names = new Set<Json>(isObject(properties) ? Object.keys(properties) : [])
  for (const name of required) if (!names.delete(name)) addJson('', name, texts)
}

/** Adds a member that is not understood as what it is: text. */
export function addJson(name: string, value: Json | undefined, texts: Texts): void {
  texts.add(`${name}:${JSON.stringify(value)}`)
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
