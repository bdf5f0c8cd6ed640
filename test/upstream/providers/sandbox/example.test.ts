import fc from 'fast-check'
import t from 'tap'
import type { JsonObject } from '../../../../src/json.js'
import { example, exampleObject } from '../../../../src/upstream/providers/sandbox/example.js'

t.test('a small value that the schema admits', t => {
  const table: [schema: unknown, value: unknown][] = [
    [{ type: 'string' }, ''],
    [{ type: 'string', minLength: 3 }, 'xxx'],
    [{ type: 'string', format: 'date' }, '2000-01-01'],
    [{ type: 'integer' }, 0],
    [{ type: 'integer', minimum: 2.5 }, 3],
    [{ type: 'integer', exclusiveMinimum: 3 }, 4],
    [{ type: 'integer', maximum: -3 }, -3],
    [{ type: 'integer', exclusiveMaximum: 0 }, -1],
    [{ type: 'integer', minimum: 7, multipleOf: 5 }, 10],
    [{ type: 'number', exclusiveMinimum: 0, maximum: 1 }, 0.5],
    [{ type: 'number', exclusiveMinimum: 0.5 }, 1],
    [{ type: 'number', minimum: -4, exclusiveMaximum: -3 }, -3.5],
    [{ type: 'boolean' }, false],
    [{ type: 'null' }, null],
    [{ type: ['null', 'string'] }, ''],
    [{ enum: ['a', 'b'] }, 'a'],
    [{ const: null }, null],
    [{ type: 'string', default: 'd' }, 'd'],
    [{ type: 'string', examples: ['e'] }, 'e'],
    [{ type: 'array', items: { type: 'string' } }, []],
    [{ type: 'array', minItems: 3, prefixItems: [{ type: 'integer' }], items: { type: 'string' } }, [0, '', '']],
    [
      { properties: { a: { type: 'string' }, b: {} }, required: ['a', 'absent'] },
      { a: '', absent: null },
    ],
    [{ type: 'object', properties: { optional: { type: 'string' } } }, {}],
    [{ anyOf: [{ type: 'integer' }, { type: 'string' }] }, 0],
    [{ oneOf: [{ required: ['b'] }], properties: { b: { type: 'boolean' } } }, { b: false }],
    [
      {
        allOf: [
          { properties: { a: { type: 'string' } }, required: ['a'] },
          { properties: { b: { type: 'integer' } }, required: ['b'] },
        ],
      },
      { a: '', b: 0 },
    ],
    [{ $ref: '#/$defs/a~1b', $defs: { 'a/b': { type: 'integer', minimum: 1 } } }, 1],
    [{ $ref: 'https://example.com/else' }, null],
    [true, null],
  ]
  for (const [schema, value] of table) t.same(example(schema), value, JSON.stringify(schema))
  t.end()
})

t.test('an object where one is wanted', t => {
  t.same(exampleObject(undefined), {})
  t.same(exampleObject({ type: 'string' }), {})
  t.same(
    Object.keys(exampleObject(JSON.parse('{"required":["__proto__"]}'))),
    ['__proto__'],
    'a name that is special to JavaScript is a name',
  )
  t.end()
})

t.test('a schema that has no end comes to one', t => {
  const tree = { $ref: '#', properties: { left: { $ref: '#' }, right: { $ref: '#' } }, required: ['left', 'right'] }
  for (const schema of [{ ...tree, $ref: undefined }, tree, { $ref: '#' }, { allOf: [{ $ref: '#' }] }] as JsonObject[]) {
    t.ok(JSON.stringify(example(schema)).length < 100_000)
  }
  t.ok(JSON.stringify(example({ type: 'array', minItems: 1e9, items: { type: 'string', minLength: 1e9 } })).length < 10_000_000)
  t.end()
})

t.test('property: numbers are within their bounds where there is room', t => {
  fc.assert(
    fc.property(
      fc.integer({ min: -50, max: 50 }),
      fc.integer({ min: 2, max: 20 }),
      fc.boolean(),
      fc.integer({ min: 1, max: 2 }),
      (low, room, open, step) => {
        const bounds = open ? { exclusiveMinimum: low, exclusiveMaximum: low + room + step } : { minimum: low, maximum: low + room }
        const value = example({ type: 'integer', multipleOf: step, ...bounds }) as number
        const inside = open ? value > low && value < low + room + step : value >= low && value <= low + room
        return inside && value % step === 0
      },
    ),
  )
  t.end()
})
