import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { CODES, GatewayError } from '../../src/errors.js'
import type { JsonObject } from '../../src/json.js'
import { errorText } from '../../src/telemetry/escape.js'
import type { Attempt } from '../../src/upstream/attempt.js'
import { httpTransport } from '../../src/upstream/http.js'
import gemini from '../../src/upstream/providers/gemini.js'
import geminiCompat from '../../src/upstream/providers/gemini-compat.js'
import { type Provider, ProviderFailure, type Receiver, type Transport, type Wire } from '../../src/upstream/providers/provider.js'
import xai from '../../src/upstream/providers/xai.js'
import type { WholeAnswer } from '../../src/upstream/whole.js'
import { chunksIn } from '../support/answer-stream.js'
import { type AttemptOptions, attempts, heard, refused } from '../support/attempts.js'
import { settingsOf } from '../support/calls.js'
import { isGone } from '../support/garbage.js'
import { chat, json, type OpenStream, openStream, provider, type Script, sse } from '../support/provider.js'
import { brokenRules } from '../support/stream-rules.js'

const WHOLE = {
  id: 'chatcmpl-1',
  model: 'x',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }],
}
const START =
  '{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"acme/model-1","choices":[{"index":0,"delta":{"role":"assistant"}}]}'
const STOP = START.replace('{"role":"assistant"}', '{},"finish_reason":"stop"')
/** Far away: what is not asked for never happens. */
const FAR = { connect: 60_000, first_byte: 60_000, idle: 60_000, total: 60_000 }

/** What is told of an error. */
const told = ({ status, code, type, param, retryAfter, shouldRetry, retryable, message }: GatewayError) => ({
  status,
  code,
  type,
  param,
  retryAfter,
  shouldRetry,
  retryable,
  message,
})

async function trying(t: Test, script: Script, options: AttemptOptions = {}) {
  const there = await provider(t, script)
  return { there, attempt: attempts(t, there.url, options) }
}

/** What answers at once, without a connection. */
function answering(answer: (receiver: Receiver) => void): Transport {
  return {
    send: (_request, receiver) => {
      queueMicrotask(() => answer(receiver))
      return { sent: true, pause() {}, resume() {}, abort() {} }
    },
    close: async () => {},
  }
}

