import { randomBytes } from 'node:crypto'
import { Agent, METHODS, request } from 'node:http'
import { createServer } from 'node:net'
import t from 'tap'
import { AUTH, gateway, KEY, yaml } from '../support/gateway.js'
import { provider } from '../support/provider.js'

/* Clients and providers that mean harm, against the running program. */

const CHAT = '/v1/chat/completions'
const BODY = { model: 'up/m', messages: [{ role: 'user', content: 'Hello' }] }
const SECOND = 'mgk_test_key_b'
const two = (url: string): string => yaml(url, { more: `  b: {account: acme, plan: p, secret: ${SECOND}}` })

t.test('a provider that says more than it was asked never gets an answer to another client', async t => {
  const whole = (content: string): string => {
    const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }]
    const body = JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion', created: 1, model: 'm', choices })
    return `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
  }
  let asked = 0
  const server = createServer(socket => {
    socket.on('error', () => {})
    socket.on('data', data => {
      const name = /said by (\w+)/.exec(String(data))?.[1]
      if (name === undefined) return
      const extra = [whole(`stolen from ${name}`), 'garbage\r\n\r\n', '\0'.repeat(1_000), ''][asked++ % 4]
      socket.write(whole(`for ${name}`) + extra)
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const { port } = server.address() as { port: number }
  const running = await gateway(t, two(`http://127.0.0.1:${port}/v1`))
  const answers = { right: 0, failed: 0 }
  for (let round = 0; round < 50; round++) {
    const clients = [
      ['a', KEY],
      ['b', SECOND],
    ].map(async ([name, key]) => {
      const body = { ...BODY, messages: [{ role: 'user', content: `said by ${name}${round}` }] }
      const { status, json } = await running.post(CHAT, body, { authorization: `Bearer ${key}` })
      if (status === 200) t.equal(json.choices[0].message.content, `for ${name}${round}`)
      else t.equal(status, 502)
      if (status === 200) answers.right++
      else answers.failed++
    })
    await Promise.all(clients)
  }
  t.ok(answers.right >= 50, JSON.stringify(answers))
})

t.test('nothing that a client sends chooses where its request goes, or what else is said there', async t => {
  const up = await provider(t)
  const running = await gateway(t, yaml(up.url))
  const headers = {
    ...AUTH,
    ...{ 'x-forwarded-host': 'evil', 'x-forwarded-for': '10.0.0.1', forwarded: 'host=evil', 'x-original-url': '/evil', cookie: 'a=b' },
    ...{ 'x-http-method-override': 'DELETE', 'x-api-key': 'theirs', 'api-key': 'theirs', 'openai-organization': 'theirs', traceparent: '' },
  }
  const extra = {
    base_url: 'http://evil',
    api_key: 'theirs',
    extra_headers: { a: 'b' },
    extra_body: { a: 1 },
    provider: { order: ['evil'] },
  }
  t.equal((await running.post(CHAT, { ...BODY, ...extra }, headers)).status, 200)
  const [seen] = up.seen
  t.equal(seen?.path, '/v1/chat/completions')
  t.strictSame(Object.keys(seen?.body).sort(), ['max_tokens', 'messages', 'model'])
  const sent = new Set([
    'accept',
    'accept-encoding',
    'authorization',
    'connection',
    'content-length',
    'content-type',
    'host',
    'traceparent',
    'user-agent',
  ])
  t.same(
    Object.keys(seen?.headers ?? {}).filter(name => !sent.has(name)),
    [],
  )
  t.match(seen?.headers, { host: `127.0.0.1:${up.port}`, authorization: 'Bearer sk-upstream-secret' })
  for (const model of ['../m', 'up/../m', 'up/m?a=b', 'up/m#a', 'up/m\r\nhost: evil', 'up/m/../../x', 'http://evil/m', 'UP/M']) {
    t.equal((await running.post(CHAT, { ...BODY, model })).status, 404, model)
    t.equal((await running.get(`/v1/models/${encodeURIComponent(model)}`)).status, 404, model)
  }
  t.equal(up.seen.length, 1)
})

t.test('ten thousand names neither grow the metrics nor forge a line of the log', async t => {
  const up = await provider(t)
  const running = await gateway(t, yaml(up.url))
  const agent = new Agent({ keepAlive: true, maxSockets: 16 })
  t.teardown(() => agent.destroy())
  const said: Record<string, number> = {}
  const ask = (method: string, path: string, headers: Record<string, string>, body = ''): Promise<void> =>
    new Promise((resolve, reject) => {
      const length = body === '' ? {} : { 'content-length': Buffer.byteLength(body) }
      request(running.url + path, { method, agent, headers: { ...headers, ...length } }, response => {
        said[response.statusCode ?? 0] = (said[response.statusCode ?? 0] ?? 0) + 1
        response.resume().on('end', resolve)
      })
        .on('error', reject)
        .end(body)
    })
  const methods = METHODS.filter(method => method !== 'CONNECT' && method !== 'HEAD' && method !== 'TRACE')
  const flood = async (from: number, count: number): Promise<void> => {
    for (let i = from; i < from + count / 4; i++) {
      const name = `n${i}\n{"level":"error"}\r\x1b[31m\u2028\u0085${randomBytes(4).toString('latin1')}`
      const ids = { 'x-request-id': `id-${i}`, traceparent: `00-${i}`, 'user-agent': `agent\t${i}\x85` }
      await Promise.all([
        ask('POST', CHAT, { ...AUTH, ...ids }, JSON.stringify({ ...BODY, model: name })),
        ask('POST', CHAT, { authorization: `Bearer stranger${i}` }, JSON.stringify(BODY)),
        ask(methods[i % methods.length] as string, `/v1/${encodeURIComponent(`${i}\n`)}?${i}`, ids),
        ask('GET', `/v1/models/${encodeURIComponent(name)}`, AUTH),
      ])
    }
  }
  const series = async (): Promise<number> =>
    (await running.get(`${running.ops}/metrics`)).text.split('\n').filter(line => line.startsWith('model_gateway_')).length
  await flood(0, 400)
  const before = await series()
  await flood(100, 9_600)
  t.equal(await series(), before)
  await running.stop()
  t.equal(
    Object.values(said).reduce((all, count) => all + count, 0),
    10_000,
    JSON.stringify(said),
  )
  const lines = running.output().trimEnd().split('\n')
  t.ok(lines.length >= 5_000, `${lines.length} lines`)
  for (const line of lines) if (line.startsWith('{')) JSON.parse(line)
  t.equal(lines.filter(line => line.startsWith('{"level":"error"')).length, 0)
  t.notMatch(running.output(), /(?!\n)[\p{Cc}\p{Zl}\p{Zp}]/u, 'no control character is raw')
})
