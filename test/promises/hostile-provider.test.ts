import { EventEmitter, once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { badServer, tcp } from '../support/bad-server.js'
import { gateway, KEY, yaml } from '../support/gateway.js'

/* A provider that does whatever it can on its connections, while two keys ask for different things. None may ever get what is the other's. */

const CHAT = '/v1/chat/completions'
const SECOND = 'mgk_test_key_b'
const DISTRUSTED = 'a provider wrote what nobody had asked for: for a minute, each of its requests has a connection of its own'
const MIB = 1024 * 1024

const whole = (content: string): string => {
  const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }]
  const body = JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion', created: 1, model: 'm', choices })
  return `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
}
const chunk = (content: string, finish: string | null): string =>
  `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta: { role: 'assistant', content }, finish_reason: finish }] })}\n\n`
const events = (text: string): string =>
  `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: ${text.length}\r\n\r\n${text}`
const BOMB = gzipSync(Buffer.alloc(100 * MIB))

/** Tells, by name, of what was written late. */
const later = new EventEmitter()

/** What it does with a request, by name: it writes what `name` may have, and more. */
const ACTS: Readonly<Record<string, (socket: Socket, name: string) => unknown>> = {
  'as it should': (socket, name) => socket.write(whole(`for ${name}`)),
  'an endless line': async (socket, name) => {
    socket.write(`HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: for ${name}`)
    const piece = 'x'.repeat(MIB)
    for (let i = 0; i < 64 && !socket.destroyed; i++)
      if (!socket.write(piece)) await new Promise(resolve => socket.once('drain', resolve).once('close', resolve))
  },
  'a bomb': socket => {
    socket.write(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: ${BOMB.length}\r\n\r\n`)
    socket.write(BOMB)
  },
  '3,000 header fields': (socket, name) =>
    socket.write(
      whole(`for ${name}`).replace('\r\n', `\r\n${Array.from({ length: 3_000 }, (_, i) => `x-${i}: ${'y'.repeat(40)}\r\n`).join('')}`),
    ),
  'an answer behind the answer': (socket, name) => socket.write(whole(`for ${name}`) + whole(`stolen from ${name}`)),
  'an answer behind the answer, later': (socket, name) => {
    socket.write(whole(`for ${name}`))
    setTimeout(() => socket.write(whole(`stolen from ${name}`), () => later.emit(name)), 20)
  },
  'rubbish behind the answer': (socket, name) => socket.write(`${whole(`for ${name}`)}rubbish from ${name}\r\n\r\n`),
  'a part of the answer, and a whole one': (socket, name) =>
    socket.write(whole(`for ${name}`).slice(0, -20) + whole(`stolen from ${name}`)),
  'two lengths': (socket, name) => socket.write(whole(`for ${name}`).replace('\r\n', '\r\ncontent-length: 5\r\n')),
  'a stream, and more events behind its end': (socket, name) =>
    socket.write(events(`${chunk(`for ${name}`, 'stop')}data: [DONE]\n\n${chunk(`stolen from ${name}`, null)}`)),
  'a stream that goes on as another answer': (socket, name) =>
    socket.write(events(`${chunk(`for ${name}`, 'stop')}data: [DONE]\n\n`) + whole(`stolen from ${name}`)),
  nothing: socket => socket.destroy(),
}
const NAMES = Object.keys(ACTS)
const ROUNDS = 4

const providerOf = (act: number, round: number): string => `up${act}x${round}`

/** Its port; each request says what is to be done with it, and by what name it goes. */
async function hostile(t: Test): Promise<{ port: number; connections: () => number }> {
  let connections = 0
  const port = await tcp(t, socket => {
    connections++
    let text = ''
    socket.setEncoding('latin1')
    socket.on('data', data => {
      text += data
      const asked = /<(\d+):(\w+)>/.exec(text)
      if (asked === null) return
      text = ''
      const [, act = '', name = ''] = asked
      void ACTS[NAMES[Number(act)] as string]?.(socket, name)
    })
  })
  return { port, connections: () => connections }
}

