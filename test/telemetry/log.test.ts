import t from 'tap'
import { GatewayError } from '../../src/errors.js'
import { type Access, createLog, droppedLine, type Level, type LogOptions, levelOf } from '../../src/telemetry/log.js'
import { createOutput, type Output } from '../../src/telemetry/output.js'
import { cpuMs } from '../support/cpu.js'

const AT = Date.UTC(2026, 0, 2, 3, 4, 5, 678)

/** An output that keeps the lines. */
function kept(): Output & { readonly lines: string[] } {
  const lines: string[] = []
  return { lines, push: line => lines.push(line), flushSync: () => {}, drained: async () => {} }
}

function log(over: Partial<LogOptions> = {}) {
  const output = kept()
  return { lines: output.lines, log: createLog({ format: 'json', level: 'info', color: false, output, now: () => AT, ...over }) }
}

const ACCESS: Access = {
  time: AT,
  level: 'info',
  request_id: 'req_01J00000000000000000000000',
  client_request_id: 'mine',
  trace_id: '0af7651916cd43dd8448eb211c80319c',
  key: 'app-a',
  plan: 'free',
  surface: 'chat',
  model: 'openai/gpt-4o-mini',
  provider: 'openai',
  stream: true,
  status: 200,
  code: null,
  input_tokens: 120,
  output_tokens: 345,
  cached_tokens: 20,
  usage_source: 'provider',
  held_rial: 9007199254740993n,
  cost_rial: 4321n,
  ttft_ms: 120.12345,
  duration_ms: 812.5,
  upstream_ms: 800,
  gateway_ms: 0.4,
  retries: 0,
  ended_by: 'provider',
  upstream_request_id: 'chatcmpl-1',
}

t.test('the line of a request has all its fields, in their order, as JSON', async t => {
  const { lines, log: to } = log()
  to.access(ACCESS)
  t.equal(
    lines[0],
    '{"time":"2026-01-02T03:04:05.678Z","level":"info","request_id":"req_01J00000000000000000000000","client_request_id":"mine",' +
      '"trace_id":"0af7651916cd43dd8448eb211c80319c","key":"app-a","plan":"free","surface":"chat","model":"openai/gpt-4o-mini",' +
      '"provider":"openai","stream":true,"status":200,"code":null,"input_tokens":120,"output_tokens":345,"cached_tokens":20,' +
      '"usage_source":"provider","held_rial":9007199254740993,"cost_rial":4321,"ttft_ms":120.123,"duration_ms":812.5,"upstream_ms":800,' +
      '"gateway_ms":0.4,"retries":0,"ended_by":"provider","upstream_request_id":"chatcmpl-1"}\n',
  )
  t.strictSame(Object.keys(JSON.parse(lines[0] ?? '')), Object.keys(ACCESS))
})

t.test('whatever a client puts into it, it stays one line of JSON', async t => {
  const { lines, log: to } = log()
  const evil = 'a"\n{"level":"error"}\r\u2028\u001b[2J'
  to.access({ ...ACCESS, client_request_id: evil, model: evil, upstream_request_id: evil, code: evil, duration_ms: Number.NaN })
  t.notMatch((lines[0] ?? '').slice(0, -1), /[\p{Cc}\u2028]/u)
  t.match(JSON.parse(lines[0] ?? ''), { client_request_id: evil, model: evil, upstream_request_id: evil, code: evil, duration_ms: null })
  to.access({ ...ACCESS, model: 'm'.repeat(10_000_000) })
  t.ok((lines[1] ?? '').length < 2000, 'a name of megabytes is cut')
})

t.test('times and durations are written as Date and Number would', async t => {
  const { lines, log: to } = log()
  const durations = [0, 0.0004, 0.0006, 0.05, 0.5, 1, 9.9996, 10, 100.25, 1234567.891, 600_000.001, -1.5]
  for (const [i, ms] of durations.entries()) to.access({ ...ACCESS, time: AT + i * 333, duration_ms: ms })
  for (const [i, ms] of durations.entries()) {
    const { time, duration_ms } = JSON.parse(lines[i] ?? '')
    t.equal(time, new Date(AT + i * 333).toISOString())
    t.equal(duration_ms, Math.round(ms * 1000) / 1000)
  }
  for (let i = 0; i < 5000; i++) to.access({ ...ACCESS, model: `model-${i}`, key: 'app-a' })
  t.equal(JSON.parse(lines.at(-1) ?? '').model, 'model-4999', 'ever other names too')
})

t.test('other lines carry a message and fields', async t => {
  const { lines, log: to } = log()
  to.info('listening', { address: '127.0.0.1:8080', count: 3, rial: 12n, ms: Number.NaN })
  to.warn('no luck', { error: new GatewayError('upstream_timeout', 'too late') })
  to.error('a bug', { request_id: 'req_1', error: new TypeError('x is\nnot a function') })
  t.equal(
    lines[0],
    '{"time":"2026-01-02T03:04:05.678Z","level":"info","message":"listening","address":"127.0.0.1:8080","count":3,"rial":12}\n',
  )
  t.equal(lines[1], '{"time":"2026-01-02T03:04:05.678Z","level":"warn","message":"no luck","error":"upstream_timeout: too late"}\n')
  t.match(JSON.parse(lines[2] ?? ''), { request_id: 'req_1', error: 'TypeError: x is\nnot a function', stack: /^ +at .*log\.test/ })
})

