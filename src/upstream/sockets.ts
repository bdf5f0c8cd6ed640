import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import type { buildConnector } from 'undici'

/** Published by undici in the very turn in which it begins to write a request, after the handler has heard `onRequestStart`. */
const SENDING = 'undici:client:sendHeaders'

/** Makes a connection to an origin. */
export type Connector = ReturnType<typeof buildConnector>

/** The connection that a request is written to. */
export interface Line {
  /** It had carried a request before. */
  readonly reused: boolean
  /** Has a byte come over it since the request was written? Over TLS those that it carries count, and not its own words: a goodbye is none. */
  heard(): boolean
}

/**
 * Knows which connection a request goes out on, and whether it had been used before: undici tells of neither, but makes its connections
 * with the `connect` of this. `expect` must be called as a request begins to be written; it hears of its connection at once.
 */
export class Sockets {
  readonly connect: Connector
  readonly #used = new WeakMap<object, boolean>()
  #expecting: ((line: Line) => void) | null = null

  constructor(connect: Connector) {
    this.connect = (target, callback) =>
      connect(target, (...[error, socket]) => {
        if (error !== null) {
          callback(error, null)
          return
        }
        this.#used.set(socket, false)
        callback(null, socket)
      })
    subscribe(SENDING, this.#sending)
  }

  expect(told: (line: Line) => void): void {
    this.#expecting = told
  }

  close(): void {
    unsubscribe(SENDING, this.#sending)
  }

  /** Other providers' requests are heard of here too. */
  readonly #sending = (message: unknown): void => {
    const { socket } = message as { readonly socket: Socket }
    const reused = this.#used.get(socket)
    if (reused === undefined) return
    this.#used.set(socket, true)
    const told = this.#expecting
    this.#expecting = null
    const before = socket.bytesRead
    told?.({ reused, heard: () => socket.bytesRead > before })
  }
}
