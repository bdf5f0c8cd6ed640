import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { talk } from '../support/client.js'
import { gateway, KEY, metric } from '../support/gateway.js'
import { FIXTURES } from '../support/paths.js'
import { chat, gate, json, provider, type Script, type ScriptedProvider } from '../support/provider.js'

/* One model in several places, as a client, an operator and the ledger see it: against a running gateway. */

const BODY = { model: 'a/m', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 10 }
const PATH = '/v1/chat/completions'
const fails =
  (status: number, headers: Record<string, string> = {}): Script =>
  (_seen, response) =>
    json(response, status, { error: { message: 'No.' } }, headers)
const breaks: Script = (_seen, response) => void response.socket?.resetAndDestroy()

interface Options {
  /** Further settings of each provider, and of the model. */
  readonly provider?: string
  readonly model?: string
  readonly targets?: string
}

/** A provider over TLS. `script` says what it does with the requests that come over a connection which had carried one before. */
async function secured(t: Test, script: (socket: Socket, below: Socket) => void) {
  const used = new WeakSet<object>()
  const below = new Map<number | undefined, Socket>()
  const requests: boolean[] = []
  const pem = (name: string): string => readFileSync(`${FIXTURES}tls/localhost.${name}`, 'utf8')
  const server = createServer({ cert: pem('crt'), key: pem('key') }, async (request, response) => {
    let text = ''
    for await (const chunk of request.setEncoding('utf8')) text += chunk
    requests.push(used.has(request.socket))
    if (used.has(request.socket)) return script(request.socket, below.get(request.socket.remotePort) as Socket)
    used.add(request.socket)
    const seen = { path: '', headers: {}, text, body: JSON.parse(text), closed: Promise.resolve() }
    await chat()(seen, response, request)
  })
  server.on('connection', (socket: Socket) => below.set(socket.remotePort, socket))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  const url = `https://localhost:${(server.address() as AddressInfo).port}/v1`
  const provider = `{kind: openai, base_url: "${url}", ca: "${FIXTURES}tls/localhost.crt"}`
  const running = await gateway(
    t,
    `
ledger: {path: data/ledger.db, durability: process}
providers: {a: ${provider}}
models: {a/m: {price: {input: 1000000, output: 1000000}, max_output_tokens: 100, attempts: 1}}
plans: {p: {}}
keys: {k: {plan: p, secret: ${KEY}}}
`,
  )
  return { requests, running, ask: (stream: boolean) => running.post(PATH, { ...BODY, stream }) }
}

async function two(t: Test, scripts: readonly [Script, Script], { provider: more = '', model = '', targets }: Options = {}) {
  const there = { a: await provider(t, scripts[0]), b: await provider(t, scripts[1]) }
  const settings = (url: string) => `{kind: openai, base_url: "${url}", api_key: sk-x, timeout: {first_byte: 60s}${more}}`
  const running = await gateway(
    t,
    `
ledger: {path: data/ledger.db, durability: process}
providers:
  a: ${settings(there.a.url)}
  b: ${settings(there.b.url)}
models:
  a/m:
    price: {input: 1000000, output: 1000000}
    max_output_tokens: 100
    targets: ${targets ?? '[{provider: a}, {provider: b, upstream: other, weight: 0, price: {input: 3000000, output: 5000000}}]'}
    ${model}
plans: {p: {}}
accounts: {acme: {opening_balance_rial: 1000000}}
keys: {k: {account: acme, plan: p, secret: ${KEY}}}
`,
  )
  return { there, running, ask: (body: object = BODY) => running.post(PATH, body) }
}

const attemptsOf = (record: { readonly attempts: string | null } | undefined): string[] =>
  (JSON.parse(record?.attempts ?? '[]') as { target: string; result: string }[]).map(({ target, result }) => `${target} ${result}`)
const seen = ({ a, b }: { readonly a: ScriptedProvider; readonly b: ScriptedProvider }): number[] => [a.seen.length, b.seen.length]

