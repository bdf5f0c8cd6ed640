import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { request } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { type Answer, AUTH, gateway, KEY, metric, type RunningGateway, yaml } from '../support/gateway.js'
import { chat, json, provider, type Script, sse } from '../support/provider.js'

/*
 * What a client gets: a provider's answer as the provider wrote it, and every refusal with the status, code, type, param and headers that clients
 * decide by. And what nobody gets: secrets and prompts.
 */

const MESSAGES = [{ role: 'user', content: 'Hello' }]
const CHAT = '/v1/chat/completions'
const BODY = { model: 'up/m', messages: MESSAGES }

t.test('a provider’s answer reaches the client as it was written, but for model and id', async t => {
  const up = await provider(t)
  const running = await gateway(t, yaml(up.url))
  const answer =
    '{ "id" : "chatcmpl-XyZ",\n  "object":"chat.completion","created":1741569952.000,"system_fingerprint":"fp\\u005f1",' +
    '"model":"m-2026-11-20","choices":[{"index":0,"message":{"role":"assistant","content":"caf\\u00e9 ☕ \\/","refusal":null,' +
    '"reasoning_content":"hm","annotations":[{"model":"m-2026-11-20"}]},"logprobs":null,"finish_reason":"stop","native_finish_reason":"end"}],' +
    '"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"cost":1.10e-4,"big":12345678901234567890},"x_groq":{"id":"resp_1"} }\n'

  up.script = (_, response) => json(response, 200, answer)
  const whole = await running.post(CHAT, BODY)
  t.equal(whole.headers.get('content-type'), 'application/json')
  t.equal(whole.text, answer.replace('"model":"m-2026-11-20","choices"', '"model":"up/m","choices"'))

  up.script = (_, response) => json(response, 200, answer.replace('chatcmpl-XyZ', 'resp-7'))
  const renamed = await running.post(CHAT, BODY)
  const id = `chatcmpl-${renamed.headers.get('x-request-id')?.slice('req_'.length)}`
  t.equal(renamed.text, whole.text.replace('chatcmpl-XyZ', id))

  const chunk = (rest: string): string =>
    `{"id": "chatcmpl-1", "object":"chat.completion.chunk","created":1.0,"model":"m","service_tier":"x","obfuscation":"aG\\u0069",${rest}}`
  const chunks = [
    chunk('"choices":[],"prompt_filter_results":[{"prompt_index":0}]'),
    chunk('"choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning_content":"…"},"finish_reason":null}]'),
    chunk('"choices":[{"index":0,"delta":{"content":"caf\\u00e9"},"logprobs":{"content":[{"logprob":-0.10}]},"finish_reason":null}]'),
    chunk('"choices":[{"delta":{},"index":0,"finish_reason":"stop","native_finish_reason":"end"}]'),
  ]
  const usage = chunk('"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"cost":1.10e-4}')
  up.script = (_, response) => sse(response, [...chunks, usage, '[DONE]'])
  const told = (data: readonly string[]): string =>
    [...data, '[DONE]'].map(text => `data: ${text.replace('"model":"m"', '"model":"up/m"')}\n\n`).join('')
  const silent = await running.post(CHAT, { ...BODY, stream: true })
  t.equal(silent.headers.get('content-type'), 'text/event-stream; charset=utf-8')
  t.equal(silent.text, told(chunks), 'usage is not for a client that did not ask')
  const asking = await running.post(CHAT, { ...BODY, stream: true, stream_options: { include_usage: true } })
  t.equal(asking.text, told([...chunks, usage]))
})

interface Refusal {
  readonly status: number
  readonly code: string
  readonly type?: string
  readonly param?: string | null
  /** `retry-after`, `x-should-retry` and others; all that is not named must be absent. */
  readonly headers?: Readonly<Record<string, string>>
  readonly says?: string
}

const DECISIVE = ['retry-after', 'x-should-retry', 'www-authenticate', 'allow']

