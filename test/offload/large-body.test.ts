import { deepEqual, equal } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { parseBody } from '../../src/http/body.js'
import { isObject, type JsonObject } from '../../src/json.js'
import { LargeBody } from '../../src/offload/large-body.js'
import { cpuMs } from '../support/cpu.js'

const LONG = 'All work and no play. '.repeat(500)

/** The object, or the error, that is made of these bytes. */
function made(make: () => JsonObject): unknown {
  try {
    return make()
  } catch (error) {
    return { code: (error as { code?: string }).code, message: (error as Error).message }
  }
}

function rewritten(large: LargeBody, value: JsonObject = large.body): unknown {
  return JSON.parse(Buffer.from(large.written(value)).toString())
}

/** Bodies are the same whichever way they are read, and what is written of them is what they are. */
function agree(text: string | Buffer, offset = 0): void {
  // The bytes may begin anywhere in their memory.
  const bytes = Buffer.concat([Buffer.alloc(offset), Buffer.from(text as string)]).subarray(offset)
  const expected = made(() => parseBody(bytes))
  const read = made(() => new LargeBody(bytes).body)
  deepEqual(read, expected)
  if (!isObject(expected) || expected.message !== undefined) return
  deepEqual(Object.getPrototypeOf(read), Object.prototype)
  equal(JSON.stringify(read), JSON.stringify(expected), 'the order of members, too')
  deepEqual(rewritten(new LargeBody(bytes)), expected)
}

t.test('a body is what parseBody makes of it, and is written as what it is', t => {
  const rows: Readonly<Record<string, string>> = {
    'no long string': '{"a":1}',
    'a long string': `{"a":"${LONG}"}`,
    'behind a byte order mark': `\uFEFF{"a":"${LONG}"}`,
    'with escapes': `{"a":"${'line\\n\\"quoted\\"\\u00e9\\/'.repeat(800)}"}`,
    'a backslash at its end': `{"a":"${LONG}\\\\"}`,
    'of another script': `{"a":"${'گزارش فصلی 🙂 '.repeat(900)}"}`,
    'half of a pair': `{"a":"${LONG}\\ud800"}`,
    'as a name': `{"${LONG}" : "${LONG}"}`,
    'as a name alone': `{"${LONG}":1}`,
    'in arrays of arrays': `[1]`,
    'in arrays': `{"a":[["${LONG}"],"${LONG}",[]],"b":null}`,
    'twice under one name': `{"a":"${LONG}1","b":"${LONG}2","a":"${LONG}3"}`,
    'under the name of the prototype': `{"__proto__":{"a":"${LONG}"},"b":{"__proto__":"${LONG}","c":[{"__proto__":"${LONG}"}]}}`,
    'many of one length': `{"a":[${Array.from({ length: 50 }, (_, i) => `"${LONG}${i + 10}"`).join()}]}`,
    'numbers as names': `{"7":"${LONG}","1":"${LONG}x"}`,
    'a control character in it': `{"a":"${LONG}\n"}`,
    'the last control character in it': `{"a":"${LONG}\u001f${LONG}"}`,
    'a null byte in it': `{"a":"${LONG}\u0000"}`,
    'the first character that is none': `{"a":"${LONG}\u0020\u007f\u0080"}`,
    'an escape that is none': `{"a":"${LONG}\\x"}`,
    'half of an escape': `{"a":"${LONG}\\u12"}`,
    'no end': `{"a":"${LONG}`,
    'no end of the object': `{"a":"${LONG}"`,
    'no comma between': `{"a":"${LONG}" "${LONG}"}`,
    'no value': `{"${LONG}"}`,
    'two of them': `{"a":"${LONG}"}{"a":"${LONG}"}`,
    alone: `"${LONG}"`,
    'a backslash outside': `{\\"a":"${LONG}"}`,
    'a number beyond all': `{"a":"${LONG}","b":[{"c":1e400}],"d":2}`,
    'a number beyond all, and an escape that is none': `{"a":"${LONG}\\x","b":1e400}`,
    'a large number': `{"a":"${LONG}","b":[1.5e300]}`,
    'too deep': `{"a":"${LONG}","b":${'['.repeat(200)}${']'.repeat(200)}}`,
  }
  for (const [what, text] of Object.entries(rows)) {
    for (const offset of [0, 1, 2, 3]) agree(text, offset)
    t.pass(what)
  }
  agree(Buffer.concat([Buffer.from(`{"a":"${LONG}`), Buffer.of(0xff), Buffer.from('"}')]))
  t.end()
})

