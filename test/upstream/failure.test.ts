import fc from 'fast-check'
import t from 'tap'
import { readFailure, scrub } from '../../src/upstream/failure.js'
import { cpuMs } from '../support/cpu.js'

t.test('the message is found in every shape that providers use', async t => {
  const rows: [string, number, unknown, object][] = [
    [
      'OpenAI',
      400,
      { error: { message: 'no', type: 'x', param: 'n', code: 'bad_n' } },
      { message: 'no', code: 'bad_n', type: 'x', param: 'n' },
    ],
    ['OpenAI, nulls', 500, { error: { message: 'no', type: null, param: null, code: null } }, { message: 'no' }],
    ['vLLM, OpenRouter: a number is no code', 400, { error: { message: 'no', code: 400 } }, { message: 'no' }],
    ['a number in a string is none either', 400, { error: { message: 'no', code: '400' } }, { message: 'no' }],
    ['OpenRouter under 200: the number is the status', 200, { error: { message: 'no', code: 429 } }, { message: 'no', status: 429 }],
    ['LiteLLM under 200: as text', 200, { error: { message: 'no', code: '429' } }, { message: 'no', status: 429 }],
    ['no status of a failure', 200, { error: { message: 'no', code: '200' } }, { message: 'no' }],
    ['more than a status', 200, { error: { message: 'no', code: '4290' } }, { message: 'no' }],
    ['no whole number', 200, { error: { message: 'no', code: 429.5 } }, { message: 'no' }],
    [
      'too long, under 200',
      200,
      { error: { message: 'no', code: 'context_length_exceeded' } },
      { message: 'no', status: 400, code: 'context_length_exceeded' },
    ],
    [
      'too long, under a status of its own',
      413,
      { error: { message: 'no', code: 'context_length_exceeded' } },
      { message: 'no', code: 'context_length_exceeded' },
    ],
    ['xAI: a sentence is no code', 400, { code: 'Some invalid thing', error: 'no' }, { message: 'no' }],
    ['xAI, a word', 400, { code: 'invalid-argument', error: 'no' }, { message: 'no', code: 'invalid-argument' }],
    ['TEI', 422, { error: 'too long', error_type: 'Validation' }, { message: 'too long', code: 'Validation' }],
    ['Cohere', 400, { message: 'no such model' }, { message: 'no such model' }],
    ['Mistral', 400, { object: 'error', message: 'no', type: 't', param: null, code: null }, { message: 'no', type: 't' }],
    ['a sentence is no type', 400, { error: { message: 'no', type: 'Some kind' } }, { message: 'no' }],
    [
      'Mistral, FastAPI within',
      422,
      { object: 'error', message: { detail: [{ type: 'extra_forbidden', loc: ['body', 'seed'], msg: 'Extra inputs are not permitted' }] } },
      { message: 'seed: Extra inputs are not permitted' },
    ],
    ['an object as message', 400, { message: { why: 'no' } }, { message: '{"why":"no"}' }],
    ['Voyage', 400, { detail: 'no' }, { message: 'no' }],
    [
      'FastAPI',
      422,
      {
        detail: [
          { loc: ['body', 'messages', 0, 'role'], msg: 'field required' },
          { loc: ['query', 'x'], msg: 'bad' },
        ],
      },
      { message: 'messages[0].role: field required; query.x: bad', param: 'messages[0].role' },
    ],
    ['Gemini in a stream', 200, [{ error: { code: 503, message: 'busy', status: 'UNAVAILABLE' } }], { message: 'busy', status: 503 }],
    ['text', 500, 'upstream connect error', { message: 'upstream connect error' }],
    ['a page', 502, '<html><body>Bad gateway</body></html>', {}],
    ['nothing', 500, {}, {}],
    ['nothing at all', 500, undefined, {}],
    ['null', 500, null, {}],
    ['an empty message', 500, { error: { message: '' } }, {}],
    ['an empty array', 500, [], {}],
    ['an empty list', 500, { detail: [] }, {}],
    ['nested, as far as anybody reads', 500, { detail: [[[['no']]]] }, { message: 'no' }],
    ['numbers', 500, { error: 7, message: 7, detail: 7 }, {}],
  ]
  for (const [name, status, body, expected] of rows) t.strictSame(readFailure(status, body), expected, name)
})

