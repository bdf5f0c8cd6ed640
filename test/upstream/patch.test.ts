import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict'
import { runInThisContext } from 'node:vm'
import fc from 'fast-check'
import t from 'tap'
import { patch, StreamPatch } from '../../src/upstream/patch.js'
import { cpuMs } from '../support/cpu.js'

const NAMES = ['id', 'model'] as const

/** JSON text as it may be written: whitespace, escapes in names and strings, numbers that JavaScript can not hold, names twice. */
const space = fc.stringMatching(/^[ \t\r\n]{0,3}$/)
const string = fc.oneof(
  fc.string({ unit: 'grapheme' }).map(text => JSON.stringify(text)),
  fc.constantFrom('"\\\\"', '"\\""', '"\\\\\\""', '"model"', '"\\u006dodel"', '"{\\"model\\":1}"', '"]},:"', '"\\ud83d\\ude00"'),
)
const name = fc.oneof(
  string,
  fc.constantFrom('"model"', '"id"', '"\\u006dodel"', '"mode\\u006c"', '"i\\u0064"', '"MODEL"', '"models"', '"mode"', '"__proto__"', '""'),
)
const number = fc.constantFrom('0', '-0', '1.0', '1e400', '-1E+2', '12345678901234567890', '0.10000000000000000001')

const { value, object } = fc.letrec<{ value: string; object: string; array: string }>(tie => ({
  value: fc.oneof({ maxDepth: 4 }, number, string, fc.constantFrom('true', 'false', 'null'), tie('object'), tie('array')),
  object: fc
    .tuple(space, fc.array(fc.tuple(space, name, space, space, tie('value'), space), { maxLength: 5 }))
    .map(
      ([empty, members]) =>
        `{${members.length === 0 ? empty : members.map(([a, n, b, c, v, d]) => `${a}${n}${b}:${c}${v}${d}`).join(',')}}`,
    ),
  array: fc
    .tuple(space, fc.array(fc.tuple(space, tie('value'), space), { maxLength: 4 }))
    .map(([empty, items]) => `[${items.length === 0 ? empty : items.map(parts => parts.join('')).join(',')}]`),
}))
const text = fc.tuple(space, object, space).map(parts => parts.join(''))
const replacements = fc.record({ id: fc.string({ unit: 'grapheme' }), model: fc.string({ unit: 'grapheme' }) }, { requiredKeys: [] })

/** What JSON says, as JavaScript has it: JSON.parse of Node.js 24.21 now and then loses a member whose name is written with escapes. */
const read = (text: string): Record<string, unknown> => runInThisContext(`(${text})`)

t.test('exactly the named top-level members change', async () => {
  fc.assert(
    fc.property(text, replacements, (given, wanted) => {
      // To JavaScript that is no name like others.
      fc.pre(!given.includes('__proto__'))
      const before = read(given)
      const after = read(patch(given, wanted))
      for (const [name, value] of Object.entries(wanted)) strictEqual(after[name], value)
      const others = (parsed: object) => Object.entries(parsed).filter(([name]) => !Object.hasOwn(wanted, name))
      deepStrictEqual(others(after), others(before))
    }),
    { numRuns: 2000 },
  )
})

t.test('every character outside of the replaced values stays', async () => {
  fc.assert(
    fc.property(text, fc.constantFrom(...NAMES), (given, name) => {
      const here = Object.hasOwn(JSON.parse(given), name)
      const [before, after] = patch(given, { [name]: '\u0001' }).split('"\\u0001"') as [string, string]
      if (here) {
        // What was taken out is one value, between what stayed on either side.
        ok(given.startsWith(before) && given.endsWith(after))
        const taken = given.slice(before.length, given.length - after.length)
        deepStrictEqual([JSON.parse(taken)], [JSON.parse(given)[name]])
        strictEqual(taken, taken.trim())
      } else {
        const front = before.slice(0, before.length - `"${name}":`.length)
        strictEqual(front + after.replace(/^,/, ''), given)
      }
    }),
    { numRuns: 2000 },
  )
})

