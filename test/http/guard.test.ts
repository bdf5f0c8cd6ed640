import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { HEADER_FIELDS_MAX } from '../../src/http/guard.js'
import { type Listener, type ListenerFacts, listen } from '../../src/http/listener.js'
import { sendJson } from '../../src/http/respond.js'

async function listening(t: Test, facts: Partial<ListenerFacts> = {}): Promise<Listener> {
  const listener = await listen({
    address: { host: '127.0.0.1', port: 0 },
    tls: null,
    connectionsMax: 100,
    handle: (request, response) => {
      request.on('error', () => {})
      request.resume().on('end', () => sendJson(response, 200, 'req_1', {}, '{"handled":true}', 1_000))
    },
    newId: () => 'req_NEW',
    ...facts,
  })
  t.teardown(() => listener.close())
  return listener
}

function open({ port }: Listener): Socket {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  return socket
}

/** Bytes as they are, and all that is answered until the connection ends. */
async function said(listener: Listener, bytes: string): Promise<string> {
  const socket = open(listener)
  let text = ''
  socket.on('data', chunk => (text += chunk))
  socket.write(Buffer.from(bytes, 'latin1'))
  await closed(socket)
  return text
}

function closed(socket: Socket): Promise<void> {
  return new Promise(resolve => socket.once('close', () => resolve()))
}

const GET = 'GET /v1/models HTTP/1.1\r\nhost: a\r\n'
const POST = 'POST /v1/x HTTP/1.1\r\nhost: a\r\nconnection: close\r\n'
const CHUNKED = 'transfer-encoding: chunked\r\n'
const CHUNKS = '2\r\n{}\r\n0\r\n\r\n'
const fields = (count: number): string => Array.from({ length: count }, (_, i) => `x${i}: y\r\n`).join('')

const PASSED: Readonly<Record<string, string>> = {
  'a GET': `${GET}connection: close\r\n\r\n`,
  'an empty body of a GET': `${GET}connection: close\r\ncontent-length: 0\r\n\r\n`,
  'chunks, in any case': `${POST}Transfer-Encoding: Chunked\r\n\r\n${CHUNKS}`,
  'HTTP/1.0 without a host': 'GET /v1/models HTTP/1.0\r\n\r\n',
  'an upgrade to h2c that is offered': `${GET}connection: Upgrade, HTTP2-Settings, close\r\nupgrade: h2c\r\nHTTP2-Settings: AAA\r\n\r\n`,
  'a query with anything in it': 'GET /v1/models?a=http://b//c%0d%0a HTTP/1.1\r\nhost: [::1]:80\r\nconnection: close\r\n\r\n',
  'as many fields as are allowed': `${GET}connection: close\r\n${fields(HEADER_FIELDS_MAX - 2)}\r\n`,
}

const REFUSED: Readonly<Record<string, readonly [bytes: string, status?: number, code?: string]>> = {
  'an upgrade to a web socket': [`${GET}connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\r\n`],
  'an upgrade to one of several protocols': [`${POST}upgrade: h2c, websocket\r\n\r\n`],
  'two hosts': [`${GET}Host: b\r\n\r\n`],
  'two equal keys': [`${GET}authorization: Bearer a\r\nAuthorization: Bearer a\r\n\r\n`],
  'two content types': [`${POST}content-type: text/plain\r\ncontent-type: application/json\r\n\r\n`],
  'two equal lengths': [`${POST}content-length: 2\r\ncontent-length: 2\r\n\r\n{}`],
  'a length of two numbers': [`${POST}content-length: 2, 2\r\n\r\n{}`],
  'a length with a sign': [`${POST}content-length: +2\r\n\r\n{}`],
  'a length beyond all numbers': [`${POST}content-length: 99999999999999999999999\r\n\r\n{}`],
  'length, then chunks': [`${POST}content-length: 2\r\n${CHUNKED}\r\n${CHUNKS}`],
  'chunks, then length': [`${POST}${CHUNKED}content-length: 2\r\n\r\n${CHUNKS}`],
  'chunks twice': [`${POST}${CHUNKED}${CHUNKED}\r\n${CHUNKS}`],
  'gzip and chunks': [`${POST}transfer-encoding: gzip, chunked\r\n\r\n${CHUNKS}`],
  'chunks with a tail': [`${POST}transfer-encoding: chunked \t\r\n\r\n${CHUNKS}`],
  xchunked: [`${POST}transfer-encoding: xchunked\r\n\r\n${CHUNKS}`],
  identity: [`${POST}transfer-encoding: identity\r\n\r\n`],
  'a GET in another encoding': [`${GET}transfer-encoding: gzip, chunked\r\n\r\n${CHUNKS}`],
  'chunks in HTTP/1.0': [`POST /v1/x HTTP/1.0\r\nhost: a\r\n${CHUNKED}\r\n${CHUNKS}`],
  'a chunk whose size ends in a bare line feed': [`${POST}${CHUNKED}\r\n2\n{}\r\n0\r\n\r\n`],
  'a chunk beyond all numbers': [`${POST}${CHUNKED}\r\nfffffffffffffffff\r\n{}`],
  'an endless extension of a chunk': [`${POST}${CHUNKED}\r\n2;${'x'.repeat(20_000)}\r\n{}`],
  'a body of a GET': [`${GET}content-length: 2\r\n\r\n{}`],
  'chunks of a GET': [`${GET}${CHUNKED}\r\n${CHUNKS}`],
  'a body of a HEAD': ['HEAD /v1/models HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}'],
  'the absolute form': ['GET http://b/v1/models HTTP/1.1\r\nhost: a\r\n\r\n'],
  'two slashes': ['GET //b/v1/models HTTP/1.1\r\nhost: a\r\n\r\n'],
  'a star': ['OPTIONS * HTTP/1.1\r\nhost: a\r\n\r\n'],
  'a fragment': ['GET /v1/models#a HTTP/1.1\r\nhost: a\r\n\r\n'],
  'a target beyond ASCII': ['GET /v1/\xff HTTP/1.1\r\nhost: a\r\n\r\n'],
  'a tab in the target': ['GET /v1/\ta HTTP/1.1\r\nhost: a\r\n\r\n'],
  CONNECT: ['CONNECT b:443 HTTP/1.1\r\nhost: a\r\n\r\n', 405, 'method_not_allowed'],
  'no host': ['GET /v1/models HTTP/1.1\r\n\r\n'],
  'a host that is none': ['GET /v1/models HTTP/1.1\r\nhost: a/b@c\r\n\r\n'],
  'HTTP/0.9': ['GET /v1/models\r\n\r\n'],
  'HTTP/1.2': ['GET /v1/models HTTP/1.2\r\nhost: a\r\n\r\n'],
  'HTTP/2.0': ['GET /v1/models HTTP/2.0\r\nhost: a\r\n\r\n'],
  'the preface of HTTP/2': ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  'a folded field': [`${GET}x: a\r\n b\r\n\r\n`],
  'a space before the colon': [`${GET}x : a\r\n\r\n`],
  'a field without a name': [`${GET}: a\r\n\r\n`],
  'a control character': [`${GET}x: a\x01b\r\n\r\n`],
  NUL: [`${GET}x: a\0b\r\n\r\n`],
  'a bare carriage return': [`${GET}x: a\rb: c\r\n\r\n`],
  'a bare line feed': [`${GET}x: a\nb: c\r\n\r\n`],
  'line feeds alone': ['GET /v1/models HTTP/1.1\nhost: a\n\n'],
  'too many fields': [`${GET}${fields(HEADER_FIELDS_MAX)}\r\n`, 431, 'headers_too_large'],
  'empty fields without number': [`${GET}${'a:\r\n'.repeat(3_000)}\r\n`, 431, 'headers_too_large'],
  'fields that are too large': [`${GET}x: ${'y'.repeat(16_384)}\r\n\r\n`, 431, 'headers_too_large'],
}