/** A server of bytes: what it does with each connection, once a request has come. */
async function bytes(t: Test, each: (socket: Socket, count: number) => void): Promise<string> {
  let count = 0
  const server = createServer(socket => {
    socket.on('error', () => {})
    socket.on('data', () => each(socket, count++))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
}

t.test('what a refusal of the provider means to the client', async t => {
  const said = (code: unknown, message = 'no', param: unknown = null) => ({ error: { message, type: 'x', code, param } })
  const rows: [name: string, status: number, body: unknown, headers: Record<string, string>, expected: Partial<ReturnType<typeof told>>][] =
    [
      [
        'too long',
        400,
        said('context_length_exceeded', 'This model takes 8192 tokens.'),
        {},
        {
          status: 400,
          code: 'context_length_exceeded',
          type: 'invalid_request_error',
          retryable: false,
          shouldRetry: undefined,
          message: 'This model takes 8192 tokens.',
        },
      ],
      ['filtered', 400, said('content_filter'), {}, { status: 400, code: 'content_filter' }],
      ['no code', 400, said(null), {}, { status: 400, code: 'upstream_rejected', type: 'invalid_request_error', message: 'no' }],
      ...[...CODES.keys()].map((code): [string, number, unknown, Record<string, string>, object] => [
        `a word of the gateway: ${code}`,
        400,
        said(code),
        {},
        { status: 400, code: 'upstream_rejected', type: 'invalid_request_error', retryable: false, shouldRetry: undefined, message: 'no' },
      ]),
      ['a number is no code', 400, said(400), {}, { status: 400, code: 'upstream_rejected' }],
      ['no JSON', 400, '<html>', {}, { status: 400, code: 'upstream_rejected', message: 'The provider refuses this request.' }],
      ['words that are no JSON', 400, 'No such voice.', {}, { status: 400, code: 'upstream_rejected', message: 'No such voice.' }],
      [
        'FastAPI',
        422,
        { detail: [{ loc: ['body', 'messages', 0, 'role'], msg: 'bad' }] },
        {},
        {
          status: 400,
          code: 'upstream_rejected',
          param: 'messages[0].role',
          message: 'messages[0].role: bad',
        },
      ],
      ['too large', 413, said(null), {}, { status: 413, code: 'upstream_rejected', type: 'invalid_request_error', retryable: false }],
      ['a field that was sent', 400, said(null, 'no', 'messages'), {}, { param: 'messages' }],
      ['a path into one', 400, said(null, 'no', 'messages.[1].content'), {}, { param: 'messages.[1].content' }],
      ['a field that was not', 400, said(null, 'no', 'max_output_tokens'), {}, { param: null }],
      ['a name of every object', 400, said(null, 'no', 'constructor'), {}, { param: null }],
      [
        'the key',
        401,
        said('invalid_api_key', 'Incorrect API key: sk-ant-test'),
        {},
        {
          status: 502,
          code: 'upstream_auth_failed',
          shouldRetry: false,
          retryable: true,
          message: 'The provider refuses the credentials or the account of this gateway. Tell its operator.',
        },
      ],
      ['the bill', 402, said(null), {}, { status: 502, code: 'upstream_auth_failed', shouldRetry: false, retryable: true }],
      ['the country', 403, said(null), {}, { status: 502, code: 'upstream_auth_failed', shouldRetry: false, retryable: true }],
      ['the model', 404, said('model_not_found'), {}, { status: 502, code: 'upstream_error', shouldRetry: false, retryable: true }],
      [
        'our credit',
        429,
        said('insufficient_quota'),
        { 'retry-after': '5' },
        { status: 502, code: 'upstream_auth_failed', shouldRetry: false, retryable: true },
      ],
      ['our bill', 429, said('billing_hard_limit_reached'), {}, { status: 502, code: 'upstream_auth_failed' }],
      ...[
        ['Moonshot', { message: 'Your account is suspended due to insufficient balance.', type: 'exceeded_current_quota_error' }],
        ['OpenAI, no code', { message: 'You exceeded your current quota.', type: 'insufficient_quota', param: null, code: null }],
        ['a code that is the status', { message: 'no', type: 'insufficient_quota', code: 429 }],
      ].map(([name, error]): [string, number, unknown, Record<string, string>, object] => [
        `our credit by its type: ${name}`,
        429,
        { error },
        { 'retry-after': '5' },
        { status: 502, code: 'upstream_auth_failed', shouldRetry: false, retryable: true, retryAfter: undefined },
      ]),
      ['a rate by its type', 429, { error: { message: 'Slow down.', type: 'rate_limit_reached_error' } }, {}, { status: 429 }],
      [
        'rate',
        429,
        said('rate_limit_exceeded'),
        {},
        { status: 429, code: 'upstream_rate_limited', type: 'upstream_error', retryAfter: 1, shouldRetry: undefined, retryable: true },
      ],
      ['seconds', 429, said(null), { 'retry-after': '7' }, { retryAfter: 7, shouldRetry: undefined }],
      ['part of a second', 429, said(null), { 'retry-after': '0.2' }, { retryAfter: 1 }],
      ['rounded up', 429, said(null), { 'retry-after': '7.01' }, { retryAfter: 8 }],
      ['a date', 429, said(null), { 'retry-after': 'Thu, 01 Jan 1970 00:00:30 GMT' }, { retryAfter: 20 }],
      ['a date that has passed', 429, said(null), { 'retry-after': 'Thu, 01 Jan 1970 00:00:03 GMT' }, { retryAfter: 1 }],
      ['milliseconds first', 429, said(null), { 'retry-after-ms': '2500', 'retry-after': '60' }, { retryAfter: 3 }],
      ['nonsense', 429, said(null), { 'retry-after': 'soon', 'retry-after-ms': 'x' }, { retryAfter: 1 }],
      ['negative', 429, said(null), { 'retry-after': '-3' }, { retryAfter: 1 }],
      ['an empty one', 429, said(null), { 'retry-after': '', 'retry-after-ms': '' }, { retryAfter: 1 }],
      ['60 is patient', 429, said(null), { 'retry-after': '60' }, { retryAfter: 60, shouldRetry: undefined }],
      ['61 is not', 429, said(null), { 'retry-after': '61' }, { retryAfter: 61, shouldRetry: false }],
      ['for ever', 429, said(null), { 'retry-after': '1e300' }, { retryAfter: 31 * 86_400, shouldRetry: false }],
      ...[500, 502, 503, 504, 529, 408, 409, 405, 418].map((status): [string, number, unknown, Record<string, string>, object] => [
        'failure',
        status,
        said('internal', 'boom at 10.0.0.1'),
        {},
        {
          status: 502,
          code: 'upstream_error',
          type: 'upstream_error',
          retryable: true,
          shouldRetry: undefined,
          message: `The provider failed with status ${status}.`,
        },
      ]),
      ['a redirect', 307, '', { location: 'http://169.254.169.254/' }, { status: 502, code: 'upstream_error', retryable: true }],
      [
        'a page',
        500,
        '<html><body>nginx</body></html>',
        {},
        { status: 502, code: 'upstream_error', message: 'The provider failed with status 500.' },
      ],
      ['a large error', 400, said('too_much', 'x'.repeat(200_000)), {}, { status: 400, code: 'upstream_rejected' }],
    ]
  const { there, attempt } = await trying(t, chat())
  for (const [name, status, body, headers, expected] of rows) {
    there.script = (_seen, response) => json(response, status, body, headers)
    for (const stream of [false, true]) {
      const error = told(await refused(attempt({ stream, now: 10_000 })))
      t.match(error, expected, `${status} ${name}`)
      t.notMatch(JSON.stringify(error), /sk-ant-test|10\.0\.0\.1|169\.254|nginx/, 'nothing of the inside')
    }
  }
  t.equal(there.seen.length, 2 * rows.length, 'a redirect is not followed, and nothing is tried twice')
})

t.test('of several waits the longest counts', async t => {
  const rows: [headers: Record<string, string | string[]>, retryAfter: number][] = [
    [{ 'retry-after': ['33', '44'] }, 44],
    [{ 'retry-after': ['44', '33'] }, 44],
    [{ 'retry-after': ['soon', '33'] }, 33],
    [{ 'retry-after': ['7', 'Thu, 01 Jan 1970 00:00:30 GMT'] }, 20],
    [{ 'retry-after-ms': ['2500', '4500'], 'retry-after': '60' }, 5],
  ]
  const { there, attempt } = await trying(t, chat())
  for (const [headers, retryAfter] of rows) {
    there.script = (_seen, response) => void response.writeHead(429, headers).end()
    t.match(told(await refused(attempt({ now: 10_000 }))), { code: 'upstream_rate_limited', retryAfter }, JSON.stringify(headers))
  }
})

t.test('a refusal that is compressed counts as it does in plain text', async t => {
  const packed: [encoding: string, pack: (text: string) => Buffer][] = [
    ['gzip', gzipSync],
    ['x-gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
  ]
  const unread: [name: string, encoding: string, body: Buffer][] = [
    ['one that nobody knows', 'secret', Buffer.from('{"error":{"code":"no"}}')],
    ['two of them', 'gzip, gzip', gzipSync(gzipSync('{"error":{"code":"no"}}'))],
    ['bytes that are none of it', 'gzip', Buffer.from('{"error":{"code":"no"}}')],
    ['a part of it', 'gzip', gzipSync('{"error":{"code":"no"}}').subarray(0, 20)],
    ['a bomb', 'gzip', gzipSync(JSON.stringify({ error: { code: 'no', message: ' '.repeat(64 * 1024 * 1024) } }))],
  ]
  const { there, attempt } = await trying(t, chat())
  const said = async (status: number, encoding: string, body: Buffer, stream: boolean) => {
    there.script = (_seen, response) => {
      const type = { 'content-type': stream ? 'text/event-stream' : 'application/json' }
      response.writeHead(status, { ...type, 'content-encoding': encoding, 'retry-after': '9' }).end(body)
    }
    return told(await refused(attempt({ stream })))
  }
  const long = JSON.stringify({ error: { message: 'too long', code: 'context_length_exceeded' } })
  for (const stream of [false, true]) {
    for (const [encoding, pack] of packed) {
      const refusal = { status: 400, code: 'context_length_exceeded', retryable: false, message: 'too long' }
      t.match(await said(400, encoding, pack(long), stream), refusal, encoding)
      const credit = { status: 502, code: 'upstream_auth_failed', retryable: true }
      t.match(await said(429, encoding, pack('{"error":{"code":"insufficient_quota"}}'), stream), credit, encoding)
    }
    for (const [name, encoding, body] of unread) {
      t.match(await said(400, encoding, body, stream), { status: 400, code: 'upstream_rejected', retryable: false }, name)
      t.match(await said(429, encoding, body, stream), { status: 429, code: 'upstream_rate_limited', retryAfter: 9 }, name)
    }
  }
})

/** Google's words for a refusal. */
const googled = (code: number, status: string, message: string, ...details: object[]) => [{ error: { code, message, status, details } }]
const BAD_KEY = googled(400, 'INVALID_ARGUMENT', 'API key not valid.', { reason: 'API_KEY_INVALID', domain: 'googleapis.com' })
const XAI_KEY = { code: 'Client specified an invalid argument', error: 'Incorrect API key provided: xa***wx. You can obtain one at x.ai.' }
const QUOTA = googled(429, 'RESOURCE_EXHAUSTED', 'You exceeded your current quota.', { retryDelay: '34s' })
const OPERATOR = { status: 502, code: 'upstream_auth_failed', shouldRetry: false, retryable: true } as const

t.test('what a kind says in words of its own', async t => {
  const rows: [name: string, provider: Provider, status: number, body: unknown, expected: Partial<ReturnType<typeof told>>][] = [
    ['a bad key of Google, called a bad argument', geminiCompat, 400, BAD_KEY, OPERATOR],
    ['a bad key of xAI, called a bad argument', xai, 400, XAI_KEY, OPERATOR],
    ['the same under 200', xai, 200, XAI_KEY, OPERATOR],
    [
      'a mistake of the client at xAI',
      xai,
      400,
      { code: 'Client specified an invalid argument', error: 'Maximum prompt length is 8192.' },
      { status: 400, code: 'upstream_rejected', message: 'Maximum prompt length is 8192.' },
    ],
    ['the wait that Google asks for', geminiCompat, 429, QUOTA, { status: 429, code: 'upstream_rate_limited', retryAfter: 34 }],
    [
      'a mistake of the client at Google',
      geminiCompat,
      400,
      googled(400, 'INVALID_ARGUMENT', 'No such tool.'),
      { status: 400, code: 'upstream_rejected', message: 'No such tool.' },
    ],
  ]
  const { there, attempt } = await trying(t, chat())
  for (const [name, provider, status, body, expected] of rows) {
    there.script = (_seen, response) => json(response, status, body)
    for (const stream of [false, true]) t.match(told(await refused(attempt({ provider, stream }))), expected, `${name}, stream: ${stream}`)
  }
  const streamed = { provider: geminiCompat, wire: geminiCompat.wires.chat as Wire, stream: true }
  there.script = (_seen, response) => sse(response, [JSON.stringify(BAD_KEY[0])])
  t.match(told(await refused(attempt(streamed))), OPERATOR, 'first in a stream')
})

t.test('a code or a parameter that shows the key of the gateway is not passed on', async t => {
  const { there, attempt } = await trying(t, chat(), { settings: { api_key: 'own_secret' } })
  for (const [code, param, expected] of [
    ['own_secret', 'messages.own_secret', { code: 'upstream_rejected', param: null }],
    ['not_own_secret_', 'messages', { code: 'upstream_rejected', param: 'messages' }],
    ['key_not_found', 'messages[0]', { code: 'key_not_found', param: 'messages[0]' }],
  ] as const) {
    there.script = (_seen, response) => json(response, 400, { error: { message: 'no', code, param } })
    t.match(told(await refused(attempt())), expected)
  }
})

t.test('what a translated stream says of its failure is scrubbed, whatever its status', async t => {
  const said = { error: { message: 'no way from sk-ant-test to http://10.0.0.1/x' } }
  const { attempt } = await trying(t, (_seen, response) => sse(response, [JSON.stringify(said)]))
  const error = await refused(attempt({ provider: gemini, wire: gemini.wires.chat as Wire, stream: true }))
  t.match(told(error), { code: 'upstream_invalid_response', message: /^no way from/ })
  t.notMatch(errorText(error), /sk-ant|10\.0/, 'in the log, too')
  const begun = attempt({ stream: true })
  const failure = new ProviderFailure({ message: said.error.message })
  t.notMatch(errorText(begun.interrupted(failure)), /sk-ant|10\.0/)
  t.match(errorText(begun.interrupted(failure)), 'upstream_invalid_response: no way from', 'which says why')
  begun.abort(new GatewayError('client_closed', 'Gone.'))
  await refused(begun)
})

t.test('what is no answer under a good status', async t => {
  const rows: [name: string, Script, stream: boolean | null, code: string, status?: number][] = [
    ['a page', (_s, r) => r.writeHead(200, { 'content-type': 'text/html' }).end('<html>'), null, 'upstream_invalid_response'],
    ['nothing', (_s, r) => r.writeHead(200).end(), false, 'upstream_invalid_response'],
    ['204', (_s, r) => r.writeHead(204).end(), false, 'upstream_invalid_response'],
    ['no choices', (_s, r) => json(r, 200, { choices: [] }), null, 'upstream_invalid_response'],
    ['an error', (_s, r) => json(r, 200, { error: { message: 'x' } }), null, 'upstream_invalid_response'],
    ['an error that names its status', (_s, r) => json(r, 200, { error: { message: 'x', code: 429 } }), null, 'upstream_rate_limited', 429],
    ['an error first in a stream', (_s, r) => sse(r, ['{"error":{"message":"x","code":401}}']), true, 'upstream_auth_failed'],
    ['an error without a number first in a stream', (_s, r) => sse(r, ['{"error":{"message":"x"}}']), true, 'upstream_invalid_response'],
    ['a stream with nothing in it', (_s, r) => sse(r, ['[DONE]']), true, 'upstream_invalid_response'],
    [
      'a stream with comments only',
      (_s, r) => r.writeHead(200, { 'content-type': 'text/event-stream' }).end(': a\n\n'),
      true,
      'upstream_invalid_response',
    ],
    ['a stream of text', (_s, r) => sse(r, ['Hello']), true, 'upstream_invalid_response'],
    ['a stream that nobody asked for', (_s, r) => sse(r, [START, STOP, '[DONE]']), false, 'upstream_invalid_response'],
    ['compressed', (_s, r) => json(r, 200, WHOLE, { 'content-encoding': 'gzip' }), null, 'upstream_invalid_response'],
  ]
  const { there, attempt } = await trying(t, chat())
  for (const [name, script, streamed, code, status = 502] of rows) {
    there.script = script
    for (const stream of streamed === null ? [false, true] : [streamed]) {
      const error = await refused(attempt({ stream }))
      t.match(told(error), { code, status, retryable: true }, `${name}, stream: ${stream}`)
    }
  }
})

t.test('a request that is too long is so under a good status, too', async t => {
  const { there, attempt } = await trying(t, chat())
  const rows: [error: object, code: string][] = [
    [{ message: 'too long', type: 'invalid_request_error', param: 'messages', code: 'context_length_exceeded' }, 'context_length_exceeded'],
    [{ message: 'too long', type: 'None', param: 'None', code: '400' }, 'upstream_rejected'],
  ]
  for (const [error, code] of rows) {
    const expected = { status: 400, code, type: 'invalid_request_error', retryable: false, message: 'too long' }
    there.script = (_seen, response) => json(response, 200, { error })
    t.match(told(await refused(attempt())), expected, `${code}, whole`)
    t.match(told(await refused(attempt({ stream: true }))), expected, `${code}, whole where a stream was due`)
    there.script = (_seen, response) => sse(response, [JSON.stringify({ error })])
    t.match(told(await refused(attempt({ stream: true }))), expected, `${code}, first in a stream`)
  }
})

t.test('answers, whole and streamed; either kind where the other was asked for', async t => {
  const { there, attempt } = await trying(t, chat())
  t.match(JSON.parse((await heard(await attempt().answered)).text), {
    model: 'acme/model-1',
    choices: [{ message: { content: 'Hello there' } }],
  })
  t.match(there.seen[0], { path: '/v1/chat/completions', headers: { authorization: 'Bearer sk-ant-test' } })
  const streamed = await heard(await attempt({ stream: true }).answered)
  t.equal(streamed.error, null)
  t.strictSame(brokenRules(chunksIn(streamed.text)), [])
  for (const type of ['', 'text/plain', 'application/octet-stream', 'TEXT/EVENT-STREAM; charset=utf-8']) {
    there.script = (_seen, response) => {
      if (type !== '') response.setHeader('content-type', type)
      response.end(`data: ${START}\n\ndata: ${STOP}\n\ndata: [DONE]\n\n`)
    }
    t.equal((await heard(await attempt({ stream: true }).answered)).text, `data: ${START}\n\ndata: ${STOP}\n\n`, `a stream as ${type}`)
  }
  there.script = (_seen, response) => json(response, 200, WHOLE)
  const retold = await heard(await attempt({ stream: true }).answered)
  t.strictSame(brokenRules(chunksIn(retold.text).map(chunk => ({ created: 1, ...chunk }))), [])
  t.match(retold.text, /"content":"Hello"/)
  there.script = (_seen, response) => {
    response.writeEarlyHints({ link: '</x>; rel=preload' })
    response.writeProcessing()
    json(response, 200, WHOLE)
  }
  t.match((await heard(await attempt().answered)).text, 'Hello', 'informational answers are passed over')
})

t.test('who cannot be reached', async t => {
  const gone = await provider(t)
  await gone.close()
  const rows: [string, string][] = [
    ['refused', gone.url],
    ['no such name', 'http://no-such-host.invalid/v1'],
    ['no TLS', `${(await provider(t)).url.replace('http:', 'https:')}`],
  ]
  for (const [name, url] of rows) {
    const attempt = attempts(t, url)({ timeout: FAR })
    const error = await refused(attempt)
    t.match(
      told(error),
      { status: 502, code: 'upstream_unavailable', retryable: true, shouldRetry: undefined, message: 'The provider cannot be reached.' },
      name,
    )
  }
})

t.test('a connection that breaks', async t => {
  const head = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n'
  const events = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n'
  const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`
  const open = (type: string) => `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\nconnection: close\r\n\r\n`
  const before: [string, string, boolean][] = [
    ['before the head', '', false],
    ['in the head', 'HTTP/1.1 200 OK\r\ncontent', false],
    ['in the body', `${head}{"choices"`, false],
    ['before the first event', `${events}${chunk(': ping\n\n')}`, true],
    ['in the first event', `${events}${chunk('data: {"id"')}`, true],
    ['after a head without a length', open('application/json'), false],
    ['in spaces that keep it alive', `${open('application/json')}\n \n`, false],
    ['in a body without a length', `${open('application/json')} {"choices":[{"index":0}`, false],
    ['in one that was to be a stream', `${open('application/json')}{"choices":[{"index":0}`, true],
    ['before the first event, without a length', `${open('text/event-stream')}: ping\n\n`, true],
    ['in the first event, without a length', `${open('text/event-stream')}data: {"id"`, true],
    ['what is no HTTP', 'SSH-2.0-OpenSSH\r\n', false],
  ]
  for (const [name, said, stream] of before) {
    for (const how of ['end', 'reset'] as const) {
      const url = await bytes(t, socket => {
        socket.write(said, () => (how === 'end' ? socket.end() : setTimeout(() => socket.resetAndDestroy(), 20)))
      })
      t.match(
        told(await refused(attempts(t, url)({ stream }))),
        { status: 502, code: 'upstream_error', retryable: false },
        `${name}, ${how}: it may have run`,
      )
    }
  }
  const translated = await bytes(t, socket => socket.end(`${open('text/event-stream')}: ping\n\n`))
  t.match(
    told(await refused(attempts(t, translated)({ provider: gemini, wire: gemini.wires.chat as Wire, stream: true }))),
    { status: 502, code: 'upstream_error', retryable: false },
    'before the first event of a translated stream',
  )
  const ended: [name: string, said: string, stream: boolean, expected: Partial<ReturnType<typeof told>>][] = [
    ['a page', `${open('text/plain')}Welcome`, false, { code: 'upstream_invalid_response', retryable: true }],
    ['whole JSON', `${open('application/json')}{"choices":[]}`, false, { code: 'upstream_invalid_response', retryable: true }],
    ['an error', `${open('text/event-stream')}data: {"error":{"code":429}}`, true, { code: 'upstream_rate_limited', retryable: true }],
    ['[DONE]', `${open('text/event-stream')}data: [DONE]\n\n`, true, { code: 'upstream_invalid_response', retryable: true }],
  ]
  for (const [name, said, stream, expected] of ended) {
    const url = await bytes(t, socket => socket.end(said))
    t.match(told(await refused(attempts(t, url)({ stream }))), expected, `${name}, without a length: nothing of it is missing`)
  }
  const resets = await bytes(t, socket => void socket.resetAndDestroy())
  t.match(told(await refused(attempts(t, resets, { settings: { retry_unknown: true } })())), { retryable: true })
  const url = await bytes(t, socket => {
    socket.write(`${events}${chunk(`data: ${START}\n\n`)}`, () => setTimeout(() => socket.resetAndDestroy(), 20))
  })
  const attempt = attempts(t, url)({ stream: true })
  const { text, error } = await heard(await attempt.answered)
  t.equal(text, `data: ${START}\n\n`, 'what came before is told')
  t.match(told(attempt.interrupted(error)), { code: 'upstream_error', message: 'The provider broke off before the answer was whole.' })
})

t.test('a request whose reused connection was dead is sent once more, on a new one', async t => {
  const answer = JSON.stringify(WHOLE)
  const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${answer.length}\r\n\r\n${answer}`
  let requests = 0
  const url = await bytes(t, socket => {
    requests++
    // Each connection answers once, and dies when it is used again.
    if (socket.listenerCount('drain') > 0) socket.resetAndDestroy()
    else socket.on('drain', () => {}).write(head)
  })
  const attempt = attempts(t, url, { settings: { max_connections: 1 } })
  for (let i = 0; i < 4; i++) t.match((await heard(await attempt().answered)).text, 'Hello', `request ${i}`)
  // A new connection carries one request alone: every other of these meets a used one.
  t.equal(requests, 4 + 2)
  let fresh = 0
  const dying = await bytes(t, socket => {
    fresh++
    socket.resetAndDestroy()
  })
  t.equal((await refused(attempts(t, dying)())).code, 'upstream_error')
  t.equal(fresh, 1, 'a fresh connection that dies may have carried the request to its work')
})

t.test('timeouts', async t => {
  const { there, attempt } = await trying(t, () => {}, { timeout: FAR })
  const slow = async (name: string, script: Script, options: AttemptOptions, which: RegExp, least: number, retryable: boolean) => {
    there.script = script
    const started = performance.now()
    const running = attempt(options)
    const error = await refused(running)
    const ms = performance.now() - started
    t.match(told(error), { status: 504, code: 'upstream_timeout', shouldRetry: false, retryable, message: which }, name)
    t.ok(ms >= least - 20 && ms < least + 20_000, `${name}: ${ms} ms`)
    await there.seen.at(-1)?.closed
  }
  const events: Script = (_seen, response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
  const dripping: Script = (_seen, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).write(' ')
    const timer = setInterval(() => response.write(' '), 50)
    response.on('close', () => clearInterval(timer))
  }
  const firstByte = { timeout: { ...FAR, first_byte: 200 } }
  const idle = { timeout: { ...FAR, idle: 200 } }
  const part: Script = (_seen, response) => void response.writeHead(200).write('{')
  await slow('first byte', () => {}, firstByte, /timeout\.first_byte of 0\.2 s/, 200, false)
  await slow('idle, whole', part, idle, /timeout\.idle of 0\.2 s/, 200, false)
  await slow('idle, stream', events, { ...idle, stream: true }, /timeout\.idle/, 200, false)
  const twice = { ...firstByte, settings: { retry_unknown: true } }
  await slow('first byte, twice is allowed', () => {}, twice, /timeout\.first_byte/, 200, true)
  await slow('total', dripping, { timeout: { ...FAR, total: 500 } }, /timeout\.total of 0\.5 s/, 500, false)
  there.script = (_seen, response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).write(`data: ${START}\n\n`)
  const running = attempt({ ...idle, stream: true })
  const { error } = await heard(await running.answered)
  t.match(told(running.interrupted(error)), { code: 'upstream_timeout', message: /timeout\.idle/ }, 'in a stream that had begun')
  await there.seen.at(-1)?.closed
})

t.test('an answer that is on a thread is in time, late or wrong like any other', async t => {
  const { attempt } = await trying(t, chat())
  const total = { timeout: { ...FAR, total: 300 } }
  t.match(await refused(attempt({ ...total, whole: () => new Promise(() => {}) })), { code: 'upstream_timeout', message: /timeout\.total/ })
  t.match(await refused(attempt({ whole: () => Promise.reject(new Error('x')) })), { code: 'upstream_invalid_response' })
  const late = { metered: {}, json: {}, text: 'x' }
  let tell = (_answer: WholeAnswer): void => {}
  const asked = attempt({
    whole: () =>
      new Promise(resolve => {
        tell = resolve
        setImmediate(() => asked.abort(new GatewayError('client_closed', 'Gone.')))
      }),
  })
  t.match(await refused(asked), { code: 'client_closed' })
  tell(late)
  t.strictSame(await heard(await attempt({ whole: async () => late }).answered), { text: 'x', error: null })
})

t.test('a fault of ours, met where a timer calls, is the answer to that request', async t => {
  const fault = new RangeError('Maximum call stack size exceeded')
  const { attempt, there } = await trying(
    t,
    (_seen, response) => void response.writeHead(422).write('{"error":{"message":"no","param":"n"}'),
  )
  const asks = () => {
    throw fault
  }
  t.match(await refused(attempt({ timeout: { ...FAR, idle: 200 }, asks })), { code: 'upstream_rejected' }, 'what is no JSON names no field')
  there.script = (_seen, response) => {
    response.writeHead(422, { 'content-length': 100 }).write('{"error":{"message":"no","param":"n"}}')
  }
  t.match(await refused(attempt({ timeout: { ...FAR, idle: 200 }, asks })), { code: 'internal_error', cause: fault })
  await there.seen.at(-1)?.closed
})

t.test('a stream may take as long as it talks to somebody: comments are no talk', async t => {
  const repeating =
    (text: string): Script =>
    (_seen, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(`data: ${START}\n\n`)
      const timer = setInterval(() => response.write(text), 20)
      response.on('close', () => clearInterval(timer))
    }
  const { there, attempt } = await trying(t, repeating(': PROCESSING\n\n'), { stream: true, timeout: { ...FAR, total: 1_000 } })
  const commenting = attempt()
  const { error } = await heard(await commenting.answered)
  t.match(told(commenting.interrupted(error)), { code: 'upstream_timeout', message: /timeout\.total of 1 s/ })
  await there.seen[0]?.closed

  there.script = repeating(`data: ${START.replace('{"role":"assistant"}', '{"content":"a"}')}\n\n`)
  const talking = attempt()
  const answered = await talking.answered
  const end = heard(answered)
  talking.drain()
  t.match((await end).error, { code: 'upstream_timeout', message: /timeout\.total of 1 s/ }, 'nobody listens any more')
  await there.seen[1]?.closed
})

t.test('a connection that can not be opened in time', async t => {
  // An address of the documentation's range: nobody answers, or there is no way to it.
  const attempt = attempts(t, 'http://192.0.2.1:9/v1', {
    timeout: { ...FAR, connect: 300 },
    settings: { timeout: { ...FAR, connect: 300 } },
  })
  const started = performance.now()
  const waiting = attempt()
  t.match(told(await refused(waiting)), { status: 502, code: 'upstream_unavailable', retryable: true })
  t.notOk(waiting.sent, 'what waits for a connection has not been sent')
  t.ok(performance.now() - started < 30_000)
})

t.test('an abort closes the connection to the provider within 50 ms', async t => {
  const { there, attempt } = await trying(t, () => {})
  const scripts: [string, Script, boolean][] = [
    ['before the head', () => {}, false],
    ['in the body', (_seen, response) => void response.writeHead(200, { 'content-type': 'application/json' }).write('{'), false],
    [
      'in a stream',
      (_seen, response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).write(`data: ${START}\n\n`),
      true,
    ],
  ]
  /** Milliseconds from the abort to its arrival at the provider. */
  const aborted = async (script: Script, stream: boolean): Promise<number> => {
    there.script = script
    const before = there.seen.length
    const running = attempt({ stream })
    while (there.seen.length === before) await new Promise(resolve => setTimeout(resolve, 5))
    await new Promise(resolve => setTimeout(resolve, 30))
    const why = new GatewayError('client_closed', 'The client left.')
    const ended = stream ? running.answered.then(heard).then(({ error }) => error) : refused(running)
    await new Promise(resolve => setImmediate(resolve))
    const started = performance.now()
    running.abort(why)
    await there.seen.at(-1)?.closed
    const ms = performance.now() - started
    t.equal(await ended, why)
    return ms
  }
  for (const [name, script, stream] of scripts) {
    // The best of several: the machine may be busy.
    let best = Number.POSITIVE_INFINITY
    for (let round = 0; round < 30 && best >= 50; round++) best = Math.min(best, await aborted(script, stream))
    t.ok(best < 50, `${name}: ${best} ms`)
  }
})

t.test('what a stream has reported before anything could be told is metered where it is aborted', async t => {
  const usageMetadata = { promptTokenCount: 60, thoughtsTokenCount: 3000, totalTokenCount: 3060 }
  const transport = answering(receiver => {
    receiver.head(200, { 'content-type': 'text/event-stream' })
    receiver.data(Buffer.from(`data: ${JSON.stringify({ usageMetadata })}\n\n`))
  })
  const metered: JsonObject[] = []
  const attempt = attempts(t, 'http://127.0.0.1:1', { transport })
  const meter = (chunk: JsonObject) => {
    metered.push(chunk)
    return null
  }
  const running = attempt({ stream: true, wire: gemini.wires.chat as Wire, meter })
  await new Promise(resolve => setImmediate(resolve))
  running.abort(new GatewayError('client_closed', 'The client left.'))
  t.match(await refused(running), { code: 'client_closed' })
  t.match(metered, [{ choices: [], usage: { prompt_tokens: 60, completion_tokens: 3000 } }])
})

t.test('a connection that stays open after [DONE] delays nobody, and is closed in the end', async t => {
  const { there, attempt } = await trying(t, (_seen, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write(`data: ${START}\n\ndata: ${STOP}\n\ndata: [DONE]\n\n`)
  })
  const started = performance.now()
  const answered = await attempt({ stream: true }).answered
  let closed = false
  void there.seen[0]?.closed.then(() => {
    closed = true
  })
  const { error } = await heard(answered)
  t.equal(error, null)
  t.notOk(closed, 'nobody waited for it')
  await there.seen[0]?.closed
  const ms = performance.now() - started
  t.ok(ms > 900 && ms < 30_000, `${ms} ms`)
})

t.test('who is paused is not silent', async t => {
  let response!: { write(text: string): unknown }
  const { attempt } = await trying(
    t,
    (_seen, there) => {
      response = there.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(`data: ${START}\n\n`)
    },
    { timeout: { ...FAR, idle: 1_500, total: 1_500 } },
  )
  const running: Attempt = attempt({ stream: true })
  const answered = await running.answered
  const end = heard(answered)
  running.pause()
  // A piece that was on its way already.
  running.data(Buffer.from(': late\n\n'))
  await new Promise(resolve => setTimeout(resolve, 2_000))
  response.write(`data: ${STOP}\n\ndata: [DONE]\n\n`)
  running.resume()
  t.strictSame(await end, { text: `data: ${START}\n\n: late\n\ndata: ${STOP}\n\n`, error: null })
})

t.test('an answer without end is refused', async t => {
  const piece = Buffer.alloc(1024 * 1024, ' ')
  const { attempt } = await trying(t, async (_seen, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    let wake = () => {}
    response.on('drain', () => wake()).on('close', () => wake())
    for (let i = 0; i < 80 && !response.destroyed; i++) {
      if (!response.write(piece)) await new Promise<void>(resolve => (wake = resolve))
    }
  })
  t.match(told(await refused(attempt({ timeout: FAR }))), {
    code: 'upstream_invalid_response',
    message: /larger than 41943040 bytes/,
  })
})

t.test('a client that reads slowly when the answer is over leaves nothing waiting', async t => {
  const transport = answering(receiver => {
    receiver.head(200, { 'content-type': 'application/json' })
    receiver.data(Buffer.from('{"choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}]}'))
    receiver.end()
  })
  const timers = (): number => process.getActiveResourcesInfo().filter(kind => kind === 'Timeout').length
  const before = timers()
  const attempt = attempts(t, 'http://127.0.0.1:1', { transport })()
  t.equal(timers(), before + 1, 'while it waits')
  await attempt.answered
  attempt.pause()
  t.equal(timers(), before)
})

t.test('of what was sent nothing is kept while its answer lasts', async t => {
  const streams: OpenStream[] = []
  const there = await provider(t, (seen, response) => void streams.push(openStream(seen, response)))
  const http = httpTransport(settingsOf('openai', { base_url: there.url }), { now: () => 0, distrusted: () => {} })
  let sent: WeakRef<object> | undefined
  const transport: Transport = {
    send: (request, receiver) => {
      sent = new WeakRef(request.headers)
      return http.send(request, receiver)
    },
    close: () => http.close(),
  }
  const attempt = attempts(t, there.url, { stream: true, transport })()
  const answered = await attempt.answered
  t.ok(await isGone(sent as WeakRef<object>))
  streams[0]?.finish()
  t.match(await heard(answered), { error: null })
})