t.test('whatever a provider writes, a client gets what was said to it, or an error', async t => {
  const { port, connections } = await hostile(t)
  // A provider for each act and round: one that has written what nobody asked for is not trusted with kept connections for a minute.
  const names = NAMES.flatMap((_, act) => Array.from({ length: ROUNDS }, (_, round) => providerOf(act, round)))
  const providers = names.map(name => `  ${name}: {kind: openai, base_url: "http://127.0.0.1:${port}/v1", health: off}\n`).join('')
  const models = names.map(name => `  ${name}/m: {price: {input: 1, output: 1}, max_output_tokens: 9, attempts: 1}\n`).join('')
  const more = `  b: {account: acme, plan: p, secret: ${SECOND}}`
  const config = yaml(`http://127.0.0.1:${port}/v1`, { more, provider: 'health: off', model: 'attempts: 1' })
  const running = await gateway(t, config.replace('providers:\n', `providers:\n${providers}`).replace('models:\n', `models:\n${models}`))
  const counts: Record<string, { right: number; failed: number }> = {}
  const ask = async (model: string, key: string, name: string, act: number, stream: boolean): Promise<void> => {
    const content = `<${act}:${name}>`
    const written = once(later, name)
    const { status, text } = await running.post(
      CHAT,
      { model, stream, messages: [{ role: 'user', content }] },
      { authorization: `Bearer ${key}` },
    )
    const of = NAMES[act] as string
    const mine = text.includes(`for ${name}`)
    const others = [...text.matchAll(/(?:for|from) (\w+)/g)].filter(([, whose]) => whose !== name)
    t.strictSame(others, [], `${of}, stream ${stream}: nothing of another’s`)
    t.notMatch(text, /stolen|rubbish/, of)
    t.ok(status === 502 || (status === 200 && (mine || stream)), `${of}, stream ${stream}: ${status} ${text.slice(0, 200)}`)
    if (of === 'as it should') t.equal(status === 200 && mine, true, `what comes after something else: ${status} ${text.slice(0, 200)}`)
    // What comes later is there before this key's next request: what comes in the very moment in which it is sent can not be told from an answer.
    if (of.endsWith('later')) await written
    counts[of] ??= { right: 0, failed: 0 }
    counts[of][mine ? 'right' : 'failed']++
  }
  for (let round = 0; round < ROUNDS; round++) {
    for (const [act] of NAMES.entries()) {
      const model = `${providerOf(act, round)}/m`
      // One key gets the hostile answer, the other one that is right; then the other way round, on the connections that are left.
      await Promise.all([
        ask(model, KEY, `a${round}x${act}`, act, round % 2 === 1),
        ask(model, SECOND, `b${round}x${act}`, 0, round % 2 === 0),
      ])
      await Promise.all([ask(model, KEY, `c${round}x${act}`, 0, false), ask(model, SECOND, `d${round}x${act}`, act, round % 2 === 1)])
    }
  }
  t.comment(`${connections()} connections: ${JSON.stringify(counts)}`)
  t.strictSame(Object.keys(counts).sort(), [...NAMES].sort())
  t.equal((await running.post(CHAT, { model: 'up/m', messages: [{ role: 'user', content: '<0:last>' }] })).status, 200)
})

t.test('what a provider says without end before its answer begins is not kept', async t => {
  const comments = `: ${'x'.repeat(1_000)}\n\n`.repeat(1_000)
  const port = await tcp(t, socket => {
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n')
      let left = 256
      const more = (): void => {
        while (left-- > 0) {
          if (socket.write(comments)) continue
          socket.once('drain', more)
          return
        }
        socket.end(`${chunk('at last', 'stop')}data: [DONE]\n\n`)
      }
      more()
    })
  })
  // Of four streams of 256 MB, the heap has room for the half of one.
  const env = { NODE_OPTIONS: '--max-old-space-size=128' }
  const running = await gateway(t, yaml(`http://127.0.0.1:${port}/v1`, { provider: 'health: off', model: 'attempts: 1' }), { env })
  const body = { model: 'up/m', stream: true, messages: [{ role: 'user', content: 'Hello' }] }
  for (const { status, text } of await Promise.all([1, 2, 3, 4].map(() => running.post(CHAT, body)))) {
    t.equal(status, 200)
    t.match(text, /at last/)
  }
})

