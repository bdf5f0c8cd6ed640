import { deepEqual } from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import fc from 'fast-check'
import t from 'tap'
import { GatewayError } from '../../src/errors.js'
import { checkBodyHeaders, DEPTH_MAX, parseBody, SIGNS_MAX } from '../../src/http/body.js'
import { cpuMs } from '../support/cpu.js'

/** The code and the words of a refusal; `null` where there is none. */
function refusal(run: () => unknown): [string, string] | null {
  try {
    run()
    return null
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    return [error.code, error.message]
  }
}

const nested = (depth: number, [open, close] = ['[', ']']) => `{"a":${open?.repeat(depth - 1)}${close?.repeat(depth - 1)}}`

t.test('what is a JSON object, and what is none', async t => {
  const rows: [name: string, body: string | Uint8Array, told: string | null][] = [
    ['an object', '{"a":1}', null],
    ['white space', ' \n{}\t', null],
    ['a byte order mark', '\uFEFF{}', null],
    ['nothing', '', 'The body is empty. Send a JSON object.'],
    ['only a byte order mark', '\uFEFF', 'The body is not valid JSON.'],
    ['half', '{"a":', 'The body is not valid JSON.'],
    ['two', '{}{}', 'The body is not valid JSON.'],
    ['an array', '[]', 'The body is not a JSON object.'],
    ['a string', '"secret"', 'The body is not a JSON object.'],
    ['a number', '1', 'The body is not a JSON object.'],
    ['null', 'null', 'The body is not a JSON object.'],
    ['NaN', '{"a":NaN}', 'The body is not valid JSON.'],
    ['a comment', '{/* secret */}', 'The body is not valid JSON.'],
    ['bad UTF-8', Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d), 'The body is not valid UTF-8.'],
    ['a torn character', Buffer.from('{"a":"é').subarray(0, 7), 'The body is not valid UTF-8.'],
    ['UTF-16', Buffer.from('{}', 'utf16le'), 'The body is not valid JSON.'],
    ['as deep as may be', nested(DEPTH_MAX), null],
    ['deeper', nested(DEPTH_MAX + 1), `The body is nested deeper than ${DEPTH_MAX} levels.`],
    [
      'deeper, objects',
      `${'{"a":'.repeat(DEPTH_MAX + 1)}1${'}'.repeat(DEPTH_MAX + 1)}`,
      `The body is nested deeper than ${DEPTH_MAX} levels.`,
    ],
    ['much deeper', '['.repeat(100_000), `The body is nested deeper than ${DEPTH_MAX} levels.`],
    ['brackets in strings are text', `{"a":"${'['.repeat(1000)}","b\\"${'{'.repeat(1000)}":"\\\\","c":[]}`, null],
    ['side by side is not deep', `{"a":[${Array.from({ length: 1000 }, () => '[[]]').join()}]}`, null],
  ]
  for (const [name, body, message] of rows) {
    const bytes = typeof body === 'string' ? Buffer.from(body) : body
    t.strictSame(
      refusal(() => parseBody(bytes)),
      message === null ? null : ['invalid_json', message],
      name,
    )
  }
})

t.test('a number beyond all that there are is refused wherever it is, with the name of its field', async t => {
  const most = '1797693134862315700'.padEnd(309, '0')
  const right = [
    '1e308',
    '-1.7976931348623157E+308',
    '1e-400',
    most,
    `-${most}.5`,
    '0.'.padEnd(400, '1'),
    '12345678901234567890',
    '"1e400"',
  ]
  for (const value of right)
    t.equal(
      refusal(() => parseBody(Buffer.from(`{"a":[{"b":${value}}],"c":true}`))),
      null,
      value,
    )
  const vast = ['1e400', '-1E+400', '1.5e309', '17976931348623159e292', `2${most.slice(1)}`, '9'.repeat(400)]
  for (const value of vast) {
    for (const body of [`{"x":1,"a":${value}}`, `{"x":1,"a":[{"b":[0,${value}]}]}`, `{"a":{"1":${value}},"c":1e5}`]) {
      t.strictSame(
        refusal(() => parseBody(Buffer.from(body))),
        ['invalid_request', 'a must be of finite numbers: one is too large.'],
        body.slice(0, 40),
      )
    }
  }
  const long = refusal(() => parseBody(Buffer.from(`{"${'a'.repeat(9_000)}":1e400}`)))
  t.equal(long?.[1], `${'a'.repeat(100)}… must be of finite numbers: one is too large.`)
})

