import type { Config, Key } from '../config/config.js'
import type { Estimate, Surface } from '../endpoints/endpoint.js'
import type { ErrorOptions } from '../errors.js'
import type { JsonObject } from '../json.js'
import type { Call, Failure, HeaderFields } from '../upstream/providers/provider.js'

/* What goes to a thread, and comes back. Bytes are shared, or change hands: nothing large is copied. */

export type ToThread =
  | { readonly kind: 'config'; readonly number: number; readonly config: Config }
  | { readonly kind: 'question'; readonly id: number; readonly config: number; readonly work: QuestionWork }
  | { readonly kind: 'answer'; readonly id: number; readonly config: number; readonly work: AnswerWork }

/** What a body asks for. */
export interface QuestionWork {
  /** They come back with the answer. */
  readonly bytes: readonly Uint8Array[]
  /** Other threads will read them, too: they come back in memory that all see. */
  readonly shared: boolean
  readonly surface: Surface
  readonly key: Key
  /** For ids that a translation makes. */
  readonly call: Pick<Call, 'id' | 'created'>
}

/** A provider's whole answer, for the client. */
export interface AnswerWork {
  readonly bytes: readonly Uint8Array[]
  readonly headers: HeaderFields
  readonly surface: Surface
  /** The model that was asked for, and the position of the target that answers among its targets. */
  readonly model: string
  readonly place: number
  readonly call: Pick<Call, 'id' | 'created'>
  /** What was sent to it: the bytes of the client's body, or what was made of them. */
  readonly asked: { readonly bytes: readonly Uint8Array[] } | { readonly body: JsonObject }
}

/** A question without what can be found in the config again. */
export interface ToldQuestion {
  readonly model: string
  readonly targets: readonly {
    readonly place: number
    /** What its translation made, or threw. */
    readonly outgoing?: Uint8Array
    readonly refused?: Thrown
    /** Names of the fields that are forwarded. */
    readonly fields: readonly string[]
    readonly estimate: Estimate
    readonly bound?: number
  }[]
  readonly stream: boolean
  readonly includeUsage: boolean
}

export interface ToldAnswer {
  readonly text: Uint8Array
  /** The provider's usage, as it stands in the answer, bounded. */
  readonly metered: JsonObject
  /** Tokens of what it generated, counted. */
  readonly counted: number
}

/** What was thrown, in a form that passes between threads. */
export type Thrown =
  | { readonly kind: 'error'; readonly code: string; readonly message: string; readonly options: ErrorOptions }
  | { readonly kind: 'failure'; readonly failure: Failure }
  | { readonly kind: 'event'; readonly body: JsonObject }
  /** A fault of ours. */
  | { readonly kind: 'fault'; readonly stack: string }

export type Told = {
  readonly id: number
  /** The bytes of a question. */
  readonly bytes?: readonly Uint8Array[]
} & ({ readonly done: ToldQuestion | ToldAnswer } | { readonly thrown: Thrown })
