import type { Client } from 'undici'
import type { ProviderSettings } from '../config/config.js'

/** How long nothing is kept of a provider that has spoken unasked. Milliseconds. */
const DISTRUST_MS = 60_000

/** Carries one request after another, all for the same key; a connection that was closed meanwhile is made anew. */
export interface Connection {
  readonly client: Client
  readonly kept: Kept
  /** It may carry another request after this one. */
  readonly lasting: boolean
  idle: boolean
  /** A request has begun to be written, and its answer is not whole. Set by whoever writes it. */
  asked: boolean
  /** Which of all idle ones has been so for longest: it has the least. */
  since: number
}

/** What there is for one key. */
interface Kept {
  readonly key: string
  /** The one that was used last comes last, and goes first: what is too many is left alone, and ends. */
  readonly idle: Connection[]
  open: number
}

export interface ConnectionsOptions {
  readonly keep: ProviderSettings['keep_connections']
  readonly max: number
  /** Milliseconds; never goes back. */
  readonly now: () => number
  /** The provider has written what nobody had asked for: for a minute from now nothing is kept. Not told again meanwhile. */
  readonly distrusted: () => void
}

/**
 * The connections to one provider. With `keep` as `key` one that has carried a request of a key never carries another key's: whatever a
 * provider writes on it, and whenever, no other key's request is there to take it for its answer. There are never more than `max`, as long as
 * no more requests are under way: where a key has none to go on with, the one that has been idle for longest makes room.
 */
export class Connections {
  readonly #open: () => Client
  readonly #options: ConnectionsOptions
  readonly #byKey = new Map<string, Kept>()
  readonly #all = new Set<Connection>()
  #releases = 0
  #distrustedUntil = Number.NEGATIVE_INFINITY

  /** `open` gives what makes its connection when it is needed. */
  constructor(open: () => Client, options: ConnectionsOptions) {
    this.#open = open
    this.#options = options
  }

  get size(): number {
    return this.#all.size
  }

  /** For one request of a key, until `release` or `discard`. */
  take(key: string): Connection {
    const kept = this.#of(key)
    const connection = kept.idle.pop()
    if (connection === undefined) return this.#fresh(kept, this.#options.keep !== 'off' && !this.#distrusts())
    connection.idle = false
    return connection
  }

  /** One that has never been used, for one request alone. */
  takeFresh(key: string): Connection {
    return this.#fresh(this.#of(key), false)
  }

  /** Its answer is whole. */
  release(connection: Connection): void {
    if (!connection.lasting || this.#distrusts()) {
      this.discard(connection)
      return
    }
    connection.asked = false
    connection.idle = true
    connection.since = this.#releases++
    connection.kept.idle.push(connection)
  }

  /** It carries nothing any more. */
  discard(connection: Connection): void {
    const { kept, client } = connection
    if (!this.#all.delete(connection)) return
    if (connection.idle) kept.idle.splice(kept.idle.indexOf(connection), 1)
    connection.idle = false
    if (--kept.open === 0) this.#byKey.delete(kept.key)
    client.close(() => {})
  }

  async close(): Promise<void> {
    const all = [...this.#all]
    this.#all.clear()
    this.#byKey.clear()
    await Promise.all(all.map(({ client }) => client.destroy()))
  }

  #of(asking: string): Kept {
    const key = this.#options.keep === 'shared' ? '' : asking
    let kept = this.#byKey.get(key)
    if (kept === undefined) {
      kept = { key, idle: [], open: 0 }
      this.#byKey.set(key, kept)
    }
    return kept
  }

  #fresh(kept: Kept, lasting: boolean): Connection {
    kept.open++
    if (this.#all.size >= this.#options.max) this.#makeRoom()
    const client = this.#open()
    const connection: Connection = { client, kept, lasting, idle: false, asked: false, since: 0 }
    this.#all.add(connection)
    client.on('disconnect', (_origin, _targets, error) => {
      if (!connection.asked && unasked(error)) this.#distrust()
      // With a request, the request hears of it, or goes out over another.
      if (connection.idle) this.discard(connection)
    })
    return connection
  }

  #makeRoom(): void {
    let longest: Connection | undefined
    for (const { idle } of this.#byKey.values()) {
      const [first] = idle
      if (first !== undefined && (longest === undefined || first.since < longest.since)) longest = first
    }
    if (longest !== undefined) this.discard(longest)
  }

  /** Where one answer has come that nobody had asked for there may be more: no request meets them. */
  #distrust(): void {
    if (!this.#distrusts()) this.#options.distrusted()
    this.#distrustedUntil = this.#options.now() + DISTRUST_MS
    for (const { idle } of [...this.#byKey.values()]) for (const connection of [...idle]) this.discard(connection)
  }

  #distrusts(): boolean {
    return this.#options.now() < this.#distrustedUntil
  }
}

/** Did a connection end because something came over it? Its parser says so of what is no answer, and of an answer without a request. */
function unasked(error: Error): boolean {
  return error.message === 'bad response' || /^HPE_/.test(String((error as { code?: unknown }).code))
}
