import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import type { ProviderSettings } from '../config/config.js'
import { type Connection, Connections } from './connections.js'
import type { Delivery, Receiver, Transport, TransportFailure, TransportRequest } from './providers/provider.js'
import { type Connector, type Line, Sockets } from './sockets.js'
import { tunnel } from './tunnel.js'
import { buildConnector, Client } from './undici.js'

/** The most that the header of a provider's answer may have, in bytes. */
const HEADER_BYTES_MAX = 64 * 1024

export interface HttpOptions {
  /** Milliseconds; never goes back. */
  readonly now: () => number
  /** The provider has written what nobody had asked for; for a minute from now each request has a connection of its own. */
  readonly distrusted: () => void
}

/**
 * A provider that is reached over HTTP at the origin of its `base_url`, each key over connections of its own unless the settings say otherwise.
 * No redirects, no pipelining, no decompression, and no time limit of its own: the attempt keeps them all. Servers close idle connections
 * unannounced: a request whose connection had been used before, and dies before the first byte of an answer, is sent once more, over a new one.
 */
export function httpTransport(settings: ProviderSettings, options: HttpOptions): Transport {
  const base = new URL(settings.base_url)
  const prefix = base.pathname.replace(/\/$/, '')
  const sockets = new Sockets(connector(settings))
  const open = (): Client =>
    new Client(base.origin, {
      pipelining: 1,
      allowH2: false,
      maxHeaderSize: HEADER_BYTES_MAX,
      headersTimeout: 0,
      bodyTimeout: 0,
      // Real servers close idle connections after 5 s, unannounced: ours are gone before.
      keepAliveTimeout: 4_000,
      keepAliveMaxTimeout: 600_000,
      connect: sockets.connect,
    })
  const { keep_connections: keep, max_connections: max } = settings
  const connections = new Connections(open, { keep, max, ...options })
  return {
    send: (request, receiver) => {
      const asked = { method: 'POST', path: prefix + request.path, headers: request.headers, body: bodyOf(request) } as const
      const delivery = new HttpDelivery({ key: request.key, receiver, sockets, connections })
      delivery.dispatch(asked, false)
      return delivery
    },
    close: async () => {
      sockets.close()
      await connections.close()
    },
  }
}

/** How a connection is made: straight, or through a proxy; TLS by no version before 1.2, whatever Node was started with. */
function connector({ timeout, ca, proxy }: ProviderSettings): Connector {
  const straight = buildConnector({
    allowH2: false,
    timeout: timeout.connect,
    minVersion: 'TLSv1.2',
    ...(ca === undefined ? {} : { ca: ca.pem }),
  })
  return proxy === undefined ? straight : tunnel(new URL(proxy), timeout.connect, straight)
}

function bodyOf(request: TransportRequest): string | Buffer {
  const body = request.body
  return typeof body === 'string' ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength)
}

interface Way {
  readonly key: string
  readonly receiver: Receiver
  readonly sockets: Sockets
  readonly connections: Connections
}

class HttpDelivery implements Delivery, Dispatcher.DispatchHandler {
  readonly #way: Way
  /** Until the answer begins: then it is not sent again. */
  #asked: Dispatcher.DispatchOptions | null = null
  #again = false
  #connection: Connection | null = null
  #line: Line | null = null
  #controller: Dispatcher.DispatchController | null = null
  #paused = false
  #over = false
  sent = false

  constructor(way: Way) {
    this.#way = way
  }

  dispatch(asked: Dispatcher.DispatchOptions, again: boolean): void {
    const { connections, key } = this.#way
    this.#asked = asked
    const connection = again ? connections.takeFresh(key) : connections.take(key)
    this.#connection = connection
    try {
      connection.client.dispatch(connection.lasting ? asked : { ...asked, reset: true }, this)
    } catch (error) {
      queueMicrotask(() => this.onResponseError(null, error as Error))
    }
  }

  pause(): void {
    this.#paused = true
    this.#controller?.pause()
  }

  resume(): void {
    this.#paused = false
    this.#controller?.resume()
  }

  abort(): void {
    if (this.#over) return
    this.#over = true
    this.#controller?.abort(new Error('aborted'))
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#over) {
      controller.abort(new Error('aborted'))
      return
    }
    this.#controller = controller
    if (this.#connection !== null) this.#connection.asked = true
    this.sent = true
    this.#way.sockets.expect(line => {
      this.#line = line
    })
    this.#way.receiver.started?.()
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    this.#asked = null
    // Informational answers come before the real one.
    if (this.#over || status < 200) return
    this.#way.receiver.head(status, headers)
    if (this.#paused) controller.pause()
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#over) this.#way.receiver.data(chunk)
  }

  onResponseEnd(): void {
    if (this.#connection !== null) this.#way.connections.release(this.#connection)
    this.#connection = null
    if (this.#over) return
    this.#over = true
    this.#way.receiver.end()
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    if (this.#connection !== null) this.#way.connections.discard(this.#connection)
    this.#connection = null
    if (this.#over) return
    const asked = this.#asked
    if (asked !== null && this.#stale(error)) {
      this.#again = true
      this.#controller = null
      this.#line = null
      this.dispatch(asked, true)
      return
    }
    this.#over = true
    this.#way.receiver.failed(failureOf(error, this.sent))
  }

  #stale(error: Error): boolean {
    return !this.#again && this.#line?.reused === true && !this.#line.heard() && CLOSED.test(codeOf(error))
  }
}

/** How a connection that the other side has closed is found out. */
const CLOSED = /^(?:ECONNRESET|EPIPE|UND_ERR_SOCKET)$/

const NOT_REACHED =
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|EACCES|ENOENT|UND_ERR_CONNECT_TIMEOUT|UND_ERR_PRX_TLS|ERR_PROXY|CERT_|ERR_TLS|ERR_SSL|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_)/

function failureOf(error: Error, sent: boolean): TransportFailure {
  const code = codeOf(error)
  if (!sent || NOT_REACHED.test(code)) return { kind: 'refused', sent, message: code, cause: error }
  return { kind: 'broken', sent, message: code, cause: error }
}

/** A connection tried on several addresses fails with an AggregateError; its first part says why. */
function codeOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors[0])
  const code = (error as { code?: unknown }).code
  return typeof code === 'string' ? code : 'unknown'
}
