import { readFileSync } from 'node:fs'
import t from 'tap'
import { Filled, readDocument } from '../../src/config/document.js'
import { readSchema } from '../../src/config/load.js'
import { showPath } from '../../src/config/problems.js'
import { conform, KEYWORDS, unknownKeywords } from '../../src/config/schema.js'
import { ENDPOINTS } from '../../src/endpoints/endpoints.js'
import { isObject, type JsonObject } from '../../src/json.js'

const said = (schema: JsonObject, value: unknown) =>
  conform(schema, value).problems.map(({ path, message }) => `${showPath(path)}: ${message}`)

t.test('each keyword finds what it forbids, and nothing else', async t => {
  const rows: [string, JsonObject, unknown, string[]][] = [
    ['type', { type: 'string' }, 5, [': must be text, not a number (put it in quotes)']],
    ['type: integer', { type: 'integer' }, 2.5, [': must be a whole number, not a fraction']],
    ['type: integer takes 2.0', { type: 'integer' }, 2.0, []],
    ['type: number takes 2', { type: 'number' }, 2, []],
    ['type: number refuses infinity', { type: 'number' }, Number.POSITIVE_INFINITY, [': must be a number, not infinity']],
    ['type of several', { type: ['integer', 'null'] }, 'x', [': must be a whole number, not text']],
    ['type: null is absent', { type: 'array' }, null, [': must be a list, but nothing stands here']],
    ['1_000', { type: 'integer' }, '1_000', [': must be a whole number, written without _']],
    ['enum', { enum: ['power', 'process'] }, 'pover', [': must be power or process (did you mean "power"?)']],
    ['const', { const: 'free' }, 'gratis', [': must be free']],
    ['minLength', { type: 'string', minLength: 1 }, '', [': must not be empty']],
    ['minLength 3', { type: 'string', minLength: 3 }, 'ab', [': must have at least 3 characters']],
    ['maxLength', { type: 'string', maxLength: 2 }, 'abc', [': must have at most 2 characters']],
    ['pattern', { type: 'string', pattern: '^a' }, 'b', [': must be text that matches ^a']],
    ['pattern with title', { type: 'string', title: 'an a', pattern: '^a' }, 'b', [': must be an a']],
    ['minimum', { type: 'integer', minimum: 0 }, -1, [': must be at least 0']],
    ['exclusiveMinimum', { type: 'number', exclusiveMinimum: 0 }, 0, [': must be more than 0']],
    ['maximum', { type: 'number', maximum: 3 }, 4, [': must be at most 3']],
    ['items', { type: 'array', items: { type: 'integer' } }, [1, 'x'], ['[1]: must be a whole number, not text']],
    ['minItems', { type: 'array', minItems: 1 }, [], [': must have at least one entry']],
    ['maxItems', { type: 'array', maxItems: 1 }, [1, 2], [': must have at most one entry']],
    ['uniqueItems', { type: 'array', uniqueItems: true, items: {} }, ['a', 'b', 'a'], ['[2]: stands in the list twice']],
    ['required', { type: 'object', required: ['a', 'b'] }, { b: 1 }, [': "a" is missing']],
    [
      'additionalProperties: false',
      { type: 'object', additionalProperties: false, properties: { input: {} } },
      { inptu: 1, zzz: 1 },
      ['inptu: unknown key (did you mean "input"?)', 'zzz: unknown key (known here: input)'],
    ],
    [
      'additionalProperties',
      { type: 'object', additionalProperties: { type: 'integer' } },
      { a: 'x' },
      ['a: must be a whole number, not text'],
    ],
    ['patternProperties', { type: 'object', additionalProperties: false, patternProperties: { '^x-': {} } }, { 'x-a': 1 }, []],
    [
      'propertyNames',
      { type: 'object', propertyNames: { title: 'lower case', pattern: '^[a-z]+$' } },
      { A: 1 },
      ['A: the name must be lower case'],
    ],
    ['minProperties', { type: 'object', minProperties: 1 }, {}, [': must have at least one entry']],
    ['maxProperties', { type: 'object', maxProperties: 1 }, { a: 1, b: 2 }, [': must have at most one entry']],
    ['oneOf, none', { type: 'object', oneOf: [{ required: ['a'] }, { required: ['b'] }] }, {}, [': must have "a" or "b"']],
    [
      'oneOf, both',
      { type: 'object', oneOf: [{ required: ['a'] }, { required: ['b'] }] },
      { a: 1, b: 1 },
      [': must have "a" or "b", not both'],
    ],
    ['anyOf takes the branch of the type', { anyOf: [{ type: 'integer', minimum: 1 }, { type: 'null' }] }, 0, [': must be at least 1']],
    ['anyOf without a branch', { anyOf: [{ type: 'integer' }, { type: 'null' }] }, 'x', [': must be a whole number']],
    [
      '$ref',
      { $defs: { a: { type: 'integer' } }, type: 'object', properties: { x: { $ref: '#/$defs/a' } } },
      { x: 'y' },
      ['x: must be a whole number, not text'],
    ],
    [
      'names of Object.prototype are names',
      { type: 'object', required: ['toString'], additionalProperties: false },
      { constructor: 1 },
      ['constructor: unknown key (known here: )', ': "toString" is missing'],
    ],
  ]
  for (const [name, schema, value, expected] of rows) t.strictSame(said(schema, value), expected, name)
})