/** Everything that holds for each error, and what this one is to say. */
function isRefusal(t: Test, { status, headers, json: body, text }: Answer, expected: Refusal, name: string): void {
  t.test(name, async t => {
    const { code, type = 'invalid_request_error', param = null, headers: named = {}, says } = expected
    const { message, ...error } = body?.error ?? { message: text }
    t.same({ status, ...error }, { status: expected.status, type, param, code }, String(message))
    t.same(Object.keys(body ?? {}), ['error', 'request_id'])
    t.ok(typeof message === 'string' && message !== '')
    if (says !== undefined) t.ok(message.includes(says), message)
    t.match(headers.get('x-request-id'), /^req_[0-9A-Z]{26}$/)
    t.equal(body?.request_id, headers.get('x-request-id'))
    t.equal(headers.get('content-type'), 'application/json')
    const decisive = Object.fromEntries(DECISIVE.map(header => [header, headers.get(header)]))
    t.same(decisive, { ...Object.fromEntries(DECISIVE.map(header => [header, null])), ...pick(named, DECISIVE) })
    for (const [header, value] of Object.entries(named)) t.equal(headers.get(header), value, header)
  })
}

function pick(fields: Readonly<Record<string, string>>, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => names.includes(name)))
}

const AUTHENTICATION = { status: 401, type: 'authentication_error', headers: { 'www-authenticate': 'Bearer' } }
const bearer = (secret: string): Record<string, string> => ({ authorization: `Bearer ${secret}` })

const REQUESTS: readonly [name: string, path: string, body: unknown, headers: Record<string, string>, expected: Refusal][] = [
  ['no key', CHAT, BODY, {}, { ...AUTHENTICATION, code: 'missing_api_key' }],
  ['an empty key', CHAT, BODY, { authorization: 'Bearer ' }, { ...AUTHENTICATION, code: 'missing_api_key' }],
  ['another scheme', CHAT, BODY, { authorization: 'Basic YTpi' }, { ...AUTHENTICATION, code: 'missing_api_key' }],
  ['an unknown key', CHAT, BODY, bearer('mgk_unknown'), { ...AUTHENTICATION, code: 'invalid_api_key' }],
  ['a disabled key', CHAT, BODY, bearer('mgk_disabled'), { ...AUTHENTICATION, code: 'invalid_api_key' }],
  ['an expired key', CHAT, BODY, bearer('mgk_expired'), { ...AUTHENTICATION, code: 'invalid_api_key' }],
  [
    'a model outside of the key',
    CHAT,
    BODY,
    bearer('mgk_other_only'),
    { status: 403, code: 'model_not_allowed', type: 'permission_error', param: 'model' },
  ],
  ['an unknown model', CHAT, { ...BODY, model: 'up/none' }, AUTH, { status: 404, code: 'model_not_found', param: 'model' }],
  ['no JSON', CHAT, '{"model": ', AUTH, { status: 400, code: 'invalid_json' }],
  ['no object', CHAT, '[1]', AUTH, { status: 400, code: 'invalid_json' }],
  ['an empty body', CHAT, '', AUTH, { status: 400, code: 'invalid_json' }],
  ['no UTF-8', CHAT, Buffer.from('{"model":"up/m\xff"}', 'latin1'), AUTH, { status: 400, code: 'invalid_json' }],
  [
    'a body that is too deep',
    CHAT,
    `{"model":"up/m","messages":${'['.repeat(200)}${']'.repeat(200)}}`,
    AUTH,
    { status: 400, code: 'invalid_json' },
  ],
  ['no model', CHAT, { messages: MESSAGES }, AUTH, { status: 400, code: 'invalid_request', param: 'model' }],
  ['a model that is no string', CHAT, { ...BODY, model: 7 }, AUTH, { status: 400, code: 'invalid_request', param: 'model' }],
  [
    'a prompt of mixed kinds',
    '/v1/completions',
    { model: 'up/m', prompt: ['a', 1] },
    AUTH,
    { status: 400, code: 'invalid_request', param: 'prompt[1]' },
  ],
  ['no prompt', '/v1/completions', { model: 'up/m' }, AUTH, { status: 400, code: 'invalid_request', param: 'prompt' }],
  [
    'a cap of 0',
    '/v1/completions',
    { model: 'up/m', prompt: 'a', max_tokens: 0 },
    AUTH,
    { status: 400, code: 'invalid_request', param: 'max_tokens' },
  ],
  [
    'a top_n of 0',
    '/v1/rerank',
    { model: 'up/m', query: 'a', documents: ['b'], top_n: 0 },
    AUTH,
    { status: 400, code: 'invalid_request', param: 'top_n' },
  ],
  [
    'a surface that the model has not',
    '/v1/embeddings',
    { model: 'up/other', input: 'a' },
    bearer('mgk_other_only'),
    { status: 400, code: 'unsupported_surface', param: 'model' },
  ],
  [
    'another content type',
    CHAT,
    'model=m',
    { ...AUTH, 'content-type': 'text/plain' },
    { status: 415, code: 'unsupported_media_type', headers: { 'x-should-retry': 'false' } },
  ],
  [
    'a compressed body',
    CHAT,
    BODY,
    { ...AUTH, 'content-encoding': 'gzip' },
    { status: 415, code: 'unsupported_media_type', headers: { 'x-should-retry': 'false' } },
  ],
  [
    'a body that is too large',
    CHAT,
    `{"model":"${'x'.repeat(1_100_000)}"}`,
    AUTH,
    { status: 413, code: 'request_too_large', headers: { connection: 'close' } },
  ],
  ['an unknown path', '/v1/nothing', BODY, AUTH, { status: 404, code: 'not_found', says: '/v1' }],
  ['the path of another interface', '/v1/responses', BODY, AUTH, { status: 404, code: 'not_found', says: 'POST /v1/chat/completions' }],
  ['the path of another wire', '/v1/messages', BODY, AUTH, { status: 404, code: 'not_found', says: 'POST /v1/chat/completions' }],
  ['POST where GET is due', '/v1/key', BODY, AUTH, { status: 405, code: 'method_not_allowed', headers: { allow: 'GET, HEAD' } }],
  ['POST to a model', '/v1/models/up%2Fm', BODY, AUTH, { status: 405, code: 'method_not_allowed', headers: { allow: 'GET, HEAD' } }],
]