t.test('keys, addresses and stack traces are removed, words are not', async t => {
  const rows: [string, string][] = [
    ['Incorrect API key provided: sk-abcd****wxyz.', 'Incorrect API key provided: [hidden]'],
    ['got Bearer abc.def-123', 'got Bearer [hidden]'],
    ['key AIzaSyD-1234567890abcdefg', 'key [hidden]'],
    ['id AKIAIOSFODNN7EXAMPLE here', 'id [hidden] here'],
    ['token gsk_1234567890abcd', 'token [hidden]'],
    ['hash 0123456789abcdef0123456789abcdef', 'hash [hidden]'],
    ['see https://platform.openai.com/account/api-keys.', 'see [address]'],
    ['connect ECONNREFUSED 10.0.3.7:8000', 'connect ECONNREFUSED [address]'],
    ['connect ECONNREFUSED [fd00::12]:8000', 'connect ECONNREFUSED [address]'],
    ['no route to inference-7f:8000', 'no route to [address]'],
    ['localhost:11434 is down', '[address] is down'],
    ['api.internal.acme.com:443 said no', '[address] said no'],
    ['vllm.models.svc is not ready', '[address] is not ready'],
    ['boom\n    at run (/srv/app/main.js:1:2)', 'boom'],
    ['Traceback (most recent call last):\n  File "x.py"', ''],
    ['boom\n  File "/usr/lib/python3/x.py", line 3', 'boom'],
  ]
  for (const [given, expected] of rows) t.equal(scrub(given), expected)
  const kept = [
    "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (8000 in messages, 1000 in completion).",
    'messages.0.content: field required',
    'Qwen/Qwen3-Coder-480B-A35B-Instruct-FP8 and gpt-3.5-turbo-instruct-0914 are not found',
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    'tokens:8192 of max_tokens:4096, ratio 3:2, at 12:30',
    'متن خیلی بلند است',
  ]
  for (const text of kept) t.equal(scrub(text), text)
})

t.test('the secrets of the config never pass', async t => {
  const secret = fc.string({ minLength: 6, maxLength: 40 }).filter(text => text.trim() === text && !'[hidden]'.includes(text))
  fc.assert(
    fc.property(secret, fc.string(), fc.string(), (hidden, before, after) => {
      t.notOk(scrub(`${before}${hidden}${after}`, [hidden]).includes(hidden))
    }),
    { numRuns: 100 },
  )
  t.equal(scrub('bad key my-own-secret!', ['my-own', 'my-own-secret!']), 'bad key [hidden]')
  const { message = '' } = readFailure(401, { error: { message: `${'a '.repeat(1_020)} my own secret` } })
  t.match(scrub(message, ['my own secret']), /a \[hidden\]$|…$/, 'nor a part of one, where the message is cut')
  t.notMatch(scrub(message, ['my own secret']), /my/)
})

t.test('a message is at most 2 kB, and no character is torn', async t => {
  for (const text of ['a '.repeat(5000), 'é '.repeat(5000), '漢 '.repeat(5000), '👋 '.repeat(5000)]) {
    const message = scrub(readFailure(500, { error: { message: text } }).message ?? '')
    t.ok(Buffer.byteLength(message) <= 2048)
    t.ok(Buffer.byteLength(message) > 2040)
    t.match(message, /…$/)
    t.notMatch(message, /\uFFFD/)
  }
})

t.test('what is nested deeper than anybody reads is left out', async t => {
  const nested = (text: string, levels: number): unknown =>
    JSON.parse(`${text.repeat(levels)}1${(text === '[' ? ']' : '}').repeat(levels)}`)
  for (const open of ['[', '{"a":', '{"message":', '{"detail":']) {
    for (const body of [nested(open, 50_000), { error: { message: nested(open, 50_000), code: 'x' } }]) {
      const { message = '' } = readFailure(400, body)
      t.match(message, /^$|…/, `${open}: ${message}`)
    }
  }
  t.equal(readFailure(400, { error: { message: nested('[', 50_000), code: 'too_deep' } }).code, 'too_deep')
})

t.test('empty lines take no longer than others, and hide no stack trace', async t => {
  const ms = cpuMs(() => {
    for (let i = 0; i < 100; i++) for (const text of ['\n', '\r\n', ' \n', '\n\t']) scrub(text.repeat(4096 / text.length))
  })
  // Of a square it would be 5,000.
  t.ok(ms < 1_000, `${ms} ms`)
  for (const lines of ['\n\n   at', '\r\n\r\n\tat', '\n \n at']) t.equal(scrub(`boom${lines} run (/srv/main.js:1:2)`), 'boom')
})

t.test('time does not depend on what a provider sends', async t => {
  const ms = cpuMs(() => {
    for (const text of ['a.', 'a', '1', 'a1_', '[:', 'Bearer ', ' \n', 'https:', '-']) scrub(text.repeat(500_000))
  })
  t.ok(ms < 2_000, `${ms} ms`)
})
