import type { JsonObject } from '../../../json.js'
import type { Call, Failure } from '../provider.js'
import type { SandboxOptions } from './options.js'
import type { Reply } from './reply.js'

/** One request as a surface sees it. */
export interface Spoken {
  /** What was forwarded. */
  readonly body: JsonObject
  readonly call: Call
  readonly options: SandboxOptions
}

/** What a surface has to say to it. `tokens`: pieces of the longest choice; with a pace, the answer takes as long as they would. */
export type Said = { readonly kind: 'json'; readonly body: JsonObject; readonly tokens: number } | Streamed | Refused

/** A reply, `n` times, as a stream; `usage` where it is wanted. */
export interface Streamed {
  readonly kind: 'stream'
  readonly reply: Reply
  readonly n: number
  readonly usage?: JsonObject
}

export interface Refused {
  readonly kind: 'refusal'
  readonly failure: Failure & { readonly status: number }
}