t.test('two keys in turn, a thousand times, and a provider that always answers twice: nobody gets the other’s', async t => {
  const port = await tcp(t, socket => {
    let text = ''
    socket.setNoDelay(true)
    socket.setEncoding('latin1')
    socket.on('data', data => {
      text += data
      const name = /<(\w+)>/.exec(text)?.[1]
      if (name === undefined) return
      text = ''
      socket.write(whole(`for ${name}`))
      setTimeout(() => socket.write(whole(`for ${name}`)), Math.random() * 3)
    })
  })
  const more = `  b: {account: acme, plan: p, secret: ${SECOND}}`
  const running = await gateway(t, yaml(`http://127.0.0.1:${port}/v1`, { more, provider: 'health: off', model: 'attempts: 1' }))
  const counts = { right: 0, within: 0, across: 0, failed: 0 }
  let asked = 0
  const client = async (key: string, whose: string): Promise<void> => {
    while (asked < 1_000) {
      const name = `${whose}${asked++}`
      const body = { model: 'up/m', messages: [{ role: 'user', content: `<${name}>` }] }
      const { status, json } = await running.post(CHAT, body, { authorization: `Bearer ${key}` })
      if (status !== 200) counts.failed++
      else {
        const [, got = ''] = json.choices[0].message.content.split(' ')
        counts[got === name ? 'right' : got.startsWith(whose) ? 'within' : 'across']++
      }
    }
  }
  await Promise.all([client(KEY, 'a'), client(SECOND, 'b'), client(KEY, 'a'), client(SECOND, 'b')])
  t.comment(`${asked} requests: ${JSON.stringify(counts)}`)
  t.equal(counts.across, 0)
  t.ok(counts.right >= 900, JSON.stringify(counts))
  t.match(await running.line(DISTRUSTED), { level: 'warn', provider: 'up' })
  t.equal(running.lines().filter(line => line.message === DISTRUSTED).length, 1, 'told once')
})

t.test('credentials go to the address of the config alone, wherever a provider points', async t => {
  const heard: string[] = []
  const decoy = await tcp(t, socket => socket.on('data', data => heard.push(String(data))))
  const there = `http://127.0.0.1:${decoy}`
  let status = 0
  let asked = 0
  const server = createServer(socket => {
    socket.on('error', () => {})
    socket.on('data', () => {
      asked++
      const fields = [
        `location: ${there}/v1/chat/completions`,
        `content-location: ${there}/x`,
        `refresh: 0; url=${there}/`,
        `alt-svc: http="127.0.0.1:${decoy}"`,
        `link: <${there}/>; rel=next`,
        `retry-after: 0`,
      ]
      socket.write(`HTTP/1.1 ${status} Elsewhere\r\n${fields.join('\r\n')}\r\ncontent-length: 0\r\n\r\n`)
    })
  })
  server.listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  t.teardown(() => server.close())
  const { port } = server.address() as { port: number }
  const env = { HTTP_PROXY: there, http_proxy: there, HTTPS_PROXY: there, https_proxy: there, ALL_PROXY: there, NO_PROXY: '', no_proxy: '' }
  const text = yaml(`http://127.0.0.1:${port}/v1`, { provider: 'health: off', model: 'attempts: 1' })
  const running = await gateway(t, text, { env })
  for (const redirect of [300, 301, 302, 303, 305, 307, 308]) {
    for (const stream of [false, true]) {
      status = redirect
      const body = { model: 'up/m', stream, messages: [{ role: 'user', content: 'Hello' }] }
      const answer = await running.post(CHAT, body)
      t.equal(answer.status, 502, `${redirect}`)
      t.equal(answer.headers.get('location'), null)
      t.notOk(answer.text.includes(String(decoy)), 'nor does the client hear of it')
    }
  }
  t.equal(asked, 14)
  t.strictSame(heard, [], 'nobody else was spoken to')
})

