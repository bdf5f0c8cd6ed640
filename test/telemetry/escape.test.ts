import fc from 'fast-check'
import t from 'tap'
import { errorText, jsonText, policyFields, terminalText } from '../../src/telemetry/escape.js'

/** Line breaks of any kind, control characters, and what turns the order of text. */
const RISKY = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/u
const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({
    unit: fc.constantFrom('\n', '\r', '\u001b', '\u007f', '\u0085', '\u009b', '\u2028', '\u202e', '"', '\\', 'ی', '\ud800', '😀', 'a'),
  }),
)

t.test('JSON text reads back as it was, and holds nothing that breaks a line or moves a cursor', async t => {
  const holds = fc.property(text, given => {
    const json = jsonText(given)
    return JSON.parse(json) === given && !RISKY.test(json)
  })
  t.doesNotThrow(() => fc.assert(holds, { numRuns: 1000 }))
  t.equal(jsonText('a\n\u001b[31m\u2028\u007f\u009b"\\'), '"a\\n\\u001b[31m\\u2028\\u007f\\u009b\\"\\\\"')
  t.equal(jsonText('می\u200cخواهم'), '"می\u200cخواهم"', 'the joiners of Persian are text')
})

t.test('terminal text holds nothing of the kind either', async t => {
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(text, given => !RISKY.test(terminalText(given))),
      { numRuns: 1000 },
    ),
  )
  t.equal(terminalText('a\r\n\u001b[2Jb'), 'a\\u000d\\u000a\\u001b[2Jb')
})

t.test('long text is cut, and says how long it was', async t => {
  t.equal(jsonText('x'.repeat(1000), 10), '"xxxxxxxxxx… (1000 characters)"')
  t.equal(terminalText('x'.repeat(10), 10), 'xxxxxxxxxx')
  t.doesNotThrow(() => JSON.parse(jsonText('😀'.repeat(9), 3)), 'also through a pair of surrogates')
})

t.test('an error is its code or name, its message, and those of its causes', async t => {
  const refused = Object.assign(new Error('connect 127.0.0.1:1'), { code: 'ECONNREFUSED' })
  t.equal(errorText(new TypeError('fetch failed', { cause: refused })), 'TypeError: fetch failed ← ECONNREFUSED: connect 127.0.0.1:1')
  t.equal(errorText('words'), 'words')
  t.equal(errorText({ secret: 'x' }), 'a object was thrown')
  const self = new Error('round')
  self.cause = self
  t.ok(errorText(self).length < 200, 'a cause that is its own does not loop')
})

t.test('of what a policy logs, only scalars show', async t => {
  const fields = {
    n: 1,
    big: 5n,
    yes: true,
    none: null,
    nan: Number.NaN,
    body: { messages: ['secret'] },
    list: ['secret'],
    gone: undefined,
    long: 'y'.repeat(999),
  }
  t.strictSame(policyFields(fields), [
    ['n', 1],
    ['big', '5'],
    ['yes', true],
    ['none', null],
    ['nan', 'NaN'],
    ['body', '[object]'],
    ['list', '[object]'],
    ['gone', '[undefined]'],
    ['long', 'y'.repeat(256)],
  ])
  const trap = {
    get x(): string {
      throw new Error('trap')
    },
  }
  t.strictSame(policyFields(trap), [['unreadable', true]])
})
