import { GatewayError } from '../errors.js'
import type { Delivery, Receiver, Transport } from './providers/provider.js'

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

  enter(): Entry {
    const { connections, queue } = this.#settings
    if (this.#inside < connections && this.#line.size === 0) {
      this.#inside++
      return { entered: Promise.resolve(this.#pass()), leave: () => {} }
    }
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

  #leave(): void {
    this.#inside--
    for (const next of this.#line) {
      this.#line.delete(next)
      next.enter()
      break
    }
  }

  /** Sends once, and gives the place back at the end of it. */
  #pass(): Transport {
    let inside = true
    const back = (): void => {
      if (!inside) return
      inside = false
      this.#leave()
    }
    return {
      send: (request, receiver) => new Passing(this.#transport.send(request, watched(receiver, back)), back),
      close: async () => back(),
    }
  }
}

function overloaded(message: string): GatewayError {
  return new GatewayError('overloaded', message, { retryable: true, retryAfter: 1 })
}

function watched(receiver: Receiver, over: () => void): Receiver {
  return {
    ...(receiver.started === undefined ? {} : { started: () => receiver.started?.() }),
    head: (status, headers) => receiver.head(status, headers),
    data: chunk => receiver.data(chunk),
    end: () => {
      over()
      receiver.end()
    },
    failed: failure => {
      over()
      receiver.failed(failure)
    },
  }
}

class Passing implements Delivery {
  readonly #delivery: Delivery
  readonly #over: () => void

  constructor(delivery: Delivery, over: () => void) {
    this.#delivery = delivery
    this.#over = over
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
}
