import { once } from 'node:events'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { asGatewayError, errorBody } from '../../src/errors.js'
import { checkBodyHeaders, parseBody, readBody } from '../../src/http/body.js'
import { errorFields } from '../../src/http/headers.js'
import { type Listener, listen } from '../../src/http/listener.js'
import { sendContinue, sendJson, sendStreamHead } from '../../src/http/respond.js'
import { Room } from '../../src/http/room.js'
import { isGone } from '../support/garbage.js'

interface Options {
  readonly handle?: (request: IncomingMessage, response: ServerResponse) => void
  readonly bytesMax?: number
  readonly timeoutMs?: number
}

/** Answers with the size of the body, or with the refusal of it. */
async function echo(
  request: IncomingMessage,
  response: ServerResponse,
  { bytesMax = 1_000_000, timeoutMs = 5_000 }: Options,
): Promise<void> {
  try {
    checkBodyHeaders(request, bytesMax)
    sendContinue(request, response)
    const body = parseBody((await readBody(request, bytesMax, timeoutMs, new Room())).joined())
    sendJson(response, 200, 'req_1', {}, JSON.stringify({ size: JSON.stringify(body).length }), 1_000)
  } catch (fault) {
    const error = asGatewayError(fault)
    sendJson(response, error.status, 'req_1', errorFields(error), errorBody(error, 'req_1'), 1_000)
  }
}

async function listening(t: Test, options: Options = {}): Promise<Listener> {
  const listener = await listen({
    address: { host: '127.0.0.1', port: 0 },
    tls: null,
    connectionsMax: 100,
    handle: options.handle ?? ((request, response) => void echo(request, response, options)),
    newId: () => 'req_NEW',
  })
  t.teardown(() => listener.close())
  return listener
}

async function open(listener: Listener): Promise<Socket> {
  const socket = connect(listener.port, '127.0.0.1')
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

/** All that is answered until the connection ends. */
function all(socket: Socket): Promise<string> {
  return new Promise(resolve => {
    let text = ''
    socket.on('data', chunk => (text += chunk)).on('close', () => resolve(text))
  })
}

/** What is answered to these bytes, and what follows until the connection ends. */
async function said(listener: Listener, ...pieces: string[]): Promise<string> {
  const socket = await open(listener)
  const answer = all(socket)
  for (const piece of pieces) {
    socket.write(piece)
    await new Promise(resolve => setTimeout(resolve, 20))
  }
  return answer
}

const POST = 'POST /v1/x HTTP/1.1\r\nhost: a\r\n'

t.jobs = 4
t.test('what never becomes a request is answered in the envelope of all errors', async t => {
  const listener = await listening(t)
  const rows: [name: string, sent: string, status: number, code: string][] = [
    ['no HTTP', 'hello\r\n\r\n', 400, 'invalid_request'],
    ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 400, 'invalid_request'],
    ['two lengths', `${POST}content-length: 1\r\ncontent-length: 2\r\n\r\n`, 400, 'invalid_request'],
    ['length and chunks', `${POST}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n`, 400, 'invalid_request'],
    ['a header that is too large', `${POST}x: ${'x'.repeat(20_000)}\r\n\r\n`, 431, 'headers_too_large'],
    ['a chunk without size', `${POST}transfer-encoding: chunked\r\n\r\nzz\r\n`, 400, 'invalid_request'],
  ]
  for (const [name, sent, status, code] of rows) {
    const answer = await said(listener, sent)
    const [head = '', body = ''] = answer.split('\r\n\r\n')
    t.match(head, new RegExp(`^HTTP/1.1 ${status} `), name)
    t.match(head, /x-request-id: req_NEW\r\nconnection: close/i, name)
    t.match(JSON.parse(body), { error: { type: 'invalid_request_error', param: null, code }, request_id: 'req_NEW' }, name)
    t.match(head, new RegExp(`content-length: ${Buffer.byteLength(body)}`), name)
  }
})

t.test('who asks for a tunnel hears what is taken instead', async t => {
  const answer = await said(await listening(t), 'CONNECT b:443 HTTP/1.1\r\nhost: a\r\n\r\n')
  t.match(answer, /^HTTP\/1.1 405 /)
  t.match(answer, /\r\nallow: GET, HEAD, POST\r\n/)
})

