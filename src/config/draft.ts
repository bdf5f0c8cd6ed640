/*
 * What is left of gateway.yaml once it has been held against config/gateway.schema.json: every value that is here has the type and the
 * form that the schema demands, defaults are filled in, and what was wrong is absent. Text is not yet read (durations, addresses, names).
 */

export type Section<T> = Readonly<Record<string, T>>

/** A whole number of Rial, or one amount in another currency. */
export type MoneyDraft = number | Section<number>

export interface PriceDraft {
  readonly input?: MoneyDraft
  readonly cached_input?: MoneyDraft
  readonly output?: MoneyDraft
  readonly request?: MoneyDraft
  readonly markup?: number
}

export interface ProviderDraft {
  readonly kind?: string
  readonly base_url?: string
  readonly insecure: boolean
  readonly api_key?: string
  readonly ca?: string
  readonly proxy: 'none' | 'environment'
  readonly timeout: { readonly connect: string; readonly first_byte: string; readonly idle: string; readonly total: string }
  readonly max_connections: number
  readonly keep_connections: 'key' | 'shared' | 'off'
  readonly queue: number
  readonly queue_timeout: string
  readonly retry_unknown: boolean
  readonly health: 'off' | { readonly failures: number; readonly ejection: string }
  readonly usage_stream?: 'option' | 'always' | 'none'
  readonly cap?: 'max_tokens' | 'max_completion_tokens'
  readonly on_disconnect: 'abort' | 'drain'
  readonly usage?: 'normal' | 'strict'
  readonly rerank?: 'pairs' | 'query_once' | 'units'
}

export interface TargetDraft {
  readonly provider?: string
  readonly upstream?: string
  readonly weight: number
  readonly price?: 'free' | PriceDraft
}

export interface ModelDraft {
  readonly upstream?: string
  readonly price?: 'free' | PriceDraft
  readonly max_output_tokens: number | null
  readonly default_max_tokens?: number
  readonly context: number | null
  readonly parameters: readonly string[] | null
  readonly surfaces: readonly string[] | null
  readonly targets: readonly TargetDraft[] | null
  readonly attempts: number
  readonly fallback: readonly string[] | null
  readonly cap?: 'max_tokens' | 'max_completion_tokens'
  readonly tokenizer: string | null
  readonly tokenizer_timeout: string
  readonly estimate: 'calibrated' | 'bound'
  readonly created: string
}

export interface PlanDraft {
  readonly requests_per_minute: number | null
  readonly requests_per_hour: number | null
  readonly requests_per_day: number | null
  readonly tokens_per_minute: number | null
  readonly models: readonly string[] | null
}

export interface KeyDraft {
  readonly account?: string
  readonly plan?: string
  readonly secret?: string
  readonly sha256?: string
  readonly budget: { readonly daily_tokens: number | null; readonly daily_rial: number | null; readonly monthly_rial: number | null }
  readonly models: readonly string[] | null
  readonly expires: string | null
  readonly disabled: boolean
}

export interface Draft {
  readonly listen: string
  readonly ops: string | null
  readonly admin: string | null
  readonly admin_token?: string
  readonly timezone: string
  readonly month: 'gregorian' | 'persian'
  readonly ledger: {
    readonly path: string
    readonly durability: 'power' | 'process'
    readonly create: boolean
    readonly retention?: string
  }
  readonly policies: readonly (string | { readonly use?: string; readonly with?: unknown })[]
  readonly rates: Section<number>
  readonly markup: number
  readonly catalog: readonly string[]
  /** A text: the file could not be read. */
  readonly prices: string | Section<'free' | PriceDraft>
  readonly providers?: Section<ProviderDraft>
  readonly models?: Section<ModelDraft>
  readonly aliases: Section<string>
  readonly plans: Section<PlanDraft>
  readonly accounts: Section<{ readonly opening_balance_rial: number }>
  readonly keys: Section<KeyDraft>
  readonly limits: { readonly body: string | number; readonly connections: number }
  readonly timeout: { readonly request: string; readonly write: string }
  readonly workers: number | 'auto'
  readonly drain_timeout: string
  readonly tls?: { readonly cert?: string; readonly key?: string; readonly client_ca?: string }
  readonly log: { readonly level: 'debug' | 'info' | 'warn' | 'error'; readonly format: 'auto' | 'json' | 'pretty' }
}