t.test('what is absent gets its default, at every depth; what is wrong too', async t => {
  const schema: JsonObject = {
    type: 'object',
    properties: {
      log: { type: 'object', default: {}, properties: { level: { enum: ['info', 'warn'], default: 'info' }, file: { type: 'string' } } },
      port: { type: 'integer', default: 80 },
    },
  }
  t.strictSame(conform(schema, {}).value, { log: { level: 'info' }, port: 80 })
  t.strictSame(conform(schema, { log: null, port: 81 }).value, { log: { level: 'info' }, port: 81 }, 'an empty section is an empty map')
  t.strictSame(conform(schema, { log: { level: 'loud', file: 3 }, port: 'x' }).value, { log: { level: 'info' }, port: 80 })
})

t.test('text from a variable has the type that is expected', async t => {
  const filled = (schema: JsonObject, text: string) => conform(schema, new Filled(text))
  t.equal(filled({ type: 'integer' }, '12').value, 12)
  t.equal(filled({ type: 'boolean' }, 'false').value, false)
  t.equal(filled({ type: 'string' }, '0123').value, '0123')
  t.equal(filled({ type: ['integer', 'null'] }, 'null').value, null)
  t.equal(filled({ anyOf: [{ type: 'string' }, { type: 'integer' }] }, '4096').value, 4096)
  t.match(
    filled({ type: ['integer', 'null'] }, '').problems,
    [{ message: 'must be a whole number, but the text is empty' }],
    'never «no ceiling»',
  )
  t.strictSame(conform({}, { a: [new Filled('7'), new Filled('7', true), new Filled('~')] }).value, { a: [7, '7', null] })
  t.strictSame(filled({ type: 'string' }, 'x').problems, [])
  t.strictSame(conform({ type: 'string' }, new Filled(null)), { value: undefined, problems: [] }, 'what could not be read is reported once')
})