t.test('property: so it is with any body, whole, cut off or changed in one place', t => {
  const piece = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.constantFrom('\\', '"', '\n', '\ud800', '\u0000', 'é', '{"a":'))
  const long = fc.tuple(piece, fc.integer({ min: 0, max: 3 })).map(([unit, more]) => `${unit}.`.repeat(9000 / (unit.length + 1)) + more)
  const leaf = fc.oneof({ weight: 3, arbitrary: long }, fc.string(), fc.integer(), fc.constant(null))
  const name = fc.oneof({ weight: 9, arbitrary: fc.string({ maxLength: 3 }) }, fc.constant('__proto__'), long)
  const value = fc.letrec(tie => ({
    node: fc.oneof({ depthSize: 'small' }, leaf, fc.array(tie('node'), { maxLength: 3 }), fc.dictionary(name, tie('node'), { maxKeys: 3 })),
  })).node
  const damage = fc.option(fc.record({ at: fc.nat(), with: fc.constantFrom('', '"', '\\', '\n', ':', '}', 'x') }), { nil: null })
  fc.assert(
    fc.property(
      fc.array(fc.tuple(name, value), { maxLength: 4 }),
      damage,
      fc.boolean(),
      fc.nat({ max: 3 }),
      (members, hurt, spaced, offset) => {
        const space = spaced ? ' \n' : ''
        const text = `{${members.map(([key, inner]) => `${space}${JSON.stringify(key)}${space}:${space}${JSON.stringify(inner)}`).join()}}`
        const at = hurt === null ? 0 : hurt.at % text.length
        agree(hurt === null ? text : text.slice(0, at) + hurt.with + text.slice(at + 1), offset)
      },
    ),
    { numRuns: 150 },
  )
  t.end()
})

t.test('what is written is the value that is given, whatever became of the body', t => {
  const large = new LargeBody(Buffer.from(`{"a":"${LONG}1","b":"${LONG}2","c":["${LONG}\\u00e9"]}`))
  const { a, b, c } = large.body
  for (const value of [
    { b, a },
    { a: `${a}`, b: `${b}!` },
    { c, d: { c } },
    { a: [a, a, b, a] },
    { x: 1 },
    { [`${a}`]: b },
  ] as JsonObject[]) {
    t.strictSame(rewritten(large, value), value)
  }
  t.end()
})

t.test('a string that is not changed is written as the bytes that it came as', t => {
  const large = new LargeBody(Buffer.from(`{ "a" : "${LONG}\\u00e9\\/", "b" : "\\u00e9\\/" }`))
  t.equal(Buffer.from(large.written(large.body)).toString(), `{"a":"${LONG}\\u00e9\\/","b":"é/"}`)
  t.end()
})

t.test('many strings of one length, sent on in another order, take no longer than others', t => {
  const strings = Array.from({ length: 1000 }, (_, i) => `${LONG}${String(i).padStart(4, '0')}`)
  const large = new LargeBody(Buffer.from(JSON.stringify({ strings })))
  const { strings: read } = large.body as { strings: string[] }
  const straight = cpuMs(() => large.written({ strings: read }))
  const backwards = cpuMs(() => large.written({ strings: [...read].reverse() }))
  t.ok(backwards < 20 * straight + 200, `${backwards} ms, ${straight} ms`)
  t.strictSame(rewritten(large, { strings: [...read].reverse() }), { strings: [...read].reverse() })
  t.end()
})
