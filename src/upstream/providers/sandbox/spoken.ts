import type { JsonObject } from '../../../json.js'
import type { Call, Failure } from '../provider.js'
import type { SandboxOptions } from './options.js'
import type { Step } from './playback.js'

/** One request as a surface sees it. */
export interface Spoken {
  /** What was read from the wire. */
  readonly body: JsonObject
  readonly call: Call
  readonly options: SandboxOptions
}

/** What a surface has to say to it. */
export type Said =
  /** `tokens`: pieces of the longest choice; with a pace, the answer takes as long as they would. */
  | { readonly kind: 'json'; readonly body: JsonObject; readonly tokens: number }
  /** `closing`: what makes the stream whole (finish, usage, [DONE]). */
  | { readonly kind: 'stream'; readonly events: Iterable<Step>; readonly closing: Iterable<Step> }
  | { readonly kind: 'refusal'; readonly failure: Failure & { readonly status: number } }