const chatRow = (name: string, fields: object, param: string): (typeof REQUESTS)[number] => [
  name,
  CHAT,
  { ...BODY, ...fields },
  AUTH,
  { status: 400, code: 'invalid_request', param },
]

/** One row for each kind of field; an odd one more would be a test of the room itself. */
const CHAT_FIELDS = [
  chatRow('no messages', { messages: null }, 'messages'),
  chatRow('empty messages', { messages: [] }, 'messages'),
  chatRow('a message that is no object', { messages: ['Hello'] }, 'messages[0]'),
  chatRow('an unknown role', { messages: [{ role: 'wizard', content: 'Hello' }] }, 'messages[0].role'),
  chatRow('a number as content', { messages: [...MESSAGES, { role: 'user', content: 7 }] }, 'messages[1].content'),
  chatRow('n of 0', { n: 0 }, 'n'),
  chatRow('a cap that is half a token', { max_tokens: 1.5 }, 'max_tokens'),
  chatRow('the other cap as text', { max_completion_tokens: '10' }, 'max_completion_tokens'),
  chatRow('stream as text', { stream: 'yes' }, 'stream'),
  chatRow('a temperature beyond all numbers', { temperature: 'hot' }, 'temperature'),
  chatRow('a stop that is a number', { stop: [1] }, 'stop[0]'),
  chatRow('tools that are no list', { tools: {} }, 'tools'),
  chatRow('a seed that is no integer', { seed: 0.5 }, 'seed'),
]

const GONE = { model: 'gone/m', messages: MESSAGES }
const fails =
  (status: number, body: unknown, headers?: Record<string, string>): Script =>
  (_, response) =>
    json(response, status, body, headers)
const failed = (message: string, rest: object = {}) => ({ error: { message, type: 'x', param: null, code: null, ...rest } })
const UP = { type: 'upstream_error' }
const NO_RETRY = { 'x-should-retry': 'false' }

