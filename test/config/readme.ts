import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import type { KindInfo } from '../../src/config/config.js'
import { isObject, type Json, type JsonObject } from '../../src/json.js'
import { code, table } from '../support/markdown.js'
import { ROOT } from '../support/paths.js'

/** Configs that people read; what they say of a key is its example where the schema has none. */
const SHOWN = [
  'gateway.yaml',
  'config/examples/openai.yaml',
  'config/examples/sidecar.yaml',
  'config/examples/local.yaml',
  'config/examples/catalog.yaml',
]

/** Every key of gateway.yaml, section by section, as Markdown: what the schema says, and nothing else. */
export function settings(schema: JsonObject): string {
  return new Manual(schema).text()
}

/** The kinds of value that the tables name, as Markdown. */
export function values(schema: JsonObject): string {
  const rows = Object.entries(schema.$defs as Record<string, JsonObject>)
    .filter(([, { properties }]) => properties === undefined)
    .filter(([name]) => name !== 'price')
    .map(([name, def]) => [name.replace('_', ' '), text(def.title ?? def.description) || bounds(def)])
  return table(['value', 'is'], rows)
}

/** The kinds of provider that are built in, and what each brings along, as Markdown. */
export function kinds(known: ReadonlyMap<string, KindInfo>): string {
  const rows = [...known].map(([kind, { baseUrl, defaults, surfaces }]) => [
    code(kind),
    baseUrl === undefined ? 'required' : kind === 'sandbox' ? 'none' : code(baseUrl),
    surfaces === undefined ? '' : surfaces.length === 5 ? 'all' : surfaces.join(', '),
    Object.entries(defaults ?? {})
      .map(([name, value]) => code(`${name}: ${value}`))
      .join(', '),
  ])
  const options = [...known].flatMap(([kind, info]) =>
    (['options', 'modelOptions'] as const).flatMap(which => {
      const { properties } = info[which] ?? {}
      return isObject(properties)
        ? Object.entries(properties).map(([name, one]) => [
            code(kind),
            which === 'options' ? 'provider' : 'model',
            code(name),
            isObject(one) ? `${text(one.description)}${one.enum === undefined ? '' : ` One of ${choices(one.enum)}.`}` : '',
          ])
        : []
    }),
  )
  return `${table(['kind', '`base_url`', 'surfaces', 'its defaults'], rows)}

Settings under \`options\`, of a provider of the kind or of one of its models:

${table(['kind', 'of a', 'option', 'meaning'], options)}`
}

class Manual {
  readonly #schema: JsonObject
  readonly #shown = SHOWN.map(file => parse(readFileSync(ROOT + file, 'utf8'), { merge: true }) as unknown)

  constructor(schema: JsonObject) {
    this.#schema = schema
  }

