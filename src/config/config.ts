import type { JsonObject } from '../json.js'
import type { Family } from './tokenizer-families.js'

/*
 * What gateway.yaml says, checked and resolved. Plain data throughout (it crosses threads by structured clone); fields keep the names they
 * have in the file. Durations are milliseconds, sizes bytes, money whole Rial as bigint; a ceiling that is `null` is none.
 */

/** Milliseconds. */
export type Ms = number

export interface Address {
  readonly host: string
  readonly port: number
}

/** `null` is no ceiling. Whole numbers. */
export interface Plan {
  readonly name: string
  readonly requests_per_minute: bigint | null
  readonly requests_per_hour: bigint | null
  readonly requests_per_day: bigint | null
  readonly tokens_per_minute: bigint | null
  /** Models that the plan may use: ids, aliases, `provider/*`, `*`. `null`: all. */
  readonly models: readonly string[] | null
}

export interface Budget {
  readonly daily_tokens: bigint | null
  readonly daily_rial: bigint | null
  readonly monthly_rial: bigint | null
}

/** Who asks. Limits, budgets and usage attach to it. */
export interface Key {
  readonly name: string
  readonly account: string | null
  readonly plan: Plan
  readonly budget: Budget
  /** SHA-256 of the secret, 64 lower-case hex digits. The secret itself is not kept. */
  readonly sha256: string
  /** As with a plan; both must allow. */
  readonly models: readonly string[] | null
  /** From this moment on (ms since the epoch) the key is unknown. */
  readonly expires: number | null
  readonly disabled: boolean
}

export interface Account {
  readonly name: string
  readonly opening_balance_rial: bigint
}

/** An exact non-negative rational number of Rial: `numerator / denominator`. */
export interface Rational {
  readonly numerator: bigint
  readonly denominator: bigint
}

/** Rial per 1,000,000 tokens, and per request. Whole Rial (a foreign price is converted and rounded up when the file is read). */
export interface Price {
  readonly input: bigint
  /** What is read from the provider's cache. Defaults to `input`. */
  readonly cached_input: bigint
  readonly output: bigint
  readonly request: bigint
}

export interface Timeouts {
  readonly connect: Ms
  readonly first_byte: Ms
  readonly idle: Ms
  /** Of an answer; of a stream, until it has begun. */
  readonly total: Ms
}

/** When a target is left alone after trouble. */
export interface HealthSettings {
  /** Failed requests in a row. */
  readonly failures: number
  /** The first time; it doubles with each probe that fails, up to 32 times this. */
  readonly ejection: Ms
}

/** One provider as configured. `options` are the kind's own settings, checked against the schema that the kind exports. */
export interface ProviderSettings {
  readonly name: string
  readonly kind: string
  /** Absolute, without a trailing slash. Empty for a kind that needs no server. */
  readonly base_url: string
  readonly api_key: string | null
  /** Authorities that its certificate is held against, in place of the well-known ones. */
  readonly ca?: PemFile
  /** The proxy that it is reached through, credentials included: it is shown to nobody. */
  readonly proxy?: string
  readonly timeout: Timeouts
  readonly max_connections: number
  /** Which requests may follow on a connection: those of the same key, any, or none. */
  readonly keep_connections: 'key' | 'shared' | 'off'
  /** Requests that may wait for a connection, and how long. */
  readonly queue: number
  readonly queue_timeout: Ms
  /** Another try even where a request may have run already. */
  readonly retry_unknown: boolean
  /** `null`: a target is never left alone. */
  readonly health: HealthSettings | null
  /** How a stream reports usage: asked for by `stream_options`, always, or never. */
  readonly usage_stream: 'option' | 'always' | 'none'
  /** The cap's spelling upstream. */
  readonly cap: 'max_tokens' | 'max_completion_tokens'
  readonly on_disconnect: 'abort' | 'drain'
  /** `strict`: total_tokens is not used to correct completion_tokens. */
  readonly usage: 'normal' | 'strict'
  /**
   * How it counts the input of a rerank. `pairs`: the query once per document; `query_once`: the query once; `units`: searches of up to
   * 100 documents, which then stand in the place of tokens (a price is per 1,000,000 searches). Absent: `pairs`, the most that any counts.
   */
  readonly rerank?: 'pairs' | 'query_once' | 'units'
  readonly options: Readonly<Record<string, unknown>>
}

/** What the config must know of a kind of provider to check what is said of it. `providers/<kind>.ts` is where it comes from. */
export interface KindInfo {
  /** Used where a provider has no `base_url`; empty for a kind that needs no server; absent: `base_url` is required. */
  readonly baseUrl?: string
  readonly defaults?: Partial<Pick<ProviderSettings, 'usage_stream' | 'cap' | 'usage' | 'rerank'>>
  /** JSON Schemas of the kind's own settings: `options` of a provider, and of a model. Absent: it has none. */
  readonly options?: JsonObject
  readonly modelOptions?: JsonObject
  readonly surfaces: readonly string[]
}