t.test('a request that could be taken for two is refused', async t => {
  const listener = await listening(t)
  const rows: [name: string, fields: string, status: number][] = [
    ['one of each', 'authorization: Bearer a\r\ncontent-length: 2\r\n\r\n{}', 200],
    ['two keys', 'authorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n', 400],
    ['two hosts', 'Host: b\r\n\r\n', 400],
    ['an expectation that nobody knows', 'expect: cake\r\n\r\n', 417],
    ['no length at all', '\r\n', 400],
  ]
  for (const [name, fields, status] of rows) {
    const answer = await said(listener, POST, `connection: close\r\n${fields}`)
    t.match(answer, new RegExp(`^HTTP/1.1 ${status} `), name)
    t.match(answer, /x-request-id: req_/, name)
  }
})

t.test('rubbish behind a request does not get into its answer', async t => {
  const listener = await listening(t, {
    handle: (_request, response) => {
      sendStreamHead(response, 'req_1', {})
      response.write('data: a\n\n')
    },
  })
  const answer = await said(listener, `${POST}content-length: 0\r\n\r\n`, 'rubbish\r\n\r\n')
  t.match(answer, /^HTTP\/1.1 200 OK\r\n/)
  t.match(answer, /data: a\n\n\r\n$/, 'it is cut off, and nothing follows')
})

t.test('a header that does not come is given up', async t => {
  const listener = await listening(t)
  const started = performance.now()
  const answer = await said(listener, 'POST /v1/x HTTP/1.1\r\nhost:')
  t.match(answer, /^HTTP\/1.1 408 Request Timeout/)
  t.match(answer, /"code":"request_timeout"/)
  t.ok(performance.now() - started < 30_000, 'long before the minute that Node gives')
})

t.test('bodies: chunked, announced, asked for, too large, too slow', async t => {
  const listener = await listening(t, { bytesMax: 1_000, timeoutMs: 60_000 })
  const body = JSON.stringify({ a: 'x'.repeat(500) })
  const end = 'connection: close\r\n'
  const ok = new RegExp(`^HTTP/1.1 200 OK[^]*{"size":${body.length}}$`)
  const half = body.length / 2
  t.match(await said(listener, `${POST}${end}content-length: ${body.length}\r\n\r\n`, body.slice(0, half), body.slice(half)), ok)
  const chunks = [body.slice(0, 100), body.slice(100)].map(text => `${text.length.toString(16)}\r\n${text}\r\n`)
  t.match(await said(listener, `${POST}${end}transfer-encoding: chunked\r\n\r\n`, ...chunks, '0\r\n\r\n'), ok)
  const asked = await said(listener, `${POST}${end}expect: 100-continue\r\ncontent-length: ${body.length}\r\n\r\n`, body)
  t.match(asked, /^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 200 OK/)
  for (const expected of ['100-continue', 'cake']) {
    const old = `${POST.replace('1.1', '1.0')}expect: ${expected}\r\ncontent-length: ${body.length}\r\n\r\n`
    t.match(await said(listener, old, body), /^HTTP\/1.1 200 OK/, 'HTTP/1.0 knows no expectations')
  }
  const refused = await said(listener, `${POST}${end}expect: 100-continue\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\n`)
  t.match(refused, /^HTTP\/1.1 415 /, 'a body that is not wanted is not asked for')
  const large = await said(listener, `${POST}${end}expect: 100-continue\r\ncontent-length: 1001\r\n\r\n`)
  t.match(large, /^HTTP\/1.1 413 /, 'one that is too large is not asked for')
  for (const head of ['content-length: 1001\r\n\r\n', 'transfer-encoding: chunked\r\n\r\n']) {
    const answer = await said(listener, POST + head, `400\r\n${'x'.repeat(1024)}\r\n`)
    t.match(answer, /^HTTP\/1.1 413 /)
    t.match(answer, /connection: close\r\n/i)
    t.match(answer, /"code":"request_too_large"/)
  }
  const slow = await said(await listening(t, { timeoutMs: 300 }), `${POST}content-length: 9\r\n\r\n{`)
  t.match(slow, /^HTTP\/1.1 408 /)
  t.match(slow, /connection: close\r\n/i)
  t.match(slow, /x-should-retry: true\r\n/)
})