t.test("a policy's fields stand apart from the gateway's", async t => {
  const { lines, log: to } = log()
  to.policy('business-hours', 'closed', { level: 'error', open_at: 9, body: { prompt: 'secret' } })
  t.strictSame(JSON.parse(lines[0] ?? ''), {
    time: '2026-01-02T03:04:05.678Z',
    level: 'info',
    message: 'closed',
    policy: 'business-hours',
    fields: { level: 'error', open_at: 9, body: '[object]' },
  })
})

t.test('lines below the level are left out, and the level can change', async t => {
  const { lines, log: to } = log({ level: 'warn' })
  const all = () => {
    for (const level of ['debug', 'info', 'warn', 'error'] as const) to[level](level)
    to.access(ACCESS)
    to.access({ ...ACCESS, level: 'error' })
    to.policy('p', 'words')
  }
  all()
  t.strictSame(
    lines.map(line => JSON.parse(line).level),
    ['warn', 'error', 'error'],
  )
  to.setLevel('debug')
  all()
  t.equal(lines.length, 3 + 7)
})

t.test('the level of a request follows from who is to blame', async t => {
  const rows: [Parameters<typeof levelOf>[0], Level][] = [
    [null, 'info'],
    ['client', 'info'],
    ['policy', 'info'],
    ['upstream', 'warn'],
    ['gateway', 'error'],
  ]
  for (const [origin, level] of rows) t.equal(levelOf(origin), level, `${origin}`)
})

t.test('the pretty form is for eyes: one line per request, what matters first', async t => {
  const { lines, log: to } = log({ format: 'pretty' })
  to.access(ACCESS)
  to.access({
    ...ACCESS,
    status: 429,
    code: 'rate_limit_rpm',
    input_tokens: null,
    cost_rial: null,
    ttft_ms: null,
    duration_ms: 0.44,
    ended_by: null,
  })
  to.access({ ...ACCESS, status: 502, code: 'upstream_error', retries: 2, ended_by: 'upstream_error' })
  const shown = lines.map(line => line.replace(/^\d\d:\d\d:05\.678 /, ''))
  t.strictSame(shown, [
    ' 200 chat openai/gpt-4o-mini app-a 120→345 tokens 4,321 Rial 813 ms (first 120 ms) req_01J00000000000000000000000\n',
    ' 429 chat openai/gpt-4o-mini app-a rate_limit_rpm 0.4 ms req_01J00000000000000000000000\n',
    ' 502 chat openai/gpt-4o-mini app-a upstream_error 120→345 tokens 4,321 Rial 813 ms (first 120 ms) 2 retries ended by upstream_error req_01J00000000000000000000000\n',
  ])
})

t.test('no control character of a client reaches the terminal', async t => {
  const { lines, log: to } = log({ format: 'pretty', level: 'debug' })
  const evil = 'a\n12:00:00.000  200 forged\u001b[2J\u009b\u2028\u202e'
  to.access({ ...ACCESS, model: evil, key: evil, surface: evil, code: evil })
  to.error(evil, { model: evil, error: new Error(evil) })
  to.policy('p', evil, { [evil]: evil })
  for (const line of lines) t.notMatch(line.slice(0, -1).replace(/\n +at .*/g, ''), /[\p{Cc}\u2028\u202e]/u)
  t.match(lines[1], /\n +at .*log\.test/, 'the stack has lines of its own')
})

t.test('colours are the only escape sequences, and only when asked for', async t => {
  const { lines, log: to } = log({ format: 'pretty', color: true })
  to.access(ACCESS)
  to.warn('careful', { file: 'gateway.yaml' })
  const [request = '', other = ''] = lines
  t.ok(request.includes('\u001b[32m 200\u001b[0m'))
  t.ok(other.endsWith('\u001b[33m warn\u001b[0m careful \u001b[36mfile=\u001b[0mgateway.yaml\n'))
})

t.test('lines reach the destination through the output, and dropped ones are told of in the same form', async t => {
  const written: string[] = []
  const output = createOutput(
    {
      write: (text, done) => {
        written.push(text)
        setImmediate(done)
      },
    },
    { pendingMax: 700, dropped: droppedLine('json', false, () => AT) },
  )
  const to = createLog({ format: 'json', level: 'info', color: false, output, now: () => AT })
  to.access(ACCESS)
  to.access(ACCESS)
  to.access(ACCESS)
  await to.drained()
  const lines = written
    .join('')
    .trim()
    .split('\n')
    .map(line => JSON.parse(line))
  t.match(lines, [{ status: 200 }, { level: 'warn', message: /dropped/, count: 2 }])
  t.equal(lines.length, 2)
})

t.test('an access line costs under 3 µs', async t => {
  const to = createLog({ format: 'json', level: 'info', color: false, output: { ...kept(), push: () => {} }, now: () => AT })
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < 20; round++) {
    const lines = Array.from({ length: 5000 }, (_, i) => ({ ...ACCESS, time: AT + i, duration_ms: i / 7, request_id: `req_${i}` }))
    const ms = cpuMs(() => {
      for (const line of lines) to.access(line)
    })
    best = Math.min(best, ms / 5)
  }
  t.comment(`${best.toFixed(2)} µs`)
  t.ok(best < 3, `${best.toFixed(2)} µs`)
})
