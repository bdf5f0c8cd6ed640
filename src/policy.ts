import type { Key, Model } from './config/config.js'
import type { Body } from './endpoints/endpoint.js'
import type { ErrorOptions, GatewayError } from './errors.js'
import type { Arrived, Asked, Ended, Held } from './exchange.js'
import type { JsonObject } from './json.js'
import type { Claim, Counter, Reading } from './ledger/ledger.js'
import type { Window, WindowKind } from './ledger/windows.js'
import type { Usage } from './metering/usage.js'

export type MaybePromise<T> = T | Promise<T>
export type HeaderFields = Readonly<Record<string, string>>

/** What passes by on its way to the client. */
export type Observation =
  | { readonly kind: 'head'; readonly status: number; readonly target: Model }
  /** One event of a stream, or the whole answer. */
  | { readonly kind: 'event'; readonly data: JsonObject }
  | { readonly kind: 'usage'; readonly usage: Usage }

/** How an exchange ended. `cost` in Rial. */
export type Outcome =
  | { readonly state: 'settled' | 'partial'; readonly usage: Usage; readonly cost: bigint }
  /** `refused`: never held. `voided`: held and released. */
  | { readonly state: 'refused' | 'voided'; readonly error: unknown }
  /** A page that is not metered (GET /v1/key, /v1/models). */
  | { readonly state: 'answered' }

/** A rule that requests pass. Hooks are optional, run in the order of gateway.yaml, and return what they contribute. */
export interface Policy {
  readonly name: string
  /** What it calls its own refusals: metrics tell these apart, and count any other as `other`. At most 32, of small letters, digits and `_`. */
  readonly codes?: readonly string[]
  /** Who asks? Runs before the body is read. The first key that is returned counts. */
  identify?(exchange: Arrived): MaybePromise<Key | undefined>
  /** Another body in its place, before anything is priced. */
  amend?(body: Body, exchange: Arrived): MaybePromise<Body | undefined>
  /** May it run, and what does it claim? Refuse by throwing a GatewayError (`host.error`). */
  admit?(exchange: Asked): MaybePromise<readonly Claim[] | undefined>
  /** Header fields for one target; once per attempt. */
  forward?(exchange: Held, target: Model): MaybePromise<HeaderFields | undefined>
  /** The answer passes by: head, each event, the usage. Throwing cuts it off. */
  observe?(exchange: Held, seen: Observation): void
  /** Header fields of the answer, errors included. */
  respond?(exchange: Ended, error?: GatewayError): MaybePromise<HeaderFields | undefined>
  /** Exactly once for every exchange, in reverse order, whatever happened. */
  finish?(exchange: Ended, outcome: Outcome): MaybePromise<void>
  /** The chain is replaced or the gateway stops; no exchange is left that uses it. */
  close?(): MaybePromise<void>
}

/** All that a policy may touch besides the exchange. */
export interface Host {
  readonly keys: ReadonlyMap<string, Key>
  /** The window of a kind at a moment (ms since the epoch), in the configured zone. */
  window(kind: WindowKind, at: number): Window
  /** Now, in milliseconds since the epoch, by the clock that windows go by. */
  now(): number
  read(counters: readonly Counter[]): Promise<Reading[]>
  /** The refusal to throw; a code of the policy's own brings its own status. */
  error(code: string, message: string, options?: ErrorOptions): GatewayError
  log(message: string, fields?: Readonly<Record<string, unknown>>): void
}

/** What the module of a policy exports as default. `options` is what `with:` says, checked against the module's export `options`. */
export type PolicyFactory<Options = never> = (options: Options, host: Host) => MaybePromise<Policy>
