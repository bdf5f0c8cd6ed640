import type { ProviderSettings } from '../config/config.js'
import { Deadline } from '../deadline.js'
import type { Endpoint } from '../endpoints/endpoint.js'
import { asGatewayError, type GatewayError } from '../errors.js'
import { joinedFields } from '../http/headers.js'
import type { JsonObject } from '../json.js'
import type { Usage } from '../metering/usage.js'
import { Pieces } from '../pieces.js'
import { broke, explained, type Failed, interrupted, refused, unframed } from './explain.js'
import {
  type Call,
  type Delivery,
  type HeaderFields,
  type Provider,
  ProviderFailure,
  type Receiver,
  type Transport,
  type TransportFailure,
  type TransportRequest,
  type Wire,
} from './providers/provider.js'
import { isPlain, REFUSAL_BYTES_MAX } from './refusal-body.js'
import { AnswerStream } from './stream.js'
import { TargetFailure, UNKNOWN, unreachable } from './trouble.js'
import type { WholeAnswer } from './whole.js'

/** The most that a whole answer may have, in bytes. */
export const ANSWER_BYTES_MAX = 40 * 1024 * 1024
/** A stream that was accepted and stays silent is taken as begun after this time, so that the client can be kept alive. Milliseconds. */
export const SILENCE_MS = 15_000
/** How long a provider may keep its connection open after its stream is over, before it is closed. Milliseconds. */
const LINGER_MS = 1_000

type UpstreamHeaders = Readonly<Record<string, string | string[] | undefined>>

export type Answered =
  | { readonly kind: 'whole'; readonly answer: WholeAnswer; readonly headers: UpstreamHeaders }
  | { readonly kind: 'stream'; readonly stream: AnswerStream; readonly headers: UpstreamHeaders }

export interface AttemptFacts {
  readonly call: Call
  readonly settings: ProviderSettings
  readonly provider: Provider
  readonly wire: Wire
  readonly transport: Transport
  readonly endpoint: Endpoint
  readonly includeUsage: boolean
  readonly meter: (chunk: JsonObject, counted?: number) => Usage | null
  /** The client's answer of a provider's whole one: here (`wholeAnswer`), or on another thread where it is large. */
  readonly whole: (bytes: Pieces, headers: HeaderFields) => WholeAnswer | Promise<WholeAnswer>
  /** Does the request have this field? */
  readonly asks: (field: string) => boolean
  /** Wall clock, for a `retry-after` that is a date. */
  readonly now: () => number
}

/**
 * One try at one target. `answered` resolves once there is something to tell the client, and rejects with a GatewayError before; what
 * breaks later is told by the stream. All the provider's failures become GatewayErrors here (see explain.ts) and nowhere else.
 */
export class Attempt implements Receiver {
  readonly answered: Promise<Answered>
  readonly #facts: AttemptFacts
  readonly #delivery: Delivery
  #resolve!: (answered: Answered) => void
  #reject!: (error: GatewayError) => void
  #mode: 'head' | 'error' | 'whole' | 'events' | 'over' = 'head'
  #status = 0
  #headers: UpstreamHeaders = {}
  #pieces = new Pieces()
  #stream: AnswerStream | null = null
  #told = false
  #paused = false
  readonly #deadline: Deadline
  /** What is waited for, for how long and until when; and when all of it has taken too long. Of the monotonic clock. */
  #waiting: 'connect' | 'first_byte' | 'idle' = 'connect'
  #waitMs: number
  #waitUntil: number
  #totalUntil: number
  /** Of how many chunks it has been noted that they came. `Infinity`: of those to come, it will not be. */
  #noted = 0
  #silence: NodeJS.Timeout | null = null
  #lingering: NodeJS.Timeout | null = null

  /** `sent` is not kept: an answer may last far longer than what it answers is needed. */
  constructor(facts: AttemptFacts, sent: Pick<TransportRequest, 'key' | 'headers' | 'body'>) {
    this.#facts = facts
    this.answered = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    const { timeout } = facts.settings
    const now = performance.now()
    this.#waitMs = timeout.connect
    this.#waitUntil = now + timeout.connect
    this.#totalUntil = now + timeout.total
    this.#deadline = new Deadline(() => this.#guard(() => this.#timedOut()))
    this.#deadline.move(Math.min(this.#waitUntil, this.#totalUntil), now)
    this.#delivery = facts.transport.send(
      { key: sent.key, path: facts.wire.path(facts.call), headers: sent.headers, body: sent.body, call: facts.call },
      this,
    )
    // What answers in this process has no connection to wait for.
    if (this.#delivery.sent) this.started()
  }