/** One of several places where a model is answered. */
export interface ModelTarget {
  /** `<provider>/<the provider's own name>`: what logs, metrics and usage records call it. */
  readonly name: string
  /** Relative to the other targets of the model; 0: only when all others have failed. */
  readonly weight: number
  /** The model as it is there: its identifier, but this provider, its name for it, its price, cap and options. */
  readonly model: Model
}

/** A model that clients may name. */
export interface Model {
  /** `<provider>/<model>`: the canonical identifier. */
  readonly id: string
  readonly provider: ProviderSettings
  /** The provider's own name for it. */
  readonly upstream: string
  /** `null`: free. */
  readonly price: Price | null
  readonly max_output_tokens: number | null
  /** Never above `max_output_tokens`. */
  readonly default_max_tokens: number
  readonly context: number | null
  /** Whose tokens its input is estimated in. Absent or `null`: by the model's name. */
  readonly tokenizer?: Family | null
  /** What counts its input exactly. Absent: nothing, it is estimated. */
  readonly counter?: Counter
  /** What its input is held for. `bound`: UTF-8 bytes, which no byte-level vocabulary exceeds. Absent: `calibrated`, by what its provider has reported. */
  readonly estimate?: 'calibrated' | 'bound'
  /** Optional request parameters that it accepts. `null`: the endpoint's standard list. */
  readonly parameters: readonly string[] | null
  /** Surfaces that it answers. `null`: all that its provider's kind has. */
  readonly surfaces: readonly string[] | null
  /** Where it is answered. Absent: by its own provider alone. */
  readonly targets?: readonly ModelTarget[]
  /** Most tries of one request in all. */
  readonly attempts: number
  /** Canonical ids, tried in order when a target fails before the first byte. Theirs are not followed. */
  readonly fallback: readonly string[]
  /** The cap's spelling upstream, where it is not the provider's. */
  readonly cap?: ProviderSettings['cap']
  /** Seconds since the epoch, for GET /v1/models. */
  readonly created: number
  /** The kind's own settings of a model (the sandbox's pace, for one). */
  readonly options: Readonly<Record<string, unknown>>
}

/** A module that counts tokens. `at` is where it stands, for messages: `gateway.yaml:12:5`. */
export interface Counter {
  /** A path, or a package. */
  readonly use: string
  /** It may take so long for one request. */
  readonly timeout: Ms
  readonly at: string
}

/** One entry of `policies:`. `at` is where it stands, for messages: `gateway.yaml:12:5`. */
export interface PolicyUse {
  readonly use: string
  readonly with: unknown
  readonly at: string
}

/** What the public listener shows, and what clients have to show. Paths are absolute; what the files held is beside them. */
export interface Tls {
  readonly cert: string
  readonly key: string
  readonly cert_pem: string
  readonly key_pem: string
  /** Authorities of clients' certificates. `null`: clients need none. */
  readonly client_ca: PemFile | null
}

/** A file of certificates, and what it held when the config was read. */
export interface PemFile {
  /** Absolute path. */
  readonly file: string
  readonly pem: string
}

export interface Config {
  /** Absolute path of the file. */
  readonly file: string
  readonly listen: Address
  readonly ops: Address | null
  readonly admin: Address | null
  /** Of the built-in page. `null`: a new one at each start. */
  readonly admin_token: string | null
  readonly timezone: string
  readonly month: 'gregorian' | 'persian'
  readonly ledger: {
    /** Absolute, or `:memory:`. */
    readonly path: string
    readonly durability: 'power' | 'process'
    readonly create: boolean
    /** How long usage records are kept one by one; `null`: for ever. */
    readonly retention: Ms | null
  }
  readonly policies: readonly PolicyUse[]
  readonly providers: ReadonlyMap<string, ProviderSettings>
  /** By canonical id. */
  readonly models: ReadonlyMap<string, Model>
  /** Alias → canonical id. */
  readonly aliases: ReadonlyMap<string, string>
  readonly plans: ReadonlyMap<string, Plan>
  readonly accounts: ReadonlyMap<string, Account>
  readonly keys: ReadonlyMap<string, Key>
  readonly limits: {
    /** Bytes of a request's body. */
    readonly body: number
    readonly connections: number
  }
  readonly timeout: {
    /** For a client to send its header and its body. */
    readonly request: Ms
    /** For a client that stops reading. */
    readonly write: Ms
  }
  /** Processes that answer requests. */
  readonly workers: number
  readonly drain_timeout: Ms
  readonly tls: Tls | null
  readonly log: { readonly level: 'debug' | 'info' | 'warn' | 'error'; readonly format: 'auto' | 'json' | 'pretty' }
}