t.jobs = 4
t.test('the hold is for the dearest target, the charge for the one that answered, and every try is on the record', async t => {
  const { there, running, ask } = await two(t, [fails(500), chat()])
  const { status, json: answer } = await ask()
  t.equal(status, 200)
  t.equal(answer.model, 'a/m', 'the name that the client gave')
  t.equal(there.b.seen[0]?.body.model, 'other', "the target's own name for it")
  t.equal((await ask({ ...BODY, stream: true })).status, 200)
  t.equal(await metric(running, 'model_gateway_upstream_retries_total{provider="b"}'), 2)
  t.equal(await running.stop(), 0)
  const records = await running.records()
  t.equal(records.length, 2)
  for (const record of records) {
    t.strictSame(attemptsOf(record), ['a/m upstream_error', 'b/other answered'])
    t.match(record, { state: 'settled', model: 'a/m', provider: 'b', cost_rial: 9n * 3n + 2n * 5n })
    t.strictSame(JSON.parse(record.price), { input: 3_000_000, cached_input: 3_000_000, output: 5_000_000, request: 0 }, 'its price')
    t.ok(record.held_rial > 10n * 5n)
  }
})

t.test('nothing is sent a second time where the first may have run, unless that is allowed', async t => {
  const careful = await two(t, [breaks, chat()])
  const { status, json: answer } = await careful.ask()
  t.strictSame([status, answer.error.code], [502, 'upstream_error'])
  t.strictSame(seen(careful.there), [1, 0])
  const bold = await two(t, [breaks, chat()], { provider: ', retry_unknown: true' })
  t.equal((await bold.ask()).status, 200)
  t.strictSame(seen(bold.there), [1, 1])
})

t.test('the same target is asked again where its trouble may pass, when it says, and no more often than attempts', async t => {
  const times: number[] = []
  const busy: Script = (...given) => {
    times.push(performance.now())
    return (times.length === 1 ? fails(429, { 'retry-after': '1' }) : chat())(...given)
  }
  const alone = { targets: '[{provider: a}]' }
  const passing = await two(t, [busy, chat()], alone)
  t.equal((await passing.ask()).status, 200)
  t.ok((times[1] as number) - (times[0] as number) >= 1000, 'after its retry-after')
  const down = await two(t, [fails(503), chat()], { ...alone, model: 'attempts: 2' })
  t.equal((await down.ask()).status, 502)
  t.strictSame(seen(down.there), [2, 0])
})

t.test('a target that fails again and again is left alone, told to the operator, and tried by a request when its time is over', async t => {
  const { there, running, ask } = await two(t, [fails(503), chat()], {
    provider: ', health: {failures: 3, ejection: 4s}',
    targets: '[{provider: a}]',
    model: 'attempts: 1',
  })
  t.equal(await metric(running, 'model_gateway_upstream_up{provider="a"}'), 1)
  for (let i = 0; i < 3; i++) t.equal((await ask()).status, 502)
  const refused = await ask()
  t.strictSame([refused.status, refused.json.error.code], [503, 'overloaded'])
  const after = Number(refused.headers.get('retry-after'))
  t.ok(after >= 1 && after <= 4, `again in ${after} s`)
  t.equal(there.a.seen.length, 3)
  t.equal(await metric(running, 'model_gateway_upstream_up{provider="a"}'), 0)
  const ready = await running.get(`${running.ops}/readyz?verbose`)
  t.equal(ready.status, 200, 'it is no reason to be unready')
  t.match(ready.text, /^\[\+\] target a\/m: 3 failures in a row, the last: upstream_error; left alone for \d s$/m)
  t.match(await running.line('a target is left alone'), {
    level: 'warn',
    target: 'a/m',
    provider: 'a',
    reason: '3 failures in a row, the last: upstream_error',
    ms: 4000,
  })
  await sleep(4050)
  there.a.script = chat()
  t.equal((await ask()).status, 200)
  t.equal(await metric(running, 'model_gateway_upstream_up{provider="a"}'), 1)
  t.match(await running.line('a target takes requests again'), { level: 'info', target: 'a/m' })
  t.equal(await running.stop(), 0)
  const records = await running.records()
  t.strictSame(
    records.map(({ state, cost_rial }) => [state, cost_rial === 0n]),
    [...Array.from({ length: 4 }, () => ['voided', true]), ['settled', false]],
  )
})

