import { createServer as createHttp, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import { createServer as createHttps } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { Address, Tls } from '../config/config.js'
import { errorBody, GatewayError } from '../errors.js'
import { HEADER_FIELDS_MAX, objection } from './guard.js'
import { errorFields } from './headers.js'
import { STRANGER_IDLE_MS, sendJson, takesKey } from './respond.js'

/** The most that a request's header may have, in bytes. */
const HEADER_BYTES_MAX = 16 * 1024
/** For a request's header to arrive. Milliseconds. */
const HEADERS_MS = 10_000
/** For a connection that is idle between requests. Milliseconds. */
const IDLE_MS = 75_000
/** For a client to take a refusal. Milliseconds. */
const ANSWER_MS = 5_000
/** The most requests of one connection that wait for their answers: clients wait for each, and benchmarks send a few ahead. */
const AHEAD_MAX = 32

export interface ListenerFacts {
  readonly address: Address
  readonly tls: Tls | null
  readonly connectionsMax: number
  /** The address is shared with other processes, which are given connections in turn. */
  readonly shared?: boolean
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void
  /** For answers to what never became a request. */
  readonly newId: () => string
}

/** The public listener. */
export interface Listener {
  readonly host: string
  readonly port: number
  /** Takes a new certificate, and new authorities of clients', for connections from now on. Whether clients need one at all stays as it began. */
  secure(tls: Tls): void
  /** How many connections there may be from now on. */
  limit(connectionsMax: number): void
  /** No new connections; idle ones are closed. */
  stop(): void
  close(): Promise<void>
}

/** Listens; rejects with the error of the socket (`EADDRINUSE` …). */
export function listen({ address, tls, connectionsMax, shared = false, handle, newId }: ListenerFacts): Promise<Listener> {
  const options = {
    maxHeaderSize: HEADER_BYTES_MAX,
    headersTimeout: HEADERS_MS,
    // The body's time is kept where it is read.
    requestTimeout: 0,
    keepAliveTimeout: IDLE_MS,
    connectionsCheckingInterval: 1_000,
    insecureHTTPParser: false,
    // Ours answers in the envelope of all errors.
    requireHostHeader: false,
    noDelay: true,
  }
  // Node gives a handshake two minutes.
  const secured = { ...options, handshakeTimeout: HEADERS_MS, ALPNProtocols: ['http/1.1'] }
  const server: Server =
    tls === null ? createHttp(options) : createHttps({ ...secured, ...certificate(tls), requestCert: tls.client_ca !== null })
  let clientCa = tls?.client_ca ?? null
  // Node drops fields beyond its count in silence: one more than is allowed tells that there are too many.
  server.maxHeadersCount = HEADER_FIELDS_MAX + 1
  const bound = shared ? boundBeside(server) : boundBy(server)
  bound(connectionsMax)
  const open = new WeakMap<Socket, ServerResponse[]>()
  const ending = new WeakSet<Socket>()
  const welcome = new WeakSet<Socket>()
  // Node has set its own time for an idle connection by then, and forgets it, whatever it is, with the next request.
  function answered(this: ServerResponse): void {
    const { socket } = this.req
    if (takesKey(this.statusCode)) welcome.add(socket)
    else if (!welcome.has(socket) && open.get(socket)?.at(-1) === this) socket.setTimeout(STRANGER_IDLE_MS)
  }
  const accept = (request: IncomingMessage, response: ServerResponse): void => {
    const { socket } = request
    let waiting = open.get(socket)
    if (waiting === undefined) {
      const mine: ServerResponse[] = []
      waiting = mine
      open.set(socket, mine)
      socket.once('close', () => abandon(mine))
    }
    // They are answered in their order.
    while (waiting[0]?.writableFinished) waiting.shift()
    waiting.push(response)
    response.on('finish', answered)
    if (waiting.length > AHEAD_MAX) socket.destroy()
    // What stands behind a request whose connection is to end may be a part of its body.
    if (socket.destroyed || ending.has(socket)) return
    const error = objection(request)
    if (error === null) {
      handle(request, response)
      return
    }
    ending.add(socket)
    refuse(response, error, newId())
  }
  server.on('request', accept)
  // The body is asked for (100) when it is wanted, and a bad key never gets there.
  server.on('checkContinue', accept)
  server.on('checkExpectation', (_request, response: ServerResponse) => {
    refuse(response, new GatewayError('expectation_failed', 'The only expectation that is understood is 100-continue.'), newId())
  })
  server.on('connect', (_request: IncomingMessage, socket: Socket) => {
    socket.on('error', () => {})
    const headers = { allow: 'GET, HEAD, POST' }
    answer(new GatewayError('method_not_allowed', 'This is no proxy: CONNECT is not taken.', { headers }), socket, newId())
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    // Its refusal is on its way, and ends the connection.
    if (ending.has(socket) && socket.writable && error.code !== 'ECONNRESET') return
    const [first, ...more] = (open.get(socket) ?? []).filter(({ writableFinished }) => !writableFinished)
    // In the middle of another answer, one more would be taken for a part of it.
    if (error.code === 'ECONNRESET' || !socket.writable || first?.headersSent || more.length > 0) socket.destroy()
    else answer(rejection(error.code), socket, newId())
  })
  return new Promise((resolve, fail) => {
    server.once('error', fail)
    server.listen({ host: address.host, port: address.port, backlog: 1024 }, () => {
      server.removeListener('error', fail)
      const { address: host, port } = server.address() as AddressInfo
      resolve({
        host,
        port,
        secure: next => {
          // Without any, whoever has a well-known authority's certificate would be let in where one is asked for.
          clientCa = next.client_ca ?? clientCa
          const secret = certificate({ ...next, client_ca: clientCa })
          if ('setSecureContext' in server) (server as import('node:https').Server).setSecureContext(secret)
        },
        limit: bound,
        stop: () => {
          server.close()
          server.closeIdleConnections()
        },
        close: () =>
          new Promise(done => {
            server.close(() => done())
            server.closeAllConnections()
          }),
      })
    })
  })
}

/** Sets how many connections a server has at most. */
type Bound = (connectionsMax: number) => void

function boundBy(server: Server): Bound {
  return most => {
    server.maxConnections = most
  }
}

/** Of several processes on one address, Node gives a connection that one of them has no room for to the next, for ever: here it is closed. */
function boundBeside(server: Server): Bound {
  let max = 0
  let open = 0
  server.on('connection', (socket: Socket) => {
    if (open >= max) {
      socket.destroy()
      return
    }
    open++
    socket.once('close', () => open--)
  })
  return most => {
    max = most
  }
}

/** Who is asked for a certificate and shows none of the authorities' gets no connection (`rejectUnauthorized` is Node's default). */
function certificate({ cert_pem, key_pem, client_ca }: Tls) {
  return { cert: cert_pem, key: key_pem, minVersion: 'TLSv1.2' as const, ...(client_ca === null ? {} : { ca: client_ca.pem }) }
}

/** Node tells the answer that has its turn of the connection's end, and those that wait behind it nothing: whoever works on them would for ever. */
function abandon(waiting: readonly ServerResponse[]): void {
  for (const response of waiting) {
    if (response.socket !== null || response.writableFinished) continue
    response.destroy()
    response.emit('close')
  }
}

function refuse(response: ServerResponse, error: GatewayError, id: string): void {
  response.req.on('error', () => {})
  sendJson(response, error.status, id, { ...errorFields(error), connection: 'close' }, errorBody(error, id), ANSWER_MS)
}

/** Answers what never became a request, in our own envelope. */
function answer(error: GatewayError, socket: Socket, id: string): void {
  const body = errorBody(error, id)
  const fields = Object.entries(errorFields(error)).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status] ?? 'Error'}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n` +
      `x-request-id: ${id}\r\n${fields.join('')}connection: close\r\n\r\n${body}`,
  )
  socket.setTimeout(1_000, () => socket.destroy())
}

function rejection(code: string | undefined): GatewayError {
  if (code === 'HPE_HEADER_OVERFLOW') {
    return new GatewayError('headers_too_large', `The header of the request is larger than ${HEADER_BYTES_MAX} bytes.`)
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return new GatewayError('request_timeout', `The header of the request did not arrive within ${HEADERS_MS / 1000} s.`)
  }
  return new GatewayError('invalid_request', 'This is not a valid HTTP/1.1 request.')
}