t.test('the same value in its place leaves the text as it was', async () => {
  fc.assert(
    fc.property(text, given => {
      const { model } = JSON.parse(given)
      const compact = typeof model === 'string' && !given.includes('\\') && given.includes(JSON.stringify(model))
      if (compact && given.split('model').length === 2) strictEqual(patch(given, { model }), given)
    }),
  )
})

t.test('rows', async t => {
  const rows: [string, Record<string, string>, string][] = [
    ['{}', { model: 'm' }, '{"model":"m"}'],
    [`{${' '.repeat(100)}}`, { model: 'm' }, `{"model":"m"${' '.repeat(100)}}`],
    ['{"a":1.0}', { model: 'm', id: 'i' }, '{"model":"m","id":"i","a":1.0}'],
    ['{"model":null,"n":1e400}', { model: 'm' }, '{"model":"m","n":1e400}'],
    ['{"model" : {"model":"x"} , "b":[1]}', { model: 'm' }, '{"model" : "m" , "b":[1]}'],
    ['{"a":{"model":"x"},"model":"y"}', { model: 'm' }, '{"a":{"model":"x"},"model":"m"}'],
    ['{"model":"a","model":"b"}', { model: 'm' }, '{"model":"a","model":"m"}'],
    ['{"\\u006dodel":"a"}', { model: 'm' }, '{"\\u006dodel":"m"}'],
    ['{"a":"model","b":"\\"model\\":1"}', { model: 'm' }, '{"model":"m","a":"model","b":"\\"model\\":1"}'],
    ['{"model":12345678901234567890}', { model: 'گفتار "x"' }, '{"model":"گفتار \\"x\\""}'],
  ]
  for (const [given, wanted, expected] of rows) t.equal(patch(given, wanted), expected)
})

t.test('time grows with the text and no faster', async t => {
  const members = Array.from({ length: 100_000 }, (_, i) => `"member-${i}":"\\\\\\"x"`).join(',')
  const ms = cpuMs(() => patch(`{${members},"x":"${'\\\\'.repeat(1_000_000)}"}`, { model: 'm', id: 'i' }))
  t.ok(ms < 5_000, `${ms} ms`)
})

t.test('values that stand alone are valid JSON here', async () => {
  fc.assert(fc.property(value, given => void JSON.parse(given)))
})

t.test('the events of a stream come out as each by itself would', async () => {
  const member = fc.oneof(
    fc.constantFrom(
      '"id":"a"',
      '"model":"m"',
      '"id":"b"',
      '"object":"chunk"',
      '"choices":[{"id":"c","model":"d"}]',
      '"content":"\\"id\\""',
    ),
    fc.tuple(fc.constantFrom('"created"', '"x"'), value).map(parts => parts.join(':')),
  )
  const event = fc.oneof(
    fc.array(member, { maxLength: 4 }).map(rest => `{${['"id":"a"', '"model":"m"', ...rest].join(',')}}`),
    fc.array(member, { maxLength: 5 }).map(members => `{${members.join(',')}}`),
  )
  const wanted = fc.tuple(fc.constantFrom(null, 'a', 'chatcmpl-1'), fc.constantFrom(null, 'up/m'))
  fc.assert(
    fc.property(fc.array(event, { minLength: 1, maxLength: 6 }), wanted, (events, [id, model]) => {
      const stream = new StreamPatch()
      for (const text of events) {
        const had = JSON.parse(text)
        // As a stream does it: what is right already stays.
        const newId = had.id === id ? null : id
        const newModel = had.model === model ? null : model
        const replacements = { ...(newModel === null ? {} : { model: newModel }), ...(newId === null ? {} : { id: newId }) }
        strictEqual(stream.apply(text, newId, newModel, had), patch(text, replacements))
      }
    }),
    { numRuns: 5000 },
  )
})