t.test('a provider dies and comes back: the log, the metrics and /readyz?verbose say which, why, and what became of it', async t => {
  const { there, running, ask } = await two(t, [chat(), chat()], { provider: ', health: {failures: 2, ejection: 1s}' })
  const up = async () => [
    await metric(running, 'model_gateway_upstream_up{provider="a"}'),
    await metric(running, 'model_gateway_upstream_up{provider="b"}'),
  ]
  const ready = async () => (await running.get(`${running.ops}/readyz?verbose`)).text.split('\n').filter(line => line.includes('target'))
  t.equal((await ask()).status, 200)
  t.strictSame([await up(), await ready()], [[1, 1], ['[+] target a/m']])
  await there.a.close()
  for (let i = 0; i < 2; i++) t.equal((await ask()).status, 200, 'the other one answers')
  const line = await running.line('a target is left alone')
  t.match(line, { level: 'warn', target: 'a/m', reason: '2 failures in a row, the last: upstream_unavailable, ECONNREFUSED', ms: 1000 })
  t.strictSame(await up(), [0, 1])
  t.match(await ready(), [
    /^\[\+\] target a\/m: 2 failures in a row, the last: upstream_unavailable, ECONNREFUSED; (left alone for 1 s|the next)/,
    '[+] target b/other',
  ])
  t.equal(await metric(running, 'model_gateway_upstream_requests_total{provider="a",result="upstream_unavailable"}'), 2)
  await new Promise<void>(resolve => there.a.server.listen(there.a.port, '127.0.0.1', resolve))
  await sleep(1050)
  t.equal((await ask()).status, 200)
  t.match(await running.line('a target takes requests again'), { level: 'info', target: 'a/m' })
  t.strictSame(
    [await up(), await ready()],
    [
      [1, 1],
      ['[+] target a/m', '[+] target b/other'],
    ],
  )
})

t.test('targets take their share by weight', async t => {
  const { there, ask } = await two(t, [chat(), chat()], { targets: '[{provider: a, weight: 3}, {provider: b, weight: 1}]' })
  await Promise.all(Array.from({ length: 80 }, () => ask()))
  const [a = 0, b = 0] = seen(there)
  t.equal(a + b, 80)
  // Five standard deviations around 60.
  t.ok(a > 40 && a < 80, `${a} and ${b}`)
})

t.test('when no target of its own answers, a model falls back to another, at that one’s price', async t => {
  const { there, running, ask } = await two(t, [fails(500), chat()], {
    targets: '[{provider: a}]',
    model: 'fallback: [b/n]\n  b/n: {price: {input: 7000000, output: 1000000}, max_output_tokens: 100}',
  })
  const { status, json: answer } = await ask()
  t.strictSame([status, answer.model, seen(there)], [200, 'b/n', [1, 1]], 'it is called by its own name')
  t.equal(await running.stop(), 0)
  const [record] = await running.records()
  t.match(record, { model: 'a/m', provider: 'b', cost_rial: 9n * 7n + 2n })
  t.strictSame(attemptsOf(record), ['a/m upstream_error', 'b/n answered'])
})

t.test('a target that can not take what is asked is passed over, however large the body: the others answer, or say why not', async t => {
  const whole = await provider(t)
  const other = await provider(t)
  const running = await gateway(
    t,
    `
ledger: {path: data/ledger.db, durability: process}
providers:
  a: {kind: openai, base_url: "${whole.url}", api_key: sk-a, insecure: true, health: off}
  c: {kind: anthropic, base_url: "${other.url}", api_key: sk-c, insecure: true, health: off}
models:
  a/m: {price: free, max_output_tokens: 100, fallback: [c/m], attempts: 1}
  c/m: {price: free, max_output_tokens: 100}
  c/first: {price: free, max_output_tokens: 100, fallback: [a/m], attempts: 1}
  c/alone: {price: free, max_output_tokens: 100, fallback: [c/m]}
plans: {p: {}}
keys: {k: {plan: p, secret: ${KEY}}}
`,
  )
  const audio = (model: string, bytes: number) => {
    const content = [{ type: 'input_audio', input_audio: { data: 'A'.repeat(bytes), format: 'wav' } }]
    return running.post(PATH, { model, messages: [{ role: 'user', content }], max_tokens: 10 })
  }
  const rows: [model: string, script: Script, status: number, code: string | undefined][] = [
    ['a/m', chat(), 200, undefined],
    ['a/m', fails(500), 502, 'upstream_error'],
    ['c/first', chat(), 200, undefined],
    ['c/first', fails(429), 429, 'upstream_rate_limited'],
    ['c/alone', chat(), 400, 'invalid_request'],
  ]
  for (const bytes of [1_000, 200_000]) {
    for (const [model, script, status, code] of rows) {
      whole.script = script
      const answer = await audio(model, bytes)
      t.strictSame([answer.status, answer.json.error?.code], [status, code], `${model}, ${bytes} bytes: ${answer.text}`)
    }
  }
  t.equal(other.seen.length, 0, 'who can not take it is never asked')
})

