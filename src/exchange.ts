import type { IncomingHttpHeaders } from 'node:http'
import type { Key, Model } from './config/config.js'
import type { Body, Estimate, Surface } from './endpoints/endpoint.js'
import type { Reading } from './ledger/ledger.js'

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
  /** The checked body. Large bodies are parsed when this is first read: a policy that does not need it should not touch it. */
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
