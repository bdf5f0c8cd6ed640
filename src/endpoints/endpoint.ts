import type { Model } from '../config/config.js'
import type { JsonObject } from '../json.js'
import type { BodyTexts } from '../metering/estimate.js'

/** What is asked for: the names are those of the config's `surfaces` and of the metrics' label. */
export type Surface = 'chat' | 'completions' | 'rerank' | 'moderations' | 'embeddings'

/** A request's body as it was understood: an object whose own known fields have the types that the endpoint checked. */
export type Body = JsonObject & { readonly model: string }

/** What a request is expected to use, before it runs. Tokens. */
export interface Estimate {
  readonly input: number
  /** The part of `input` that is counted by a rule, not estimated from text: images, audio, files, token ids. Absent: nothing of it. */
  readonly fixed?: number
  /** Every choice's cap added up, and what it is told to expect, which is billed where it does not say it: n × (cap + prediction). 0 where nothing is generated. */
  readonly output: number
}

/** One surface that is metered. Pure: all that it knows is in its arguments. */
export interface Endpoint {
  readonly surface: Surface
  /** Paths under which it is called, POST all. */
  readonly paths: readonly string[]
  /** Path segment that an OpenAI-compatible provider serves it under: `/chat/completions`. */
  readonly path: string
  /** Prefix of the answer's `id` (`chatcmpl-`); empty where an answer has none. */
  readonly idPrefix: string
  /** Fields beyond `model` that every model takes and that can not be configured away. */
  readonly fields: ReadonlySet<string>
  /** Optional fields that a model's `parameters` may name. */
  readonly parameters: ReadonlySet<string>
  /** Does this request ask for an event stream? */
  streams(body: JsonObject): boolean
  /** Throws `invalid_request` with `param` for the first field that is missing or of a wrong type. */
  check(body: JsonObject): void
  /** The cap of one choice's output that is held and sent upstream: the client's, else the model's default, never above the model's. `null`: the surface generates nothing. */
  cap(body: JsonObject, model: Model): number | null
  /**
   * What the provider will count, before anything that it has reported corrects it (metering/calibrations.ts). `texts`: where what several models
   * are sent of one body is read once.
   */
  estimate(body: JsonObject, model: Model, texts?: BodyTexts): Estimate
  /** Is this parsed non-streaming answer one? Else it is `upstream_invalid_response`. */
  answers(answer: JsonObject): boolean
  /** What is billed where the provider reports no usage: what was sent and received, counted; or nothing. */
  readonly unreported: 'counted' | 'nothing'
  /** Text that an answer or an event of its stream generated, for counting where no usage is reported. Absent: nothing is generated, and only input is billed. */
  output?(answer: JsonObject): string
  /**
   * Shapes a provider's answer, already in the surface's format, for this request (rerank: sorted and cut). Absent: its bytes pass as they are,
   * as they do where the very object that was given comes back. `id` and `model` are the relay's. Throws `upstream_invalid_response` where
   * the answer does not fit the request.
   */
  shape?(answer: JsonObject, body: JsonObject, model: Model): JsonObject
}

/** One whose answers are generated: output is billed, too. */
export interface GeneratingEndpoint extends Endpoint {
  output(answer: JsonObject): string
}