t.test('ordinary requests pass', async t => {
  const listener = await listening(t)
  for (const [name, bytes] of Object.entries(PASSED)) {
    t.match(await said(listener, bytes), /^HTTP\/1.1 200 [\s\S]*{"handled":true}$/, name)
  }
})

t.test('what could be read in two ways is refused, and its connection with it', async t => {
  const handled = new Set<string>()
  const listener = await listening(t, { handle: request => handled.add(`${request.method} ${request.url}`) })
  for (const [name, [bytes, status = 400, code = 'invalid_request']] of Object.entries(REFUSED)) {
    // What stands behind it would be the smuggled request.
    const answer = await said(listener, `${bytes}GET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n`)
    const [head = '', body = ''] = answer.split('\r\n\r\n')
    t.match(head, new RegExp(`^HTTP/1.1 ${status} `), name)
    t.match(head, /\r\nconnection: close/i, name)
    t.match(head, /\r\nx-request-id: req_NEW/i, name)
    if (name !== 'a body of a HEAD') {
      t.match(JSON.parse(body), { error: { type: 'invalid_request_error', param: null, code }, request_id: 'req_NEW' }, name)
    }
    t.equal(answer.match(/HTTP\/1.1 \d/g)?.length, 1, name)
  }
  t.same([...handled], ['POST /v1/x'], 'only bodies whose chunks are wrong later on have begun')
})

t.test('a request that is refused behind another is answered after it, and nothing behind that', async t => {
  const seen: string[] = []
  const listener = await listening(t, {
    handle: (request, response) => {
      seen.push(request.url as string)
      setTimeout(() => sendJson(response, 200, 'req_1', {}, '{}', 1_000), 50)
    },
  })
  const answer = await said(
    listener,
    `GET /a HTTP/1.1\r\nhost: a\r\n\r\nGET http://b/ HTTP/1.1\r\nhost: a\r\n\r\nGET /c HTTP/1.1\r\nhost: a\r\n\r\n`,
  )
  t.same(answer.match(/HTTP\/1.1 \d+/g), ['HTTP/1.1 200', 'HTTP/1.1 400'])
  t.same(seen, ['/a'])
})

t.test('a few requests may be sent ahead of their answers; a flood costs the connection', async t => {
  const held: (() => void)[] = []
  const listener = await listening(t, { handle: (_request, response) => held.push(() => sendJson(response, 200, 'r', {}, '{}', 1_000)) })
  const socket = open(listener)
  let text = ''
  socket.on('data', chunk => (text += chunk))
  const one = `${GET}\r\n`
  socket.write(one.repeat(32))
  while (held.length < 32) await new Promise(resolve => setTimeout(resolve, 5))
  for (const answer of held.splice(0)) answer()
  while (text.split('HTTP/1.1 200').length < 33) await new Promise(resolve => setTimeout(resolve, 5))
  socket.write(one.repeat(10_000))
  await closed(socket)
  t.ok(held.length <= 32, `${held.length} of 10,000 were begun`)
})

t.test('beyond limits.connections a connection is closed at once, and there is room again when another ends', async t => {
  const listener = await listening(t, { connectionsMax: 2 })
  const [first, second] = [open(listener), open(listener)]
  await Promise.all([once(first, 'connect'), once(second, 'connect')])
  t.equal(await said(listener, `${GET}\r\n`), '', 'nothing is said to the third')
  first.destroy()
  let answer = ''
  while (answer === '') answer = await said(listener, `${GET}connection: close\r\n\r\n`)
  t.match(answer, /^HTTP\/1.1 200/)
  second.destroy()
})