/** Deeper than anything that goes down level by level can follow. */
const deep = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels)
const PAD = 'x'.repeat(200_000)
const USAGE = '"prompt_tokens":1,"completion_tokens":2,"total_tokens":3'
const http = (status: string, body: string, more = 0): string =>
  `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${body.length + more}\r\n\r\n${body}`
const said = (content: string, usage: string): string =>
  http(
    '200 OK',
    `{"id":"chatcmpl-1","choices":[{"index":0,"message":{"role":"assistant","content":"${content}"},"finish_reason":"stop"}],"usage":{${USAGE},"x":${usage}}}`,
  )
const failure = (levels: number, pad = ''): string => http('200 OK', `{"error":{"code":500,"message":${deep(levels)}},"pad":"${pad}"}`)
const event = (levels: number): string => `data: {"error":{"message":${deep(levels)}}}\n\n`

t.test('however deep a provider nests what it says, its request ends, and nothing else', async t => {
  const rows: [name: string, written: string, stream: boolean, status: number, code: string | null][] = [
    ['a refusal', http('422 No', `{"detail":${deep(30_000)}}`), false, 400, 'upstream_rejected'],
    ['a refusal that is never whole', http('422 No', `{"detail":${deep(30_000)}}`, 10), false, 400, 'upstream_rejected'],
    ['an error under 200', failure(30_000), false, 502, 'upstream_error'],
    ...[3_000, 8_000, 40_000].map((n): [string, string, boolean, number, string] => {
      return [`a large error under 200, ${n} levels`, failure(n, PAD), false, 502, 'upstream_error']
    }),
    ...[3_000, 7_000, 12_000, 40_000].map((n): [string, string, boolean, number, null] => {
      return [`a large answer whose usage has ${n} levels`, said(PAD, deep(n)), false, 200, null]
    }),
    ['an answer whose usage is deep', said('Hi', deep(30_000)), false, 200, null],
    ['the first event of a stream', events(event(30_000)), true, 502, 'upstream_invalid_response'],
    ['a later event', events(chunk('Hi', null) + event(30_000)), true, 200, 'upstream_error'],
    ['a chunk', events(chunk('Hi', null).replace('"created"', `"x":${deep(30_000)},"created"`)), true, 200, 'upstream_error'],
  ]
  const server = await badServer(t)
  server.on('/', ({ socket, body }) => socket.write((rows[Number(body.messages[0].content)] as (typeof rows)[0])[1]))
  const provider = 'health: off, timeout: {connect: 10s, first_byte: 10s, idle: 1s, total: 20s}'
  const running = await gateway(t, yaml(`http://127.0.0.1:${server.port}/v1`, { provider, model: 'attempts: 1' }))
  for (const [i, [name, , stream, status, code]] of rows.entries()) {
    const answer = await running.post(CHAT, { model: 'up/m', stream, messages: [{ role: 'user', content: String(i) }] })
    const error = /"code":"(\w+)"/.exec(answer.text)?.[1] ?? null
    t.strictSame([answer.status, error], [status, code], `${name}: ${answer.text.slice(0, 200)}`)
  }
  t.equal((await running.get('/v1/key')).json.wallet.held_rial, 0, 'no hold is left open')
  t.equal(await running.stop(), 0)
  const settled = (await running.records()).filter(({ state }) => state === 'settled')
  t.strictSame([...new Set(settled.map(({ usage_source, output_tokens }) => `${usage_source} ${output_tokens}`))], ['provider 2'])
  t.equal(settled.length, rows.filter(([, , stream, status]) => !stream && status === 200).length)
})
