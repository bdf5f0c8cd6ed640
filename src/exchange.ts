import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Key, Model } from './config/config.js'
import type { Body, Estimate, Surface } from './endpoints/endpoint.js'
import type { Claim, Reading } from './ledger/ledger.js'
import type { Pieces } from './pieces.js'

/** A request whose header has arrived; its body has not been read. */
export interface Arrived {
  /** `req_` + ULID. */
  readonly id: string
  /** Milliseconds since the epoch: the moment that decides the windows. */
  readonly at: number
  readonly surface: Surface | 'key' | 'models'
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** The client's own `x-request-id`, if it is printable and at most 128 characters. */
  readonly clientRequestId: string | null
  /** 32 hex digits: the client's trace, or one begun here. */
  readonly traceId: string
  /** `ANONYMOUS` until a policy has identified the caller. */
  readonly key: Key
}

/** It is known what is asked for, of which model, and what it can cost at most. */
export interface Asked extends Arrived {
  /** The checked body. Large bodies are parsed when this is first read, and gone after `finish`: a policy that does not need it should not touch it. */
  readonly body: Body
  readonly model: Model
  readonly stream: boolean
  readonly estimate: Estimate
  /** Rial that the estimate costs, at the dearest of the model and its fallbacks. */
  readonly estimateRial: bigint
}

/** All claims are admitted, durably. */
export interface Held extends Asked {
  /** The claims' counters right after the admission, this request's own claims included. */
  readonly readings: readonly Reading[]
}

/** The end of any exchange, however far it came: what was not reached is absent. */
export interface Ended extends Arrived {
  readonly model?: Model
  readonly stream: boolean
  readonly estimate?: Estimate
  readonly estimateRial?: bigint
  /** Of an admission or of a refusal; empty where neither came about. */
  readonly readings: readonly Reading[]
}

/** Nobody in particular: no ceiling, no account. Policies need no branch for «no key». */
export const ANONYMOUS: Key = {
  name: 'anonymous',
  account: null,
  plan: {
    name: 'anonymous',
    requests_per_minute: null,
    requests_per_hour: null,
    requests_per_day: null,
    tokens_per_minute: null,
    models: null,
  },
  budget: { daily_tokens: null, daily_rial: null, monthly_rial: null },
  sha256: '',
  models: null,
  expires: null,
  disabled: false,
}

/** What an exchange is known by from its first line on. */
export interface Arrival {
  readonly id: string
  readonly at: number
  /** Of the monotonic clock, in milliseconds. */
  readonly since: number
  readonly surface: Arrived['surface']
  readonly path: string
  readonly clientRequestId: string | null
  readonly traceId: string
  readonly traceparent: string
  /** The client's own, where its trace goes on. */
  readonly tracestate: string | undefined
}

/** One try at a target, as the usage record tells it. */
export interface Tried {
  readonly target: string
  /** `answered`, or the code of the error. */
  readonly result: string
  readonly ms: number
}

const NO_CLAIMS: readonly Claim[] = []

/**
 * A request and its answer, filled in as it goes its way. Only the lifecycle writes here; everybody else gets one of the read-only views above.
 */
export class Exchange implements Ended {
  readonly id: string
  readonly at: number
  readonly since: number
  readonly surface: Arrived['surface']
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly clientRequestId: string | null
  readonly traceId: string
  readonly traceparent: string
  readonly tracestate: string | undefined
  readonly request: IncomingMessage
  readonly response: ServerResponse
  key: Key = ANONYMOUS
  /** Gives the checked body; set once the bytes are there. */
  parse: (() => Body) | null = null
  /** What its body takes of the room for bodies. */
  bodyBytes = 0
  /** The body as it came, where its memory is to be given back. */
  bytes: Pieces | null = null
  declare model: Model
  declare estimate: Estimate
  declare estimateRial: bigint
  stream = false
  /** What the policies claimed; `readings` are their counters. */
  claims: readonly Claim[] = NO_CLAIMS
  readings: readonly Reading[] = []
  readonly tried: Tried[] = []
  /** The client has left (or was made to leave) before its answer was whole. */
  gone = false
  /** It was made to leave, because the gateway stops. */
  drained = false
  /** What to do when it leaves; one thing at a time, set by the phase that is under way. */
  onGone: (() => void) | null = null
  /** See InFlight. */
  place = 0
  #body: Body | undefined
  /** Moments of the monotonic clock, where they have been reached. */
  readonly marks: { read?: number; sent?: number; first?: number; answered?: number } = {}

  constructor(arrival: Arrival, request: IncomingMessage, response: ServerResponse) {
    this.id = arrival.id
    this.at = arrival.at
    this.since = arrival.since
    this.surface = arrival.surface
    this.method = request.method ?? ''
    this.path = arrival.path
    this.headers = request.headers
    this.clientRequestId = arrival.clientRequestId
    this.traceId = arrival.traceId
    this.traceparent = arrival.traceparent
    this.tracestate = arrival.tracestate
    this.request = request
    this.response = response
    response.on('close', () => {
      if (!response.writableFinished) this.leave()
    })
  }

  /** See `Asked.body`. */
  get body(): Body {
    this.#body ??= this.parse?.()
    if (this.#body === undefined) throw new Error('the body has not been read')
    return this.#body
  }

  /** The gateway stops and this exchange has had its time. */
  drain(): void {
    this.drained = true
    // A client that had left before may have an answer that is still read for its usage: that ends now, too.
    if (this.gone) this.onGone?.()
    else this.leave()
    this.response.destroy()
  }

  /** The client is gone: whatever is under way for it hears so. */
  leave(): void {
    if (this.gone) return
    this.gone = true
    this.onGone?.()
  }
}
