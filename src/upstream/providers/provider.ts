import type { Model, ProviderSettings } from '../../config/config.js'
import type { Surface } from '../../endpoints/endpoint.js'
import type { JsonObject } from '../../json.js'

export type HeaderFields = Readonly<Record<string, string>>

/** One server-sent event: `data` without its `data: `, several lines of it joined by line feeds; `event` where the provider names it. */
export interface SseEvent {
  readonly event?: string
  readonly data: string
}

/** One request to one target: all that a translation may depend on. */
export interface Call {
  /** For ids made by a translation: 26 characters, unique to the request. */
  readonly id: string
  /** Seconds since the epoch. */
  readonly created: number
  readonly surface: Surface
  readonly model: Model
  /** What is forwarded: only fields that the model takes, cap and stream settled; the client's wire. */
  readonly body: JsonObject
  readonly stream: boolean
}

/**
 * How one surface is spoken to one kind of provider. Pure: no clock, no network, no ledger. The client's wire is OpenAI's.
 * A method that is absent means that the two wires are the same, and the bytes pass as they are.
 */
export interface Wire {
  /** What follows `base_url`: `/chat/completions`. */
  path(call: Call): string
  /** Client's wire → provider's wire. Throws `invalid_request` where the provider has no word for what is asked. */
  request?(call: Call): JsonObject
  /** The same for a wire that is no JSON: all that is sent. */
  text?(call: Call): string
  /** Provider's wire → client's wire, for an answer that is no stream. Throws where it is no answer. `headers` are lower-case. */
  response?(body: unknown, call: Call, headers: HeaderFields): JsonObject
  /**
   * The same for a stream: one translator per answer, with its own state. It gives the `data` of whole client chunks: role chunk first, one
   * finish chunk per choice, one usage chunk (`choices: []`) last, no `[DONE]` (the relay ends the stream). An error that the provider
   * reports inside its stream is thrown as `ProviderFailure`.
   */
  events?(call: Call): EventTranslator
}

export interface EventTranslator {
  event(event: SseEvent): readonly JsonObject[]
  /** The provider has said that its answer is whole: what follows means nothing, and its body may stay open. Absent: the body's end says so. */
  readonly over?: boolean
  /** The provider's stream ended, or `over` said so: what is still to be told. Throws `ProviderFailure` when it ended too early. */
  end(): readonly JsonObject[]
  /**
   * The usage that the provider has reported so far, as the client's wire has it; `null`: none. It is what a stream that is cut off is billed
   * by. Absent: it is known at the end alone.
   */
  reported?(): JsonObject | null
}

/** What a provider said of its own failure. */
export interface Failure {
  /** The HTTP status that it means, where it is not the answer's own. */
  readonly status?: number
  readonly code?: string
  /** The kind of error that it is there. */
  readonly type?: string
  readonly message?: string
  readonly param?: string
  /** Seconds. */
  readonly retryAfter?: number
  /** What came is no JSON, but may be the beginning of it. */
  readonly torn?: boolean
}

/** A failure reported inside a stream, or in an answer with status 200. */
export class ProviderFailure extends Error {
  constructor(readonly failure: Failure) {
    super(failure.message ?? 'The provider reported a failure.')
    this.name = 'ProviderFailure'
  }
}

/** One kind of provider: `providers/<kind>.ts` exports it as default. */
export interface Provider {
  readonly kind: string
  /** Used where the config gives none. Absent: `base_url` is required. */
  readonly baseUrl?: string
  /** Defaults of a provider's settings for this kind. */
  readonly defaults?: Partial<Pick<ProviderSettings, 'usage_stream' | 'cap' | 'usage' | 'rerank'>>
  readonly wires: { readonly [S in Surface]?: Wire }
  /** Header fields that carry the credentials. Asked once for each provider of a config. */
  authorize(apiKey: string | null, settings: ProviderSettings): HeaderFields
  /** Reads a refusal in the words of this provider. Absent: the common shapes (`error.message`, `message`, `detail`) are tried. */
  failure?(status: number, body: unknown): Failure
  /** Header of the provider's own request id; default `x-request-id`. */
  readonly requestIdHeader?: string
  /** JSON Schemas of the kind's own settings: of a provider, and of a model. */
  readonly options?: JsonObject
  readonly modelOptions?: JsonObject
  /** A kind that answers by itself, in this process, over the same interface as HTTP. Absent: HTTP. */
  transport?(settings: ProviderSettings): Transport
}

/** Carries requests to one provider, and answers back piece by piece. */
export interface Transport {
  /** Starts a request. Never throws: failures come as `receiver.failed`. */
  send(request: TransportRequest, receiver: Receiver): Delivery
  close(): Promise<void>
}

export interface TransportRequest {
  /** The name of the key that it is for. */
  readonly key: string
  readonly path: string
  readonly headers: HeaderFields
  readonly body: string | Uint8Array
  /** For transports that answer by themselves. */
  readonly call: Call
}

/**
 * What an answer calls, in this order: `head` once, `data` any number of times, then `end` or `failed`, once; `failed` may come at any time.
 * Nothing after an abort. A transport need not mind what these throw: it comes back as `failed`, of kind `fault`, which does not throw.
 */
export interface Receiver {
  /** The request begins to leave: a connection is there. Called where the transport can tell, before `head`. */
  started?(): void
  head(status: number, headers: Readonly<Record<string, string | string[] | undefined>>): void
  data(chunk: Buffer): void
  end(): void
  failed(failure: TransportFailure): void
}

/**
 * `refused`: no connection (also DNS, TLS): the request was not sent. `stale`: a reused connection died before any byte of an answer
 * (over HTTP that is sent once more at once, and not told).
 * `timeout`: which one is in `message`. `fault`: the receiver's own, thrown at what it heard. `broken`: anything else. `sent`: may the provider have
 * seen the request?
 */
export interface TransportFailure {
  readonly kind: 'refused' | 'stale' | 'timeout' | 'fault' | 'broken'
  readonly sent: boolean
  readonly message: string
  readonly cause?: unknown
}

export interface Delivery {
  /** The request has begun to leave: the provider may have seen it. */
  readonly sent: boolean
  pause(): void
  resume(): void
  /** Closes the connection to the provider; the receiver hears nothing more. */
  abort(): void
}