t.test('a body holds so many values, whatever they are; in strings, signs are text', async t => {
  const many = `The body has more than ${SIGNS_MAX} commas, colons and brackets outside its strings. Send less at once.`
  // The field itself has three: two brackets, and its colon.
  const rows: [name: string, body: string, refused: boolean][] = [
    ['numbers', `{"a":[${'1,'.repeat(SIGNS_MAX - 3)}1]}`, false],
    ['one more', `{"a":[${'1,'.repeat(SIGNS_MAX - 2)}1]}`, true],
    ['empty arrays', `{"a":[${'[],'.repeat(SIGNS_MAX / 2)}1]}`, true],
    ['empty objects', `{"a":[${'{},'.repeat(SIGNS_MAX / 2)}1]}`, true],
    ['members', `{${'"a":1,'.repeat(SIGNS_MAX / 2)}"a":1}`, true],
    ['text', `{"a":"${',:[{'.repeat(SIGNS_MAX)}"}`, false],
    ['the tokens that an embedding may have', JSON.stringify({ model: 'm', input: new Array(300_000).fill(100_000) }), false],
  ]
  for (const [name, body, refused] of rows) {
    t.strictSame(
      refusal(() => parseBody(Buffer.from(body))),
      refused ? ['request_too_large', many] : null,
      name,
    )
  }
})

t.test('the last of several fields of a name counts, and no name is special', async t => {
  t.strictSame(parseBody(Buffer.from('{"a":1,"a":2}')), { a: 2 })
  const odd = parseBody(Buffer.from('{"__proto__":{"admin":true},"constructor":1}'))
  t.equal((odd as { admin?: boolean }).admin, undefined)
  t.strictSame(Object.keys(odd), ['__proto__', 'constructor'])
})

t.test('a part of a larger buffer is read as that part', async t => {
  t.strictSame(parseBody(Buffer.from('xx{"a":1}yy').subarray(2, 9)), { a: 1 })
})

t.test('the depth is found in linear time', async t => {
  // Of a square it would be hours.
  const ms = cpuMs(() => {
    for (const text of [`{"a":"${'\\\\'.repeat(2_000_000)}"}`, `{"a":"${'\\"'.repeat(2_000_000)}"}`, `{"a":${'"x",'.repeat(1_000_000)}`]) {
      refusal(() => parseBody(Buffer.from(text)))
    }
  })
  t.ok(ms < 10_000, `${ms} ms`)
})

t.test('what the header says of the body', async t => {
  const rows: [headers: Record<string, string>, right: boolean][] = [
    [{}, true],
    [{ 'content-type': 'application/json' }, true],
    [{ 'content-type': 'Application/JSON ; charset=utf-8' }, true],
    [{ 'content-type': 'application/vnd.acme+json' }, true],
    [{ 'content-type': 'text/plain' }, false],
    [{ 'content-type': 'application/x-www-form-urlencoded' }, false],
    [{ 'content-type': 'application/jsonp' }, false],
    [{ 'content-type': 'multipart/form-data; boundary=application/json' }, false],
    [{ 'content-encoding': 'identity' }, true],
    [{ 'content-encoding': 'gzip' }, false],
    [{ 'content-encoding': 'br' }, false],
    [{ accept: 'text/html' }, true],
  ]
  for (const [headers, right] of rows) {
    const refused = refusal(() => checkBodyHeaders({ headers } as unknown as IncomingMessage, 1_000))
    t.equal(refused?.[0] ?? null, right ? null : 'unsupported_media_type', JSON.stringify(headers))
  }
})

t.test('property: text of any script and length is read as it was written', async () => {
  const text = fc.tuple(fc.string({ unit: 'binary' }), fc.integer({ min: 0, max: 9_000 }), fc.constantFrom('', '\uFEFF'))
  fc.assert(
    fc.property(text, ([some, length, mark]) => {
      const body = { a: some, b: 'x'.repeat(length), c: some }
      deepEqual(parseBody(Buffer.from(mark + JSON.stringify(body))), body)
    }),
  )
})