t.test('a connection that has had nothing but refusals is not kept for long; one that was let in is', async t => {
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    const status = request.url === '/no' ? 401 : Number(request.url?.slice(1)) || 200
    const send = (): void => sendJson(response, status, 'req_1', {}, '{}', 1_000)
    if (request.url === '/slow') setTimeout(send, 7_000)
    else send()
  }
  const listener = await listening(t, { handle })
  const get = (path: string): string => `GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`
  const stays = async (...paths: readonly string[]): Promise<{ ms: number; statuses: string[]; announced: string[] }> => {
    const socket = await open(listener)
    const from = performance.now()
    const patience = setTimeout(() => socket.destroy(), 15_000)
    socket.write(paths.map(get).join(''))
    const text = await all(socket)
    clearTimeout(patience)
    const found = (what: RegExp): string[] => [...text.matchAll(what)].map(([, one = '']) => one)
    return { ms: performance.now() - from, statuses: found(/HTTP\/1\.1 (\d+)/g), announced: found(/^keep-alive: timeout=(\d+)\r$/gim) }
  }
  // Whose request failed, or was too much, has shown a key.
  const keyed = Promise.all(['/402', '/403', '/429', '/502', '/504'].map(path => stays(path)))
  const [stranger, twice, known, waiting] = await Promise.all([
    stays('/no'),
    stays('/no', '/no'),
    stays('/yes', '/no'),
    stays('/no', '/slow'),
  ])
  t.ok(stranger.ms > 4_000 && stranger.ms < 14_000, `${stranger.ms} ms`)
  t.ok(twice.ms > 4_000 && twice.ms < 14_000, `${twice.ms} ms`)
  t.ok(known.ms > 14_900, `${known.ms} ms`)
  t.ok(waiting.ms > 14_900, `one whose next request is under way is not idle: ${waiting.ms} ms`)
  for (const { ms, statuses } of await keyed) t.ok(ms > 14_900, `after ${statuses}: ${ms} ms`)
  t.strictSame(
    [stranger, twice, known, waiting].map(({ statuses }) => statuses),
    [['401'], ['401', '401'], ['200', '401'], ['401', '200']],
  )
  t.strictSame(
    [stranger, twice, known, waiting].map(({ announced }) => announced),
    // An announced time may be exceeded; it must not be cut short.
    [['5'], ['5', '5'], ['75', '5'], ['5', '75']],
  )
  const closing = await said(listener, get('/no').replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n'))
  t.notMatch(closing, /keep-alive/i)
})

t.test('a client that leaves is gone for all of its requests, those behind another one too', async t => {
  let closed = 0
  const listener = await listening(t, { handle: (_request, response) => void response.once('close', () => closed++) })
  const socket = await open(listener)
  socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n'.repeat(3))
  await new Promise(resolve => setTimeout(resolve, 100))
  socket.destroy()
  for (let i = 0; i < 200 && closed < 3; i++) await new Promise(resolve => setTimeout(resolve, 25))
  t.equal(closed, 3)
})

t.test('a client that leaves before its body is whole is noticed, also when it has left already', async t => {
  const codes: string[] = []
  let late: (() => void) | undefined
  const listener = await listening(t, {
    handle: async (request, response) => {
      if (request.url === '/late') {
        request.on('error', () => {})
        await new Promise<void>(resolve => response.once('close', () => setTimeout(resolve, 50)))
      }
      await readBody(request, 100, 60_000, new Room()).catch(error => codes.push(error.code))
      late?.()
    },
  })
  for (const path of ['/now', '/late']) {
    const noticed = new Promise<void>(resolve => (late = resolve))
    const socket = await open(listener)
    socket.write(`POST ${path} HTTP/1.1\r\nhost: a\r\ncontent-length: 50\r\n\r\nhalf`, () => setTimeout(() => socket.destroy(), 30))
    await noticed
  }
  t.strictSame(codes, ['client_closed', 'client_closed'])
})

t.test('a request that is still being answered does not hold on to its body', async t => {
  const answering: ServerResponse[] = []
  const read = new Promise<WeakRef<object>>((resolve, reject) => {
    const handle = (request: IncomingMessage, response: ServerResponse): void => {
      answering.push(response)
      readBody(request, 1_000, 60_000, new Room()).then(bytes => resolve(new WeakRef(bytes)), reject)
    }
    void listening(t, { handle }).then(async listener => (await open(listener)).write(`${POST}content-length: 2\r\n\r\n{}`))
  })
  t.ok(await isGone(await read))
  t.equal(answering.length, 1)
  answering[0]?.end()
})

class WatchedRoom extends Room {
  taken = 0

  override take(bytes: number, own: number): boolean {
    const taken = super.take(bytes, own)
    if (taken) this.taken += bytes
    return taken
  }

  override give(bytes: number): void {
    super.give(bytes)
    this.taken -= bytes
  }
}

