import { spawnSync } from 'node:child_process'
import { request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { badServer, tcp } from '../support/bad-server.js'
import { talk } from '../support/client.js'
import { AUTH, gateway, KEY, yaml } from '../support/gateway.js'
import { openStream, provider } from '../support/provider.js'

/* Each time limit by itself, the others being far away; and a stream that talks for an hour meets none of them. */

const CHAT = '/v1/chat/completions'
const ask = (model: string, stream = false) => ({ model, stream, max_tokens: 100, messages: [{ role: 'user', content: 'Hello' }] })
const FAR = { connect: '60s', first_byte: '60s', idle: '60s', total: '60s' }
/** Of silence between two words: a machine that is busy may add as much. */
const IDLE_MS = 2_000
const PAUSE_MS = 600
const HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n'
const EVENTS = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n'
const WORD = `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', choices: [{ index: 0, delta: { role: 'assistant', content: 'Hi ' }, finish_reason: null }] })}\n\n`

t.jobs = 3
t.test('each limit of a provider is kept alone, and is named where it has passed', async t => {
  const server = await badServer(t)
  // Takes connections, and never says hello.
  const silent = await tcp(t, socket => socket.pause())
  const every = (ms: number, text: string, first: string) => {
    server.on(`/${first === HEAD ? 'total' : 'idle'}/`, ({ socket }) => {
      socket.write(first + text)
      let left = 4
      const timer = setInterval(() => {
        // A stream talks four times and is silent then; a whole answer goes on by the byte.
        if (socket.destroyed || (first === EVENTS && left-- === 0)) clearInterval(timer)
        else socket.write(text)
      }, ms)
    })
  }
  every(PAUSE_MS, WORD, EVENTS)
  every(50, ' ', HEAD)
  const url = (name: string) => (name === 'connect' ? `https://127.0.0.1:${silent}` : `http://127.0.0.1:${server.port}/${name}`)
  server.on('/first_byte/', () => {})
  const names = Object.keys(FAR) as (keyof typeof FAR)[]
  const limits = (name: string) =>
    JSON.stringify({ ...FAR, [name]: name === 'idle' ? `${IDLE_MS}ms` : '700ms' })
      .replaceAll('"', '')
      .replaceAll(':', ': ')
  const running = await gateway(
    t,
    `
ledger: {path: data/ledger.db, durability: process}
timeout: {request: 700ms}
providers:
${names.map(name => `  ${name}: {kind: openai, base_url: "${url(name)}", health: off, timeout: ${limits(name)}}`).join('\n')}
models:
${names.map(name => `  ${name}/m: {price: free, max_output_tokens: 100, attempts: 1}`).join('\n')}
plans: {p: {}}
keys: {a: {plan: p, secret: ${KEY}}}
`,
  )
  const expected: Readonly<
    Record<keyof typeof FAR, readonly [stream: boolean, status: number, code: string, message: RegExp, least: number]>
  > = {
    connect: [false, 502, 'upstream_unavailable', /cannot be reached/, 650],
    first_byte: [false, 504, 'upstream_timeout', /timeout\.first_byte of 0\.7 s/, 650],
    // Pauses shorter than the limit add up to more than it, and do no harm.
    idle: [true, 200, 'upstream_timeout', /timeout\.idle of 2 s/, 4 * PAUSE_MS + IDLE_MS - 50],
    total: [false, 504, 'upstream_timeout', /timeout\.total of 0\.7 s/, 650],
  }
  for (const name of names) {
    const [stream, status, code, message, least] = expected[name]
    const from = performance.now()
    const answer = await running.post(CHAT, ask(`${name}/m`, stream))
    const tookMs = performance.now() - from
    const error = stream ? JSON.parse(answer.text.trim().split('\n').at(-1)?.slice('data: '.length) ?? '').error : answer.json.error
    t.match({ status: answer.status, ...error }, { status, code, message }, name)
    t.ok(tookMs >= least && tookMs < 40_000, `${name}: after ${Math.round(tookMs)} ms`)
    if (stream) t.equal(answer.text.split('"Hi "').length - 1, 5, 'all that was said came through')
  }
  const slow = request(running.url + CHAT, { method: 'POST', agent: false, headers: { ...AUTH, 'content-length': 100 } })
  const from = performance.now()
  slow.write('{"model"')
  const status = await new Promise(resolve => slow.on('response', response => resolve(response.resume().statusCode)))
  t.equal(status, 408)
  t.ok(performance.now() - from >= 650)
  slow.destroy()
})

t.test('who waits in line for longer than queue_timeout is told so', async t => {
  const up = await provider(t, () => {})
  const running = await gateway(t, yaml(up.url, { provider: 'max_connections: 1, queue: 5, queue_timeout: 700ms', model: 'attempts: 1' }))
  const first = talk(running.url + CHAT, { body: ask('up/m') })
  while (up.seen.length === 0) await sleep(5)
  const from = performance.now()
  const { status, headers, json } = await running.post(CHAT, ask('up/m'))
  t.match({ status, error: json.error }, { status: 503, error: { code: 'overloaded', message: /none of 1 requests ended within 0\.7 s/ } })
  t.equal(headers.get('retry-after'), '1')
  t.ok(performance.now() - from >= 650)
  t.equal(up.seen.length, 1)
  first.abort()
})

/** The program's clock, and all of its timers, go so many times as fast. */
const FASTER = 300
// What faketime preloads, and not faketime itself: that would stand between the program and its signals.
const library = spawnSync('faketime', ['-f', '+0', 'printenv', 'LD_PRELOAD'], { encoding: 'utf8' }).stdout?.trim() ?? ''

t.test('a stream that talks for an hour is not cut', { skip: library === '' ? 'faketime is not installed' : false }, async t => {
  const minute = 60_000 / FASTER
  const up = await provider(t, async (seen, response) => {
    const stream = openStream(seen, response)
    for (let said = 0; said < 64 && !response.destroyed; said++) {
      stream.say(`${said} `)
      await sleep(minute)
    }
    stream.finish({ prompt_tokens: 9, completion_tokens: 64, total_tokens: 73 })
  })
  const timeout = 'timeout: {connect: 60m, first_byte: 60m, idle: 60m, total: 15m}'
  const running = await gateway(t, yaml(up.url, { provider: timeout, plan: '{requests_per_minute: 10, tokens_per_minute: 100000}' }), {
    env: { LD_PRELOAD: library, FAKETIME: `+0 x${FASTER}` },
  })
  // Ten seconds for a header are a thirtieth of one here: on a busy machine that can be missed.
  let talking = talk(running.url + CHAT, { body: ask('up/m', true) })
  for (let tries = 0; (await talking.head.catch(() => null))?.statusCode !== 200 && tries < 10; tries++)
    talking = talk(running.url + CHAT, { body: ask('up/m', true) })
  t.equal(await talking.ended, 'whole')
  const told = [...talking.text().matchAll(/"content":"(\d+) "/g)].map(([, word]) => Number(word))
  t.strictSame(
    told,
    Array.from({ length: 64 }, (_, i) => i),
  )
  t.match(talking.text(), /\n\n: ping\n\n/, 'between two words a comment says that it lives')
  t.match(talking.text(), /data: \[DONE\]\n\n$/)
  t.equal(await running.stop(), 0)
  const [record] = (await running.records()).filter(({ state }) => state === 'settled')
  t.match(record, { ended_by: 'provider', input_tokens: 9, output_tokens: 64 })
  const minutes = (record?.duration_ms ?? 0) / 60_000
  t.ok(minutes >= 60, `${minutes.toFixed(1)} minutes, of a timeout.total of 15`)
})