  text(): string {
    const sections = Object.entries(this.#schema.properties as Record<string, JsonObject>)
    const flat = sections.filter(([, section]) => this.#below(section).length === 0)
    const deep = sections.filter(([, section]) => this.#below(section).length > 0)
    const general = table(
      HEAD,
      flat.map(([name, section]) => this.#row(name, [name], section, this.#required(this.#schema, name))),
    )
    return ['### General', general, ...deep.flatMap(([name, section]) => this.#section(name, section))].join('\n\n')
  }

  #section(name: string, section: JsonObject): string[] {
    const [own] = this.#below(section)
    const each = own?.steps.length === 0 ? '' : section.type === 'array' ? 'A map has:' : 'Under each name:'
    const rows: string[][] = []
    this.#rows(own?.prefix ?? '', [name, ...(own?.steps ?? [])], own?.schema ?? {}, rows)
    const example = Array.isArray(section.examples) ? [`Example: ${code(`${name}: ${flow(section.examples[0])}`)}`] : []
    const standard = isScalarDefault(section.default) ? [`Default: ${code(flow(section.default))}`] : []
    const needed = this.#required(this.#schema, name) ? ['Required.'] : []
    const said = [text(section.description), ...needed, ...standard.map(one => `${one}.`), each].join(' ').trim()
    return [`### \`${name}\``, said, table(HEAD, rows), ...example]
  }

  #rows(prefix: string, path: readonly string[], schema: JsonObject, rows: string[][]): void {
    for (const [name, one] of Object.entries((schema.properties ?? {}) as Record<string, JsonObject>)) {
      const below = [...path, name]
      rows.push(this.#row(prefix + name, below, one, this.#required(schema, name)))
      for (const map of this.#below(one)) this.#rows(`${prefix}${name}${map.prefix}.`, [...below, ...map.steps], map.schema, rows)
    }
  }

  #row(name: string, path: readonly string[], given: JsonObject, required: boolean): string[] {
    const schema = this.#resolved(given)
    const standard = required
      ? 'required'
      : schema.default === undefined
        ? ''
        : isEmptyMap(schema.default)
          ? ''
          : code(flow(schema.default))
    return [code(name), this.#type(given), standard, this.#example(path, given), text(schema.description)]
  }

  /** The schemas of the maps right below, with what their keys are prefixed by: `<name>.` where the names are free. */
  #below(given: JsonObject): { prefix: string; steps: readonly string[]; schema: JsonObject }[] {
    const schema = this.#resolved(given)
    if (isObject(schema.properties)) return [{ prefix: '', steps: [], schema }]
    if (isObject(schema.additionalProperties)) {
      const one = this.#resolved(schema.additionalProperties)
      return isObject(one.properties) ? [{ prefix: '', steps: ['*'], schema: one }] : []
    }
    if (isObject(schema.items)) return this.#below(schema.items).map(({ schema: one }) => ({ prefix: '', steps: ['*'], schema: one }))
    return Array.isArray(schema.anyOf) ? schema.anyOf.flatMap(one => (isObject(one) ? this.#below(one) : [])) : []
  }

  #type(given: JsonObject): string {
    if (typeof given.$ref === 'string' && nameOf(given.$ref) !== 'price') return nameOf(given.$ref).replace('_', ' ')
    const schema = this.#resolved(given)
    if (schema.enum !== undefined) return choices(schema.enum)
    if (schema.const !== undefined) return code(flow(schema.const))
    if (Array.isArray(schema.anyOf)) return schema.anyOf.map(one => this.#type(one as JsonObject)).join(' or ')
    const types = (Array.isArray(schema.type) ? schema.type : [schema.type]).filter(type => type !== 'null' || !isEmptyMap(schema.default))
    return types.map(type => this.#typeName(type, schema)).join(' or ')
  }

  #typeName(type: Json | undefined, schema: JsonObject): string {
    if (type === 'string' && schema.title !== undefined) return text(schema.title)
    if (type === 'array') {
      const { enum: listed } = isObject(schema.items) ? schema.items : {}
      return `list of ${Array.isArray(listed) && listed.length <= CHOICES_MAX ? choices(listed) : 'text'}`
    }
    return TYPES.get(String(type)) ?? String(type ?? 'anything')
  }

  /** The schema's own, else what a config that people read says there, else one that the kind of value has, else a value that may stand there. */
  #example(path: readonly string[], given: JsonObject): string {
    const schema = this.#resolved(given)
    if (isObject(schema.properties) && schema.examples === undefined) return ''
    if (Array.isArray(given.examples)) return code(flow(given.examples[0] as Json))
    for (const shown of this.#shown) {
      const found = find(shown, path)
      if (found !== undefined) return code(flow(found as Json))
    }
    if (Array.isArray(schema.examples)) return code(flow(schema.examples[0] as Json))
    if (typeof schema.default === 'boolean') return code(String(!schema.default))
    if (Array.isArray(schema.enum)) return code(String(schema.enum.findLast(one => one !== schema.default)))
    return schema.default === undefined || schema.default === null || isEmptyMap(schema.default) ? '' : code(flow(schema.default))
  }

  #required(schema: JsonObject, name: string): boolean {
    return Array.isArray(schema.required) && schema.required.includes(name)
  }

  #resolved(schema: JsonObject): JsonObject {
    if (typeof schema.$ref !== 'string') return schema
    const def = (this.#schema.$defs as Record<string, JsonObject>)[nameOf(schema.$ref)]
    if (def === undefined) throw new Error(`${schema.$ref} leads nowhere`)
    return { ...this.#resolved(def), ...schema, $ref: undefined } as unknown as JsonObject
  }
}

const HEAD = ['key', 'value', 'default', 'example', 'meaning']

const TYPES = new Map([
  ['string', 'text'],
  ['boolean', 'true or false'],
  ['integer', 'whole number'],
  ['object', 'map'],
])

function nameOf(ref: string): string {
  return ref.slice(ref.lastIndexOf('/') + 1)
}

/** The first value at a path, `*` being any name or place. */
function find(value: unknown, [step, ...rest]: readonly string[]): unknown {
  if (step === undefined) return value
  if (typeof value !== 'object' || value === null) return undefined
  const below = step === '*' ? Object.values(value) : Object.hasOwn(value, step) ? [(value as Record<string, unknown>)[step]] : []
  for (const one of below) {
    const found = find(one, rest)
    if (found !== undefined) return found
  }
  return undefined
}

function bounds({ type, minimum, maximum, exclusiveMinimum }: JsonObject): string {
  const from = exclusiveMinimum === undefined ? `from ${minimum}` : `above ${exclusiveMinimum}`
  return `a ${TYPES.get(String(type)) ?? String(type)}, ${from}, up to ${maximum}`
}

/** More would make a table unreadable; a wrong one is told with all that there are. */
const CHOICES_MAX = 12

function choices(values: Json): string {
  return Array.isArray(values) ? values.map(one => code(String(one))).join(', ') : ''
}

function isEmptyMap(value: Json | undefined): boolean {
  return isObject(value) && Object.keys(value).length === 0
}

function isScalarDefault(value: Json | undefined): value is Json {
  return value !== undefined && !isEmptyMap(value)
}

/** A value as YAML on one line. */
function flow(value: Json | undefined): string {
  if (Array.isArray(value)) return `[${value.map(flow).join(', ')}]`
  if (isObject(value))
    return `{${Object.entries(value)
      .map(([name, one]) => `${name}: ${flow(one)}`)
      .join(', ')}}`
  return typeof value === 'string' && value === '' ? '""' : String(value)
}

/** A sentence of the schema; what looks like a tag is none. */
function text(value: Json | undefined): string {
  return typeof value === 'string' ? value.replaceAll('<', '\\<') : ''
}