t.test('the bodies of all requests share one room', async t => {
  const room = new WatchedRoom(1_000)
  const bodies: Promise<unknown>[] = []
  const listener = await listening(t, {
    handle: (request, response) => {
      const body = readBody(request, 5_000, 60_000, room).then(
        bytes => bytes.length,
        error => error.code,
      )
      bodies.push(body)
      void body.then(() => sendJson(response, 200, 'req_1', {}, '{}', 1_000))
    },
  })
  const send = async (size: number): Promise<Socket> => {
    const socket = await open(listener)
    socket.write(`${POST}content-length: 900\r\n\r\n${'x'.repeat(size)}`)
    return socket
  }
  const first = await send(600)
  while (room.taken < 600) await new Promise(resolve => setTimeout(resolve, 5))
  await send(600)
  while (bodies.length < 2) await new Promise(resolve => setTimeout(resolve, 5))
  t.equal(await bodies[1], 'overloaded')
  t.equal(room.taken, 600, 'what was refused takes nothing')
  first.write('x'.repeat(300))
  t.equal(await bodies[0], 900)
  t.equal(room.taken, 900, 'what was read stays taken')
  room.give(900)
  const left = await send(800)
  while (room.taken < 800) await new Promise(resolve => setTimeout(resolve, 5))
  left.destroy()
  t.equal(await bodies[2], 'client_closed')
  t.equal(room.taken, 0)
})

t.test('a body that as good as stands still is given up long before its time is over', async t => {
  const listener = await listening(t, { timeoutMs: 60_000 })
  const socket = await open(listener)
  const answer = all(socket)
  const started = performance.now()
  socket.write(`${POST}content-length: 5000\r\n\r\n`)
  const drip = setInterval(() => socket.write('x'), 500)
  t.match(await answer, /^HTTP\/1.1 408 [\s\S]*"code":"request_timeout"/)
  clearInterval(drip)
  t.ok(performance.now() - started < 30_000)
})

t.test('a refusal arrives whole while a large body is still being sent', async t => {
  const listener = await listening(t, { bytesMax: 1_000 })
  for (let round = 0; round < 5; round++) {
    const client = request({ port: listener.port, method: 'POST', agent: false, headers: { 'content-length': 20_000_000 } })
    client.on('error', () => {})
    const piece = Buffer.alloc(100_000)
    let sent = 0
    const send = (): void => {
      while (sent < 20_000_000 && !client.destroyed) {
        sent += piece.length
        if (!client.write(piece)) return
      }
      client.end()
    }
    client.on('drain', send)
    send()
    const [answer] = (await once(client, 'response')) as [IncomingMessage]
    let text = ''
    for await (const chunk of answer) text += chunk
    t.equal(answer.statusCode, 413)
    t.equal(JSON.parse(text).error.code, 'request_too_large')
    client.destroy()
  }
})

t.test('a small body that nobody wanted does not cost the connection', async t => {
  const listener = await listening(t)
  const socket = await open(listener)
  const answers = all(socket)
  socket.write(`${POST}content-type: text/plain\r\ncontent-length: 1000\r\n\r\n${'x'.repeat(500)}`)
  await once(socket, 'data')
  socket.write(`${'x'.repeat(500)}${POST}connection: close\r\ncontent-length: 2\r\n\r\n{}`)
  const statuses = [...(await answers).matchAll(/HTTP\/1.1 (\d+)/g)].map(([, status]) => status)
  t.strictSame(statuses, ['415', '200'])
})

t.test('an answer that nobody reads is given up after the time for writing', async t => {
  let closed!: Promise<unknown>
  let arrive!: () => void
  const arrived = new Promise<void>(resolve => (arrive = resolve))
  const listener = await listening(t, {
    handle: (_request, response) => {
      arrive()
      closed = once(response, 'close')
      sendJson(response, 200, 'req_1', {}, JSON.stringify('x'.repeat(30_000_000)), 300)
    },
  })
  const socket = await open(listener)
  socket.pause()
  socket.write(`${POST}content-length: 0\r\n\r\n`)
  const started = performance.now()
  await arrived
  await closed
  const ms = performance.now() - started
  t.ok(ms >= 300 && ms < 30_000, `${ms} ms`)
  socket.destroy()
})

t.test('the head of a stream', async t => {
  const listener = await listening(t, {
    handle: (_request, response) => {
      sendStreamHead(response, 'req_1', { 'x-more': '1' })
      response.end('data: [DONE]\n\n')
    },
  })
  const answer = await fetch(`http://127.0.0.1:${listener.port}/`, { headers: { 'accept-encoding': 'gzip' } })
  t.match(Object.fromEntries(answer.headers), {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache',
    'x-accel-buffering': 'no',
    'x-request-id': 'req_1',
    'x-more': '1',
  })
  t.equal(answer.headers.get('content-encoding'), null)
  t.equal(await answer.text(), 'data: [DONE]\n\n')
})

t.test('an address that is taken is an error', async t => {
  const { port } = await listening(t)
  const again = { address: { host: '127.0.0.1', port }, tls: null, connectionsMax: 1, handle: () => {}, newId: () => '' }
  await t.rejects(listen(again), { code: 'EADDRINUSE' })
})