const FAILURES: readonly (readonly [name: string, script: Script, expected: Refusal])[] = [
  ['429', fails(429, failed('slow down')), { ...UP, status: 429, code: 'upstream_rate_limited', headers: { 'retry-after': '1' } }],
  [
    '429, retry-after 7.2',
    fails(429, failed('slow down'), { 'retry-after': '7.2' }),
    { ...UP, status: 429, code: 'upstream_rate_limited', headers: { 'retry-after': '8' } },
  ],
  [
    '429, a long retry-after',
    fails(429, failed('slow down'), { 'retry-after': '61' }),
    { ...UP, status: 429, code: 'upstream_rate_limited', headers: { 'retry-after': '61', ...NO_RETRY } },
  ],
  [
    '429 for our credit',
    fails(429, failed('pay', { code: 'insufficient_quota' })),
    { ...UP, status: 502, code: 'upstream_auth_failed', headers: NO_RETRY },
  ],
  ...[401, 402, 403].map(
    status =>
      [String(status), fails(status, failed('no')), { ...UP, status: 502, code: 'upstream_auth_failed', headers: NO_RETRY }] as const,
  ),
  ['404', fails(404, failed('no such model')), { ...UP, status: 502, code: 'upstream_error', headers: NO_RETRY }],
  ...[408, 409, 500, 503, 529].map(
    status => [String(status), fails(status, failed('no')), { ...UP, status: 502, code: 'upstream_error' }] as const,
  ),
  ['a redirect', fails(302, '', { location: 'http://127.0.0.1:1/' }), { ...UP, status: 502, code: 'upstream_error' }],
  ['400', fails(400, failed('too odd')), { status: 400, code: 'upstream_rejected', says: 'too odd' }],
  [
    '400 with a code',
    fails(400, failed('maximum context length', { code: 'context_length_exceeded', param: 'messages' })),
    { status: 400, code: 'context_length_exceeded', param: 'messages' },
  ],
  ['400 for a field that was not sent', fails(400, failed('no', { param: 'logit_bias' })), { status: 400, code: 'upstream_rejected' }],
  ['413', fails(413, failed('too long')), { status: 413, code: 'upstream_rejected' }],
  [
    '422',
    fails(422, { detail: [{ loc: ['body', 'messages'], msg: 'Field required' }] }),
    { status: 400, code: 'upstream_rejected', param: 'messages' },
  ],
  ['a dropped connection', (_, response) => void response.destroy(), { ...UP, status: 502, code: 'upstream_error' }],
  [
    'HTML',
    (_, response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<html>'),
    { ...UP, status: 502, code: 'upstream_invalid_response' },
  ],
  ['an error under 200', fails(200, failed('no')), { ...UP, status: 502, code: 'upstream_invalid_response' }],
  ['no choices', fails(200, { id: 'chatcmpl-1', choices: [] }), { ...UP, status: 502, code: 'upstream_invalid_response' }],
  ['silence', () => {}, { ...UP, status: 504, code: 'upstream_timeout', headers: NO_RETRY, says: 'first_byte' }],
  [
    'half an answer',
    (_, response) => void response.writeHead(200, { 'content-type': 'application/json' }).write('{"id":'),
    { ...UP, status: 504, code: 'upstream_timeout', headers: NO_RETRY, says: 'idle' },
  ],
]

function config(url: string): string {
  return `${yaml(url, {
    // One try each, and none is spared for what the one before it met.
    provider: 'health: off, timeout: {connect: 1s, first_byte: 1500ms, idle: 300ms, total: 5s}',
    model: 'attempts: 1',
    more: `
  off: {account: acme, plan: p, secret: mgk_disabled, disabled: true}
  old: {account: acme, plan: p, secret: mgk_expired, expires: 2020-01-01}
  few: {account: acme, plan: p, secret: mgk_other_only, models: [up/other]}
limits: {body: 1MiB}
timeout: {request: 400ms, write: 60s}`,
  })
    .replace(
      'models:\n',
      'models:\n  up/other: {price: free, max_output_tokens: 10, default_max_tokens: 10, surfaces: [chat]}\n  gone/m: {price: free, max_output_tokens: 10, default_max_tokens: 10}\n',
    )
    .replace('providers:\n', 'providers:\n  gone: {kind: openai, base_url: "http://127.0.0.1:1/v1", api_key: x, insecure: true}\n')}`
}

t.test('every refusal of a request', async t => {
  const up = await provider(t)
  const running = await gateway(t, config(up.url))
  for (const [name, path, body, headers, expected] of [...REQUESTS, ...CHAT_FIELDS])
    isRefusal(t, await running.post(path, body, headers), expected, name)
  const wrong = await fetch(running.url + CHAT, { headers: AUTH })
  isRefusal(
    t,
    { status: wrong.status, headers: wrong.headers, text: '', json: await wrong.json() },
    { status: 405, code: 'method_not_allowed', headers: { allow: 'POST' } },
    'GET where POST is due',
  )
  isRefusal(t, await running.get('/v1/key', bearer('mgk_unknown')), { ...AUTHENTICATION, code: 'invalid_api_key' }, 'a page without a key')
  isRefusal(
    t,
    await running.get('/v1/models/up%2Fnone'),
    { status: 404, code: 'model_not_found', param: 'model' },
    'a model that is not there',
  )
  t.equal(up.seen.length, 0, 'none of them reached the provider')
  await running.stop()
  t.same(await running.records(), [], 'and none left a record')
})

t.test('every failure of a provider, asked for a stream or not', async t => {
  const up = await provider(t)
  const running = await gateway(t, config(up.url))
  for (const stream of [false, true]) {
    for (const [name, script, expected] of FAILURES) {
      up.script = script
      isRefusal(t, await running.post(CHAT, { ...BODY, stream }), expected, stream ? `${name}, stream` : name)
    }
    isRefusal(t, await running.post(CHAT, { ...GONE, stream }), { ...UP, status: 502, code: 'upstream_unavailable' }, 'refused')
  }
  const { usage, wallet } = (await running.get('/v1/key')).json
  t.match({ usage, wallet }, { usage: { tokens_today: 0, spend_today_rial: 0, held_tokens_today: 0 }, wallet: { held_rial: 0 } }, 'void')
  t.equal(usage.requests_today, 2 * FAILURES.length + 2, 'a forwarded request counts as one')
  const results = (result: string) => metric(running, `model_gateway_upstream_requests_total{provider="up",result="${result}"}`)
  const theirs = FAILURES.filter(([, , { status }]) => status === 400 || status === 413)
  t.equal(await results('upstream_rejected'), 2 * theirs.length, 'whatever code of its own the provider gives: the fault is not its')
  t.equal(await results('other'), undefined)
})

/** What a raw request is answered, read to the end of its connection. */
async function raw(running: RunningGateway, text: string): Promise<Answer> {
  const { hostname, port } = new URL(running.url)
  const socket = connect({ host: hostname, port: Number(port) })
  let received = ''
  socket.on('data', chunk => {
    received += chunk
  })
  socket.on('error', () => {})
  socket.write(text)
  await once(socket, 'close')
  const [head = '', body = ''] = received.split('\r\n\r\n', 2)
  const [line = '', ...fields] = head.split('\r\n')
  const headers = new Headers(fields.map(field => [field.slice(0, field.indexOf(':')), field.slice(field.indexOf(':') + 1).trim()]))
  return { status: Number(line.split(' ')[1]), headers, text: body, json: body === '' ? undefined : JSON.parse(body) }
}

t.test('what is no request, comes too slowly or is too long', async t => {
  const up = await provider(t)
  const running = await gateway(t, config(up.url))
  const post = `POST ${CHAT} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\ncontent-type: application/json\r\n`
  const slow = { status: 408, code: 'request_timeout', headers: { connection: 'close', 'x-should-retry': 'true' } }
  const large = { status: 413, code: 'request_too_large', headers: { connection: 'close' } }
  isRefusal(t, await raw(running, `${post}content-length: 100\r\n\r\n{"model":`), slow, 'half a body')
  isRefusal(t, await raw(running, `${post}content-length: 2000000\r\n\r\n{"model":`), large, 'a length that is too much')
  isRefusal(
    t,
    await raw(running, `${post}transfer-encoding: chunked\r\n\r\n${`10000\r\n${'x'.repeat(65536)}\r\n`.repeat(17)}`),
    large,
    'chunks that are too many',
  )
  isRefusal(t, await raw(running, `${post}x: ${'y'.repeat(20_000)}\r\n\r\n`), { status: 431, code: 'headers_too_large' }, 'a long header')
  isRefusal(t, await raw(running, 'hello\r\n\r\n'), { status: 400, code: 'invalid_request' }, 'no HTTP')
  isRefusal(
    t,
    await raw(running, `${post}connection: close\r\nexpect: wonders\r\ncontent-length: 0\r\n\r\n`),
    { status: 417, code: 'expectation_failed' },
    'an odd expectation',
  )
  t.equal(up.seen.length, 0)
})

t.test('a bad key is told at once, while 20 MiB are still on their way', async t => {
  const up = await provider(t)
  const running = await gateway(t, yaml(up.url))
  const length = 20 * 1024 * 1024
  const upload = request(running.url + CHAT, {
    method: 'POST',
    agent: false,
    headers: { ...bearer('mgk_stranger'), 'content-type': 'application/json', 'content-length': length },
  })
  upload.on('error', () => {})
  let over = false
  let sent = 0
  const sending = (async () => {
    for (; sent < length && !over; sent += 65536) {
      upload.write(Buffer.alloc(65536, 0x20))
      await sleep(10)
    }
  })()
  const [response] = await once(upload, 'response')
  const before = sent
  let text = ''
  for await (const chunk of response) text += chunk
  over = true
  await sending
  upload.destroy()
  t.equal(response.statusCode, 401)
  t.equal(JSON.parse(text).error.code, 'invalid_api_key')
  t.ok(before < length / 2, `after ${before} bytes`)
})

t.test('secrets and prompts are in no log, no metric, no error and not in the ledger’s file', async t => {
  const secrets = {
    upstream: 'sk-canary-UPSTREAM-0815',
    client: 'mgk_canary_CLIENT_0815',
    stranger: 'mgk_canary_STRANGER_0815',
    cookie: 'canary-COOKIE-0815',
  }
  const texts = { prompt: 'canary PROMPT 0815', answer: 'canary ANSWER 0815', said: 'canary SAID 0815' }
  const up = await provider(t)
  const env = { UPSTREAM: secrets.upstream, CLIENT: secrets.client }
  const variable = (name: string): string => `"\${${name}}"`
  const text = yaml(up.url, { provider: 'health: off', model: 'attempts: 1' })
    .replace('sk-upstream-secret', variable('UPSTREAM'))
    .replace(KEY, variable('CLIENT'))
  const running = await gateway(t, text, { env })
  const body = { model: 'up/m', messages: [{ role: 'user', content: texts.prompt }] }
  const headers = { ...bearer(secrets.client), cookie: secrets.cookie, 'x-forwarded-for': '10.1.2.3' }
  const tells = `Incorrect key ${secrets.upstream} of http://inference.internal:8000/v1`
  const errors: Answer[] = []
  for (const stream of [false, true]) {
    up.script = chat({ text: texts.answer })
    const { status } = await running.post(CHAT, { ...body, stream }, headers)
    t.equal(status, 200)
    const bad: Script[] = [
      fails(400, failed(`${tells} ${texts.said}`)),
      fails(401, failed(tells)),
      fails(500, `<html>${tells}${texts.prompt}`),
      fails(200, `${texts.answer} is no JSON`),
      fails(200, failed(tells)),
      (_, response) => void response.destroy(),
    ]
    for (const script of bad) {
      up.script = script
      errors.push(await running.post(CHAT, { ...body, stream }, headers))
    }
    up.script = ({ body }, response) =>
      sse(response, [
        `{"model":"${body.model}","choices":[{"index":0,"delta":{"role":"assistant","content":"${texts.answer}"}}]}`,
        `${texts.answer}{`,
      ])
    await running.post(CHAT, { ...body, stream }, headers)
  }
  errors.push(await running.post(CHAT, { ...body, model: 7 }, headers))
  errors.push(await running.post(CHAT, `{"model":"up/m","${texts.prompt}`, headers))
  errors.push(await running.post(CHAT, body, bearer(secrets.stranger)))
  errors.push(await running.post(`${CHAT}?key=${secrets.stranger}`, body, {}))
  running.process.kill('SIGHUP')
  await running.line('the config was')
  const metrics = (await running.get(`${running.ops}/metrics`)).text
  await running.stop()

  const files = readdirSync(join(running.folder, 'data')).map(name => readFileSync(join(running.folder, 'data', name), 'latin1'))
  const places = {
    log: running.output(),
    metrics,
    ledger: files.join(''),
    errors: errors.map(error => JSON.stringify([...error.headers]) + error.text).join('\n'),
  }
  for (const [place, content] of Object.entries(places)) {
    t.ok(content.length > 1000, `${place} says something`)
    const hidden = place === 'errors' ? secrets : { ...secrets, ...texts }
    for (const [name, canary] of Object.entries(hidden)) t.notOk(content.includes(canary), `${name} is not in ${place}`)
    t.notOk(place === 'errors' && content.includes('inference.internal'), 'nor an address')
  }
  t.ok(places.errors.includes(texts.said), 'what a provider says of the request itself is passed on')
  for (const { headers } of up.seen) {
    t.match(headers, { authorization: `Bearer ${secrets.upstream}`, cookie: undefined, 'x-forwarded-for': undefined })
  }
})