t.test('a schema that says more than is checked is found out', async t => {
  t.strictSame(unknownKeywords({ type: 'string', format: 'email', properties: { a: { multipleOf: 2 } }, anyOf: [{ not: {} }] }), [
    '#/format',
    '#/properties/a/multipleOf',
    '#/anyOf/0/not',
  ])
  t.throws(() => conform({ $ref: '#/$defs/gone' }, 1), /refers to #\/\$defs\/gone/)
})

t.test('the schema of gateway.yaml', async t => {
  const schema = readSchema()
  t.strictSame(unknownKeywords(schema), [], 'uses only keywords that are checked')
  t.ok(KEYWORDS.has('anyOf'))
  const subschemas = (below: unknown, path: string, found: [string, JsonObject][] = []): [string, JsonObject][] => {
    if (!isObject(below)) return found
    found.push([path, below])
    for (const group of [below.properties, below.$defs, below.patternProperties]) {
      for (const [name, one] of Object.entries(isObject(group) ? group : {})) subschemas(one, `${path}/${name}`, found)
    }
    for (const [name, one] of Object.entries({ items: below.items, values: below.additionalProperties, names: below.propertyNames })) {
      subschemas(one, `${path}/${name}`, found)
    }
    for (const one of Array.isArray(below.anyOf) ? below.anyOf : []) subschemas(one, `${path}/any`, found)
    return found
  }
  const all = subschemas(schema, '#')
  t.ok(all.length > 100)
  for (const [path, one] of all) {
    const { properties } = one
    for (const [name, property] of Object.entries(isObject(properties) ? properties : {})) {
      const described = isObject(property) && (typeof property.description === 'string' || property.$ref === '#/$defs/price')
      if (!described) t.fail(`${path}/${name} has no description`)
    }
    const withDefs = { ...one, $defs: schema.$defs }
    const fitting = [...(Array.isArray(one.examples) ? one.examples : []), ...('default' in one ? [one.default] : [])]
    for (const value of fitting) {
      // An example that holds a variable shows how to write it, whatever it may be filled with.
      if (!JSON.stringify(value).includes('${')) t.strictSame(said(withDefs, value), [], `${path}: ${JSON.stringify(value)} is valid`)
    }
    for (const pattern of [one.pattern, ...Object.keys(isObject(one.patternProperties) ? one.patternProperties : {})]) {
      if (typeof pattern === 'string') t.ok(new RegExp(pattern, 'u'), path)
    }
  }
  t.equal(
    JSON.parse(readFileSync(new URL('../../../config/gateway.schema.json', import.meta.url), 'utf8')).$schema,
    'https://json-schema.org/draft/2020-12/schema',
  )
})

interface Schema {
  readonly $defs: {
    readonly model: { readonly properties: { readonly parameters: { readonly items: { readonly enum: readonly string[] } } } }
  }
}

t.test('what a model may accept is what there is to ask for', async t => {
  const { parameters } = (readSchema() as unknown as Schema).$defs.model.properties
  const named = new Set(parameters.items.enum)
  for (const { surface, parameters } of ENDPOINTS) for (const name of parameters) t.ok(named.has(name), `${surface}: ${name}`)
  const known = new Set(ENDPOINTS.flatMap(({ fields, parameters }) => [...fields, ...parameters]))
  t.strictSame(
    [...named].filter(name => !known.has(name)),
    [],
  )
  t.strictSame(said(parameters as unknown as JsonObject, ['temprature', 'xyzzy']), [
    '[0]: must not be "temprature" (did you mean "temperature"?)',
    `[1]: must be ${[...named].slice(0, -1).join(', ')} or web_search_options`,
  ])
})

t.test('a document knows where everything stands', async t => {
  const text = [
    'a: 1',
    'b:',
    '  c: [x, {d: 2.50}]',
    '  e:',
    "  'f.g': hello",
    '123: n',
    'h: &h',
    '  i: 1',
    'k:',
    '  <<: *h',
    `  l: \${V}`,
    'm: *h',
  ].join('\n')
  const document = readDocument(text, () => ({ text: 'filled' }))
  t.strictSame(document.errors, [])
  t.strictSame(document.problems, [])
  t.strictSame(document.value, {
    a: 1,
    b: { c: ['x', { d: 2.5 }], e: null, 'f.g': 'hello' },
    123: 'n',
    h: { i: 1 },
    k: { l: new Filled('filled'), i: 1 },
    m: { i: 1 },
  })
  const rows: [(string | number)[], number, number][] = [
    [['a'], 1, 4],
    [['b'], 2, 1],
    [['b', 'c'], 3, 6],
    [['b', 'c', 0], 3, 7],
    [['b', 'c', 1, 'd'], 3, 14],
    [['b', 'e'], 4, 3],
    [['b', 'f.g'], 5, 10],
    [['b', 'gone', 'further'], 2, 1],
    [['k', 'i'], 8, 6],
    [['m', 'i'], 8, 6],
  ]
  for (const [path, line, col] of rows) t.strictSame(document.locate(path), { line, col }, showPath(path))
  t.strictSame(document.locate(['a'], 'name'), { line: 1, col: 1 })
  t.equal(document.text(['b', 'c', 1, 'd']), '2.50')
  t.equal(document.text(['k', 'l']), 'filled')
  t.equal(document.text(['b']), undefined)
  t.equal(document.template(['k', 'l']), `\${V}`)
  t.equal(document.template(['a']), undefined)
})

t.test('each path has its own text', async t => {
  t.equal(showPath(['models', 'openai/gpt-4o', 'fallback', 1]), 'models.openai/gpt-4o.fallback[1]')
  t.equal(showPath(['models', 'openai/gpt-4.1', 'price']), 'models["openai/gpt-4.1"].price')
  t.equal(showPath([]), '')
})