t.test('all targets at their rate limit: 429 with the soonest moment, at once, and nobody is asked before', async t => {
  const limited = (after: string) => fails(429, { 'retry-after': after })
  const { there, running, ask } = await two(t, [limited('50'), limited('30')])
  for (let i = 0; i < 3; i++) {
    const from = performance.now()
    const { status, headers, json: answer } = await ask()
    t.strictSame([status, answer.error.code], [429, 'upstream_rate_limited'])
    const after = Number(headers.get('retry-after'))
    t.ok(after > 20 && after <= 30, `again in ${after} s`)
    t.ok(performance.now() - from < 15_000, 'at once')
  }
  t.strictSame(seen(there), [1, 1])
  t.match((await running.get(`${running.ops}/readyz?verbose`)).text, /target a\/m: at its rate limit; left alone for \d+ s/)
})

t.test('who waits for a connection and leaves is never sent, and costs nothing; who finds the queue full is refused', async t => {
  const held = gate()
  const { there, running, ask } = await two(t, [held.script, chat()], {
    targets: '[{provider: a}]',
    provider: ', max_connections: 1, queue: 1, queue_timeout: 10s',
  })
  const first = ask()
  while (there.a.seen.length === 0) await sleep(5)
  const waiting = talk(running.url + PATH, { body: BODY })
  let third = await ask({ ...BODY, user: 'x' })
  while (third.status !== 503) third = await ask()
  t.match(third.json.error, { code: 'overloaded', message: /1 requests are under way and 1 wait/ })
  waiting.abort()
  while ((await metric(running, 'model_gateway_holds_open')) !== 1) await sleep(5)
  held.open()
  t.equal((await first).status, 200)
  t.equal((await ask()).status, 200, 'there is room again')
  t.equal(there.a.seen.length, 2)
  t.equal(await running.stop(), 0)
  const left = (await running.records()).filter(record => record.code === 'client_closed')
  t.strictSame(
    left.map(({ state, cost_rial, ended_by }) => [state, cost_rial, ended_by]),
    [['voided', 0n, 'client']],
  )
})

t.test('a connection that was kept and is dead costs no request, a new one that dies does', async t => {
  const used = new WeakSet<object>()
  const script: Script = (seen, response, request) => {
    if (used.has(request.socket)) request.socket.resetAndDestroy()
    else {
      used.add(request.socket)
      chat()(seen, response, request)
    }
  }
  const { there, running, ask } = await two(t, [script, chat()], { targets: '[{provider: a}]', model: 'attempts: 1' })
  for (let i = 0; i < 20; i++) t.equal((await ask({ ...BODY, stream: i % 4 > 1 })).status, 200)
  t.equal(there.a.seen.length, 20 + 10, 'every other request meets a dead connection, and goes once more over a new one')
  there.a.script = breaks
  t.equal((await ask()).json.error.code, 'upstream_error')
  t.equal(there.a.seen.length, 31)
  t.equal(await running.stop(), 0)
  t.equal((await running.records()).filter(({ state }) => state === 'settled').length, 20)
})

const DEATHS: Readonly<Record<string, (socket: Socket, below: Socket) => void>> = {
  'closed with a goodbye': socket => socket.end(),
  'closed without one': socket => socket.destroy(),
  reset: (_socket, below) => below.resetAndDestroy(),
}

t.test('the same over TLS, however it dies; but not once a byte of an answer has come', async t => {
  for (const [death, script] of Object.entries(DEATHS)) {
    const { requests, running, ask } = await secured(t, script)
    for (let i = 0; i < 8; i++) t.equal((await ask(i % 4 > 1)).status, 200, death)
    const pair = [false, true, false]
    t.strictSame(
      requests,
      [...pair, ...pair, ...pair, ...pair],
      `${death}: every other request meets a dead connection, and goes over a new one`,
    )
    t.equal(await running.stop(), 0)
  }
  const { requests, running, ask } = await secured(t, socket => socket.end('HTTP/1.1 20'))
  t.equal((await ask(false)).status, 200)
  t.match((await ask(false)).json.error, { code: 'upstream_error' })
  t.strictSame(requests, [false, true], 'it was not sent again')
  t.equal(await running.stop(), 0)
})