  started(): void {
    if (this.#mode === 'head') this.#waitFor('first_byte')
  }

  /** The provider may have seen the request. */
  get sent(): boolean {
    return this.#delivery.sent
  }

  pause(): void {
    this.#paused = true
    this.#delivery.pause()
    if (this.#mode === 'over') return
    // A client that does not read is not the provider's silence.
    this.#waitUntil = Number.POSITIVE_INFINITY
    if (this.#noted > 0) this.#totalUntil = Number.POSITIVE_INFINITY
    this.#deadline.move(this.#totalUntil, performance.now())
  }

  resume(): void {
    this.#paused = false
    if (this.#mode === 'over') return
    if (this.#totalUntil === Number.POSITIVE_INFINITY) this.#totalUntil = performance.now() + this.#facts.settings.timeout.total
    this.#waitFor('idle')
    this.#delivery.resume()
  }

  /** Nobody listens any more: it is read on, for `timeout.total` at most. */
  drain(): void {
    this.#noted = Number.POSITIVE_INFINITY
    this.#totalUntil = Number.POSITIVE_INFINITY
    this.resume()
  }

  /** Closes the connection to the provider. Where nothing has been told yet, `answered` rejects with `why`. */
  abort(why: GatewayError): void {
    this.#stop()
    this.#delivery.abort()
    this.#fail(why)
  }

  head(status: number, headers: UpstreamHeaders): void {
    this.#status = status
    this.#headers = headers
    this.#waitFor('idle')
    const type = String(headers['content-type'] ?? '').toLowerCase()
    if (status < 200 || status > 299) {
      this.#mode = 'error'
    } else if (!isPlain(headers['content-encoding'])) {
      this.#break(new ProviderFailure({ message: 'The provider compressed its answer though it was asked not to.' }))
    } else if (this.#facts.call.stream && !/json|html/.test(type)) {
      const { call, wire, endpoint, includeUsage, meter } = this.#facts
      this.#mode = 'events'
      this.#stream = new AnswerStream({ call, wire, endpoint, includeUsage, meter })
      this.#silence = setTimeout(() => this.#tellStream(), SILENCE_MS)
    } else if (type.startsWith('text/event-stream')) {
      this.#break(new ProviderFailure({ message: 'The provider answered with a stream that nobody asked for.' }))
    } else {
      this.#mode = 'whole'
      if (Number(headers['content-length']) > ANSWER_BYTES_MAX) this.#tooLarge()
    }
  }

  data(chunk: Buffer): void {
    if (this.#mode === 'over') return
    if (this.#mode === 'events') {
      const stream = this.#stream as AnswerStream
      stream.push(chunk)
      this.#afterEvents(stream)
      if (!stream.over) this.#wait(stream.told)
      return
    }
    this.#wait(0)
    const bytes = this.#pieces.length + chunk.length
    if (this.#mode === 'error') {
      if (bytes <= REFUSAL_BYTES_MAX) this.#pieces.add(chunk)
      else this.end()
    } else if (bytes > ANSWER_BYTES_MAX) {
      this.#tooLarge()
    } else {
      this.#pieces.add(chunk)
    }
  }

  end(): void {
    const mode = this.#mode
    if (mode === 'over') return
    if (mode === 'events') {
      const stream = this.#stream as AnswerStream
      stream.end()
      const error = stream.failedAtOnce
      // Of what the provider itself tells as its failure, the status is another one.
      if (error instanceof ProviderFailure && (error.failure.status ?? 502) === 502 && unframed(this.#failed))
        this.#fail(broke(error, this.#facts))
      this.#afterEvents(stream)
      this.#stop()
      return
    }
    const pieces = this.#pieces
    this.#stop()
    if (mode === 'error') {
      this.#delivery.abort()
      this.#fail(refused(pieces.joined(), this.#failed))
    } else {
      this.#whole(pieces)
    }
  }

  failed({ kind, sent, message, cause }: TransportFailure): void {
    if (this.#mode === 'error' && kind !== 'fault') {
      this.end()
      return
    }
    this.#stop()
    if (kind === 'fault') {
      this.#fail(asGatewayError(cause))
    } else if (kind === 'refused') {
      this.#fail(unreachable(cause))
    } else if (kind === 'timeout') {
      this.#fail(this.#tooSlow(`timeout.${message}`, sent))
    } else {
      this.#fail(broke(cause, this.#facts))
    }
  }

  #whole(pieces: Pieces): void {
    try {
      const answer = this.#facts.whole(pieces, joinedFields(this.#headers))
      if (!(answer instanceof Promise)) {
        this.#tellWhole(answer)
        return
      }
      // The provider is done; the time for all of it goes on.
      this.#waitUntil = Number.POSITIVE_INFINITY
      this.#deadline.move(this.#totalUntil, performance.now())
      answer.then(whole => this.#tellWhole(whole)).catch(error => this.#guard(() => this.#break(error)))
    } catch (error) {
      this.#break(error)
    }
  }

  #tellWhole(answer: WholeAnswer): void {
    // Aborted meanwhile, or too late.
    if (this.#told) return
    this.#deadline.clear()
    const { call, wire, endpoint, includeUsage, meter } = this.#facts
    if (call.stream) {
      const stream = new AnswerStream({ call, wire, endpoint, includeUsage, meter })
      stream.retell(answer.json)
      this.#resolve({ kind: 'stream', stream, headers: this.#headers })
    } else {
      meter(answer.metered, answer.counted)
      this.#resolve({ kind: 'whole', answer, headers: this.#headers })
    }
    this.#told = true
  }

  #afterEvents(stream: AnswerStream): void {
    if (!this.#told && stream.begun) {
      const error = stream.failedAtOnce
      if (error === null) this.#tellStream()
      else this.#fail(explained(error, this.#failed))
    }
    if (stream.over && this.#mode !== 'over') this.#linger()
  }

  #tellStream(): void {
    if (this.#told) return
    this.#told = true
    if (this.#silence !== null) clearTimeout(this.#silence)
    this.#resolve({ kind: 'stream', stream: this.#stream as AnswerStream, headers: this.#headers })
  }

  /** The answer is whole, the connection is not closed yet: leaving it to end by itself keeps it usable for the next request. */
  #linger(): void {
    this.#stop()
    this.#lingering = setTimeout(() => this.#delivery.abort(), LINGER_MS)
    this.#lingering.unref()
  }

  #tooLarge(): void {
    this.#break(new ProviderFailure({ message: `The provider's answer is larger than ${ANSWER_BYTES_MAX} bytes.` }))
  }

  #break(error: unknown): void {
    this.#stop()
    this.#delivery.abort()
    this.#fail(explained(error, this.#failed))
  }

  #fail(error: GatewayError): void {
    // Of one that nobody has been told of, too: what it has reported may be billed.
    this.#stream?.fail(error)
    if (this.#told) return
    this.#told = true
    this.#reject(error)
  }

  /** For what is called by a timer or a promise: a fault of ours ends this answer, and not the process. */
  #guard(step: () => void): void {
    try {
      step()
    } catch (cause) {
      this.#delivery.abort()
      this.failed({ kind: 'fault', sent: true, message: 'a fault of the receiver', cause })
    }
  }

  #stop(): void {
    this.#mode = 'over'
    this.#pieces = new Pieces()
    this.#deadline.clear()
    if (this.#lingering !== null) clearTimeout(this.#lingering)
    if (this.#silence !== null) clearTimeout(this.#silence)
  }

  #waitFor(which: 'first_byte' | 'idle'): void {
    this.#waiting = which
    this.#waitMs = this.#facts.settings.timeout[which]
    this.#wait(0)
  }

  /** `told`: chunks of a stream. It may take as long as it keeps talking, which comments are not. */
  #wait(told: number): void {
    const now = performance.now()
    if (told > this.#noted) {
      this.#noted = told
      this.#totalUntil = this.#paused ? Number.POSITIVE_INFINITY : now + this.#facts.settings.timeout.total
    }
    // Who is paused waits for nothing.
    if (!this.#paused) this.#waitUntil = now + this.#waitMs
    this.#deadline.move(Math.min(this.#waitUntil, this.#totalUntil), now)
  }

  #timedOut(): void {
    const which = this.#waitUntil <= this.#totalUntil ? this.#waiting : 'total'
    const ms = which === 'total' ? this.#facts.settings.timeout.total : this.#waitMs
    // Of a refusal the status has come: what is there of its words will do.
    if (this.#mode === 'error') {
      this.end()
      return
    }
    const sent = this.#delivery.sent
    this.#stop()
    this.#delivery.abort()
    this.#fail(which === 'connect' ? unreachable() : this.#tooSlow(`timeout.${which} of ${ms / 1000} s`, sent))
  }

  #tooSlow(what: string, sent: boolean): GatewayError {
    const retryable = !sent || this.#facts.settings.retry_unknown
    return new TargetFailure('upstream_timeout', `The provider was too slow: ${what} has passed.`, UNKNOWN, { retryable })
  }

  /** For what reads a failure. */
  get #failed(): Failed {
    const { provider, settings, asks, now } = this.#facts
    return { status: this.#status, headers: this.#headers, provider, settings, asks, now }
  }

  /** The error event of a stream that had begun. */
  interrupted(error: unknown): GatewayError {
    return interrupted(error, this.#failed)
  }
}
