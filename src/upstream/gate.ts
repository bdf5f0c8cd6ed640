import { GatewayError } from '../errors.js'
import type { Delivery, Receiver, Transport, TransportFailure, TransportRequest } from './providers/provider.js'

export interface GateSettings {
  /** Requests under way at one time. */
  readonly connections: number
  /** Requests that may wait. */
  readonly queue: number
  /** Milliseconds that one may wait. */
  readonly timeoutMs: number
}

/** A request that may have to wait before it is sent. */
export interface Entry {
  /**
   * Resolves when a connection is free, with what sends over it. Rejects with `overloaded` where too many wait or it took too long, and with
   * what `leave` was given.
   */
  readonly entered: Promise<Transport>
  /** Whoever asked is gone: nothing will be sent. Without effect once it has entered. */
  leave(why: GatewayError): void
}

interface Waiting {
  readonly enter: () => void
}

/**
 * The door of one provider: so many requests are let in at one time, so many wait in line, in the order in which they came. A place is given
 * back when the answer is over, however it ends.
 */
export class Gate {
  readonly #settings: GateSettings
  readonly #transport: Transport
  readonly #line = new Set<Waiting>()
  #inside = 0

  constructor(transport: Transport, settings: GateSettings) {
    this.#transport = transport
    this.#settings = settings
  }

  get inside(): number {
    return this.#inside
  }

  get waiting(): number {
    return this.#line.size
  }

  /** A connection, if one is free and nobody waits for it. */
  free(): Transport | null {
    if (this.#inside >= this.#settings.connections || this.#line.size > 0) return null
    this.#inside++
    return this.#pass()
  }

  enter(): Entry {
    const { connections, queue } = this.#settings
    const free = this.free()
    if (free !== null) return { entered: Promise.resolve(free), leave: () => {} }
    if (this.#line.size >= queue) {
      const entered = Promise.reject(
        overloaded(`The provider is busy: ${connections} requests are under way and ${this.#line.size} wait, which is all that may.`),
      )
      return { entered, leave: () => {} }
    }
    return this.#wait()
  }

  #wait(): Entry {
    const { timeoutMs, connections } = this.#settings
    let leave!: (why: GatewayError) => void
    const entered = new Promise<Transport>((resolve, reject) => {
      const out = (why: GatewayError): void => {
        if (!this.#line.delete(waiting)) return
        clearTimeout(timer)
        reject(why)
      }
      const timer = setTimeout(
        () => out(overloaded(`The provider is busy: none of ${connections} requests ended within ${timeoutMs / 1000} s.`)),
        timeoutMs,
      )
      const waiting: Waiting = {
        enter: () => {
          clearTimeout(timer)
          this.#inside++
          resolve(this.#pass())
        },
      }
      this.#line.add(waiting)
      leave = out
    })
    return { entered, leave }
  }

  readonly #back = (): void => {
    this.#inside--
    for (const next of this.#line) {
      this.#line.delete(next)
      next.enter()
      break
    }
  }

  /** Sends once, and gives the place back at the end of it. */
  #pass(): Transport {
    return new Pass(this.#transport, this.#back)
  }
}

function overloaded(message: string): GatewayError {
  return new GatewayError('overloaded', message, { retryable: true, retryAfter: 1 })
}

/**
 * One place inside: stands between a request and what sends it, and notices its end. What the receiver throws, which in a handler of a socket
 * would end the process, or leave the request under way for ever, ends this request alone: see `Receiver`.
 */
class Pass implements Transport, Delivery, Receiver {
  readonly #transport: Transport
  readonly #back: () => void
  #inside = true
  #delivery!: Delivery
  #receiver!: Receiver

  constructor(transport: Transport, back: () => void) {
    this.#transport = transport
    this.#back = back
  }

  send(request: TransportRequest, receiver: Receiver): Delivery {
    this.#receiver = receiver
    this.#delivery = this.#transport.send(request, this)
    return this
  }

  async close(): Promise<void> {
    this.#over()
  }

  get sent(): boolean {
    return this.#delivery.sent
  }

  pause(): void {
    this.#delivery.pause()
  }

  resume(): void {
    this.#delivery.resume()
  }

  abort(): void {
    this.#delivery.abort()
    this.#over()
  }

  started(): void {
    try {
      this.#receiver.started?.()
    } catch (fault) {
      this.#fault(fault)
    }
  }

  head(status: number, headers: Parameters<Receiver['head']>[1]): void {
    try {
      this.#receiver.head(status, headers)
    } catch (fault) {
      this.#fault(fault)
    }
  }

  data(chunk: Buffer): void {
    try {
      this.#receiver.data(chunk)
    } catch (fault) {
      this.#fault(fault)
    }
  }

  end(): void {
    this.#over()
    try {
      this.#receiver.end()
    } catch (fault) {
      this.#fault(fault)
    }
  }

  failed(failure: TransportFailure): void {
    this.#over()
    try {
      this.#receiver.failed(failure)
    } catch (fault) {
      this.#fault(fault)
    }
  }

  #fault(cause: unknown): void {
    this.abort()
    this.#receiver.failed({ kind: 'fault', sent: true, message: 'a fault of the receiver', cause })
  }

  #over(): void {
    if (!this.#inside) return
    this.#inside = false
    this.#back()
  }
}
