import { createServer as createHttp, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createHttps } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { Address, Config } from '../config/config.js'
import { errorBody, GatewayError } from '../errors.js'

/** The most that a request's header may have, in bytes. */
const HEADER_BYTES_MAX = 16 * 1024
/** For a request's header to arrive. Milliseconds. */
const HEADERS_MS = 10_000
/** For a connection that is idle between requests. Milliseconds. */
const IDLE_MS = 75_000

export interface ListenerFacts {
  readonly address: Address
  readonly tls: Config['tls']
  readonly connectionsMax: number
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void
  /** For answers to what never became a request. */
  readonly newId: () => string
}

/** The public listener. */
export interface Listener {
  readonly host: string
  readonly port: number
  /** Takes a new certificate for connections from now on. */
  secure(tls: NonNullable<Config['tls']>): void
  /** No new connections; idle ones are closed. */
  stop(): void
  close(): Promise<void>
}

/** Listens; rejects with the error of the socket (`EADDRINUSE` …). */
export function listen({ address, tls, connectionsMax, handle, newId }: ListenerFacts): Promise<Listener> {
  const options = {
    maxHeaderSize: HEADER_BYTES_MAX,
    headersTimeout: HEADERS_MS,
    // The body's time is kept where it is read.
    requestTimeout: 0,
    keepAliveTimeout: IDLE_MS,
    connectionsCheckingInterval: 1_000,
    insecureHTTPParser: false,
    noDelay: true,
  }
  const server: Server = tls === null ? createHttp(options) : createHttps({ ...options, ...certificate(tls) })
  // Node would drop fields beyond a count in silence; their bytes are bounded already.
  server.maxHeadersCount = 0
  server.maxConnections = connectionsMax
  const open = new WeakMap<Socket, readonly ServerResponse[]>()
  const accept = (request: IncomingMessage, response: ServerResponse): void => {
    open.set(request.socket, [...(open.get(request.socket) ?? []).filter(({ writableFinished }) => !writableFinished), response])
    if (isAmbiguous(request))
      refuse(response, new GatewayError('invalid_request', 'Host or Authorization is there twice. Send each once.'), newId())
    else handle(request, response)
  }
  server.on('request', accept)
  // The body is asked for (100) when it is wanted, and a bad key never gets there.
  server.on('checkContinue', accept)
  server.on('checkExpectation', (_request, response: ServerResponse) => {
    refuse(response, new GatewayError('expectation_failed', 'The only expectation that is understood is 100-continue.'), newId())
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    const [first, ...more] = (open.get(socket) ?? []).filter(({ writableFinished }) => !writableFinished)
    // In the middle of another answer, one more would be taken for a part of it.
    if (error.code === 'ECONNRESET' || !socket.writable || first?.headersSent || more.length > 0) socket.destroy()
    else reject(error, socket, newId())
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
          if ('setSecureContext' in server) (server as import('node:https').Server).setSecureContext(certificate(next))
        },
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

function certificate({ cert_pem, key_pem }: NonNullable<Config['tls']>) {
  return { cert: cert_pem, key: key_pem, minVersion: 'TLSv1.2' as const }
}

/** Proxies differ in which of two they believe: a request that has two could pass as another's. Node takes the first in silence. */
function isAmbiguous({ rawHeaders }: IncomingMessage): boolean {
  let [hosts, credentials] = [0, 0]
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string
    if (name.length === 4 && name.toLowerCase() === 'host') hosts++
    else if (name.length === 13 && name.toLowerCase() === 'authorization') credentials++
  }
  return hosts > 1 || credentials > 1
}

function refuse(response: ServerResponse, error: GatewayError, id: string): void {
  const body = errorBody(error, id)
  response.writeHead(error.status, {
    'content-type': 'application/json',
    'x-request-id': id,
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  })
  response.end(body)
}

/** Answers what could not be read as HTTP, in our own envelope. */
function reject(error: NodeJS.ErrnoException, socket: Socket, id: string): void {
  const answer = rejection(error.code)
  const body = errorBody(answer, id)
  const reason = { 400: 'Bad Request', 408: 'Request Timeout', 431: 'Request Header Fields Too Large' }[answer.status] ?? 'Error'
  socket.end(
    `HTTP/1.1 ${answer.status} ${reason}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n` +
      `x-request-id: ${id}\r\nconnection: close\r\n\r\n${body}`,
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
