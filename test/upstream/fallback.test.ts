import { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { Chain } from '../../src/chain.js'
import { systemClock } from '../../src/clock.js'
import type { GatewayError } from '../../src/errors.js'
import { Exchange } from '../../src/exchange.js'
import type { JsonObject } from '../../src/json.js'
import type { Policy } from '../../src/policy.js'
import type { Runtime, Services } from '../../src/runtime.js'
import { readQuestion, understand } from '../../src/understand.js'
import { Drains } from '../../src/upstream/drains.js'
import { Abandoned, type Forwarded, forward } from '../../src/upstream/fallback.js'
import { Health } from '../../src/upstream/health.js'
import { loadProviders } from '../../src/upstream/kinds.js'
import { Upstreams } from '../../src/upstream/upstream.js'
import { heard } from '../support/attempts.js'
import { chat, gate, json, provider, type Script, sse } from '../support/provider.js'
import { asking, endpointOf } from '../support/questions.js'

const CHAT = endpointOf('chat')
const START =
  '{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"x","choices":[{"index":0,"delta":{"role":"assistant"}}]}'
const fails =
  (status: number, body: unknown = {}): Script =>
  (_seen, response) =>
    json(response, status, body)
const breaks: Script = (_seen, response) => void response.socket?.resetAndDestroy()
const hangs: Script = () => {}

/** Three providers: a model on the first falls back to the other two. `more`: further settings of each; `patience`: with those that hang. */
async function three(t: Test, scripts: readonly [Script, Script, Script], { more = '', policies = [] as Policy[], patience = '60s' } = {}) {
  const there = [await provider(t, scripts[0]), await provider(t, scripts[1]), await provider(t, scripts[2])]
  const settings = (url: string, script?: Script) =>
    `{kind: openai, base_url: "${url}", api_key: sk-x, insecure: true, timeout: {first_byte: ${script === hangs ? patience : '60s'}}${more}}`
  const { config, runtime, key } = asking(
    t,
    `
providers:
${there.map(({ url }, index) => `  p${index}: ${settings(url, scripts[index])}`).join('\n')}
models:
  p0/m: {price: free, default_max_tokens: 100, fallback: [p1/m, p2/m]}
  p1/m: {price: free, default_max_tokens: 10, max_output_tokens: 20}
  p2/m: {price: free, default_max_tokens: 100}
plans: {p: {}}
keys: {a: {plan: p, secret: mgk_test_key_a}}
`,
  )
  const upstreams = await Upstreams.start(config, await loadProviders(), () => {})
  t.teardown(() => upstreams.close())
  const chain = new Chain(policies, () => {})
  const whole = { ...runtime, upstreams, chain } as Runtime
  const services = { clock: systemClock, drains: new Drains(), health: new Health(), random: () => 0 } as unknown as Services
  const begin = (fields: JsonObject = {}) => {
    const bytes = Buffer.from(JSON.stringify({ model: 'p0/m', messages: [{ role: 'user', content: 'Hello' }], ...fields }))
    const question = understand(readQuestion(bytes, CHAT), CHAT, whole, key())
    const request = { method: 'POST', headers: { authorization: 'Bearer mgk_test_key_a', cookie: 'a=b', 'x-forwarded-for': '10.0.0.1' } }
    const response = new EventEmitter() as unknown as ServerResponse
    const exchange = new Exchange(
      {
        id: 'req_01K9ZB3J6Q0V8N7T5R4W2Y1XCD',
        at: 1_700_000_000_000,
        since: 0,
        surface: 'chat',
        path: '/v1/chat/completions',
        clientRequestId: null,
        traceId: 'a'.repeat(32),
        traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`,
        tracestate: undefined,
      },
      request as unknown as IncomingMessage,
      response,
    )
    const forwarded = forward(exchange, CHAT, question, whole, services)
    forwarded.catch(() => {})
    return { exchange, forwarded, leave: () => response.emit('close') }
  }
  return { there, begin }
}

const results = ({ tried }: Exchange) => tried.map(({ target, result }) => `${target} ${result}`)

t.test('targets are tried in order until one has something to tell', async t => {
  const rows: [name: string, scripts: [Script, Script, Script], stream: boolean, results: string[]][] = [
    ['the first answers', [chat(), hangs, hangs], false, ['p0/m answered']],
    ['statuses', [fails(503), fails(429), chat()], false, ['p0/m upstream_error', 'p1/m upstream_rate_limited', 'p2/m answered']],
    ['our key, our model', [fails(401), fails(404), chat()], true, ['p0/m upstream_auth_failed', 'p1/m upstream_error', 'p2/m answered']],
    [
      'a connection that breaks, a provider that is silent',
      [breaks, hangs, chat()],
      true,
      ['p0/m upstream_error', 'p1/m upstream_timeout', 'p2/m answered'],
    ],
    [
      'no answer',
      [fails(200, { choices: [] }), (_s, r) => sse(r, ['[DONE]']), chat()],
      true,
      ['p0/m upstream_invalid_response', 'p1/m upstream_invalid_response', 'p2/m answered'],
    ],
  ]
  for (const [name, scripts, stream, expected] of rows) {
    await t.test(name, async t => {
      const { begin } = await three(t, scripts, { more: ', retry_unknown: true', patience: '300ms' })
      const { exchange, forwarded } = begin({ stream })
      const { answered, target, attempt } = await forwarded
      t.strictSame(results(exchange), expected)
      t.equal(`${target.model.id} answered`, expected.at(-1))
      t.match((await heard(answered)).text, target.model.id, 'the answer names the model that gave it')
      t.ok(attempt.sent)
      t.equal(exchange.onGone, null)
    })
  }
})

t.test("the client's own fault is told at once; when all fail, the last one's words count", async t => {
  const fault = await three(t, [fails(400, { error: { message: 'too long', code: 'context_length_exceeded' } }), chat(), chat()])
  const first = fault.begin()
  await t.rejects(first.forwarded, { code: 'context_length_exceeded', status: 400 })
  t.strictSame(results(first.exchange), ['p0/m context_length_exceeded'])
  const failing = await three(t, [fails(500), breaks, (_seen, response) => json(response, 429, {}, { 'retry-after': '7' })], {
    more: ', retry_unknown: true',
  })
  const last = failing.begin()
  await t.rejects(last.forwarded, { code: 'upstream_rate_limited', retryAfter: 7 })
  t.equal(last.exchange.tried.length, 3)
  t.ok(last.exchange.tried.every(({ ms }) => Number.isInteger(ms) && ms >= 0))
})

t.test('what breaks after the first event falls back to nobody', async t => {
  const { there, begin } = await three(t, [
    (_seen, response) =>
      void response
        .writeHead(200, { 'content-type': 'text/event-stream' })
        .write(`data: ${START}\n\n`, () => setTimeout(() => response.destroy(), 20)),
    chat(),
    chat(),
  ])
  const { forwarded } = begin({ stream: true })
  const { error } = await heard((await forwarded).answered)
  t.match(error, { code: 'upstream_error' })
  t.equal(there[1]?.seen.length, 0)
})

t.test('each target gets its own body, its own credentials, and nothing of the client', async t => {
  const policy: Policy = { name: 'x', forward: (_exchange, { id }) => ({ 'x-target': id }) }
  const { there, begin } = await three(t, [fails(500), chat(), hangs], { policies: [policy] })
  await begin({ max_tokens: 50 }).forwarded
  const [first, second] = [there[0]?.seen[0], there[1]?.seen[0]]
  t.strictSame([first?.body.max_tokens, second?.body.max_tokens], [50, 20])
  for (const [index, seen] of [first, second].entries()) {
    t.match(seen?.headers, {
      authorization: 'Bearer sk-x',
      'content-type': 'application/json',
      'accept-encoding': 'identity',
      traceparent: /^00-a{32}-/,
      'x-target': `p${index}/m`,
      'content-length': String(seen?.text.length),
    })
    t.notMatch(JSON.stringify(seen?.headers), /mgk_|cookie|forwarded|10\.0\.0\.1/)
  }
})

t.test('when the client leaves, nobody else is tried, and what had begun is charged', async t => {
  const { there, begin } = await three(t, [hangs, chat(), chat()])
  const { exchange, forwarded, leave } = begin()
  while (there[0]?.seen.length === 0) await new Promise(resolve => setTimeout(resolve, 5))
  leave()
  const error = await forwarded.then(
    () => null,
    (fault: GatewayError) => fault,
  )
  if (!(error instanceof Abandoned)) throw new Error('it is not told what is charged')
  t.equal(error.code, 'client_closed')
  t.equal(error.billable.target.model.id, 'p0/m')
  await there[0]?.seen[0]?.closed
  t.strictSame(results(exchange), ['p0/m client_closed'])
  t.equal(there[1]?.seen.length, 0)
})

t.test('a client that left before anything was sent costs nothing', async t => {
  const { there, begin } = await three(t, [hangs, chat(), chat()])
  const { forwarded, leave } = begin()
  leave()
  const error = await forwarded.catch((fault: GatewayError) => fault)
  t.match(error, { code: 'client_closed' })
  t.notOk(error instanceof Abandoned)
  await new Promise(resolve => setTimeout(resolve, 100))
  t.strictSame(
    there.map(({ seen }) => seen.length),
    [0, 0, 0],
    'and is not sent later',
  )
})

t.test('a provider that is drained is heard to its end', async t => {
  const held = gate()
  const { there, begin } = await three(t, [held.script, hangs, hangs], { more: ', on_disconnect: drain' })
  const { exchange, forwarded, leave } = begin()
  while (there[0]?.seen.length === 0) await new Promise(resolve => setTimeout(resolve, 5))
  leave()
  held.open()
  const { answered }: Forwarded = await forwarded
  t.match((await heard(answered)).text, /Hello there/)
  t.ok(exchange.gone)
})
