import type { IncomingHttpHeaders } from 'node:http'
import { Client, type Dispatcher, Pool } from 'undici'
import type { ProviderSettings } from '../config/config.js'
import type { Delivery, Receiver, Transport, TransportFailure, TransportRequest } from './providers/provider.js'

/** The most that the header of a provider's answer may have, in bytes. */
const HEADER_BYTES_MAX = 64 * 1024
/** How often a request is sent once more because the connection that it was given had died while it was idle. */
const STALE_MAX = 2

/**
 * A provider that is reached over HTTP: one pool of connections to the origin of its `base_url`. No redirects, no pipelining, no
 * decompression, and no time limit of its own: the attempt keeps them all. Servers close idle connections unannounced: a request whose
 * reused connection dies before the first byte of an answer is sent once more.
 */
export function httpTransport(settings: ProviderSettings): Transport {
  const base = new URL(settings.base_url)
  const prefix = base.pathname.replace(/\/$/, '')
  const pool = new Pool(base.origin, {
    connections: settings.max_connections,
    pipelining: 1,
    allowH2: false,
    maxHeaderSize: HEADER_BYTES_MAX,
    headersTimeout: 0,
    bodyTimeout: 0,
    // Real servers close idle connections after 5 s, unannounced: ours are gone before.
    keepAliveTimeout: 4_000,
    keepAliveMaxTimeout: 600_000,
    connect: { timeout: settings.timeout.connect },
    factory: (origin, options) => new Connection(origin, options),
  })
  return {
    send: (request, receiver) => {
      const options = { method: 'POST' as const, path: prefix + request.path, headers: request.headers, body: bodyOf(request) }
      const delivery = new HttpDelivery(receiver, self => pool.dispatch({ ...options, delivery: self } as Outgoing, self))
      delivery.dispatch()
      return delivery
    },
    close: () => pool.destroy(),
  }
}

function bodyOf(request: TransportRequest): string | Buffer {
  const body = request.body
  return typeof body === 'string' ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength)
}

/** The pool passes options on to the connection that it chooses; handlers it may wrap. */
interface Outgoing extends Dispatcher.DispatchOptions {
  readonly delivery: HttpDelivery
}

/** One connection of the pool. */
class Connection extends Client {
  /** How many answers the socket of now has carried to their end. */
  served = 0

  constructor(origin: URL, options: object) {
    super(origin, options)
    this.on('connect', () => {
      this.served = 0
    })
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    ;(options as Outgoing).delivery.connection = this
    return super.dispatch(options, handler)
  }
}

class HttpDelivery implements Delivery, Dispatcher.DispatchHandler {
  readonly #receiver: Receiver
  #controller: Dispatcher.DispatchController | null = null
  #paused = false
  #over = false
  #answered = false
  #stale = 0
  readonly #start: (self: HttpDelivery) => unknown
  sent = false
  connection: Connection | null = null

  constructor(receiver: Receiver, start: (self: HttpDelivery) => unknown) {
    this.#receiver = receiver
    this.#start = start
  }

  dispatch(): void {
    try {
      this.#start(this)
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
    this.sent = true
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    // Informational answers come before the real one.
    if (this.#over || status < 200) return
    this.#answered = true
    this.#receiver.head(status, headers)
    if (this.#paused) controller.pause()
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#over) this.#receiver.data(chunk)
  }

  onResponseEnd(): void {
    if (this.connection !== null) this.connection.served++
    if (this.#over) return
    this.#over = true
    this.#receiver.end()
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    if (this.#over) return
    const stale = this.sent && !this.#answered && (this.connection?.served ?? 0) > 0
    if (stale && this.#stale++ < STALE_MAX) {
      this.#controller = null
      this.dispatch()
      return
    }
    this.#over = true
    this.#receiver.failed(stale ? { ...failureOf(error, true), kind: 'stale' } : failureOf(error, this.sent))
  }
}

const NOT_REACHED =
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|EACCES|ENOENT|UND_ERR_CONNECT_TIMEOUT|UND_ERR_PRX_TLS|CERT_|ERR_TLS|ERR_SSL|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_)/

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
