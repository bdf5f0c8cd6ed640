import type { Window } from './windows.js'

/** An integer: requests, tokens or Rial, as the meter says. */
export type Amount = bigint

/** `requests`, `tokens` and `rial` are the gateway's own; a policy may count others under a name of its own. */
export type Meter = string

/** The most that posted + pending may be. `null`: none. `'credits'`: all that has been credited to the subject. */
export type Ceiling = Amount | null | 'credits'

/** What is counted: one meter of one subject (`key:app-a`, `account:acme`) in one window. */
export interface Counter {
  readonly meter: Meter
  readonly subject: string
  readonly window: Window
}

/**
 * What becomes of a claim when its hold ends.
 * `measured` (default): settle posts the meter's actual amount, or what was held where there is none; void releases it.
 * `counted`: what was held is posted, whatever came of it (a request stays a request).
 * `released`: given back at either end (things in flight).
 *
 * Measured claims of one hold on one counter add up at admission, and the actual amount is posted there once: it is what the
 * request used, however many policies asked about it.
 */
export type Ends = 'measured' | 'counted' | 'released'

/** An amount (0 to 2^53 - 1) asked of a counter under a ceiling. `code` is the refusal's. */
export interface Claim {
  readonly counter: Counter
  readonly amount: Amount
  readonly ceiling: Ceiling
  readonly code: string
  readonly ends?: Ends
}

/** A counter as it stands. `posted`: settled. `pending`: held by requests under way. */
export interface Reading {
  readonly counter: Counter
  readonly ceiling: Amount | null
  readonly posted: Amount
  readonly pending: Amount
}

/** What a request has pending, from admission to its end. `id` is the request's: holding it twice is rejected, ending it twice is `already_ended`. */
export interface Hold {
  readonly id: string
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly claims: readonly Claim[]
  readonly record: AdmissionRecord
}

/** The usage record's first half, written with the hold. Prices are those at admission. */
export interface AdmissionRecord {
  readonly key: string | null
  readonly account: string | null
  readonly plan: string | null
  readonly surface: string
  readonly model: string
  readonly provider: string
  readonly stream: boolean
  readonly client_request_id: string | null
  readonly trace_id: string | null
  readonly held_tokens: number
  readonly held_rial: bigint
  /** What one token or request costs, as JSON: enough to recompute the cost. */
  readonly price: string
}

export type UsageSource = 'provider' | 'counted' | 'estimate' | 'none'
export type EndedBy = 'provider' | 'client' | 'upstream_error' | 'drain' | 'recovery'

/** The usage record's second half, written when the hold ends. */
export interface EndingRecord {
  /** Milliseconds since the epoch. */
  readonly ended_at: number
  readonly ended_by: EndedBy
  readonly usage_source: UsageSource
  readonly input_tokens: number
  readonly cached_input_tokens: number
  readonly output_tokens: number
  readonly reasoning_tokens: number
  readonly cost_rial: bigint
  /** What the actual cost is above the hold; 0 else. */
  readonly overrun_rial: bigint
  /** HTTP status that the client got (499: it left; 0: none, the gateway died). */
  readonly status: number
  readonly code: string | null
  /** The provider that answered last: the one of the admission, or a fallback. */
  readonly provider: string
  /** Of the target that is charged for, which may have one of its own; else as at the admission. */
  readonly price: string
  readonly upstream_request_id: string | null
  /** Every try at a target, in order, as JSON: `[{"target":"openai/gpt-4o-mini","result":"upstream_error","ms":12}]`. */
  readonly attempts: string
  readonly ttft_ms: number | null
  readonly duration_ms: number
}

export type RecordState = 'held' | 'settled' | 'partial' | 'voided' | 'recovered'

/** One row per admitted request. Fields of the second half are `null` while it is held. */
export type UsageRecord = { readonly id: string; readonly at: number; readonly state: RecordState } & AdmissionRecord & {
    readonly [Field in keyof EndingRecord]: EndingRecord[Field] | null
  }

export interface Settlement {
  readonly state: 'settled' | 'partial'
  readonly actual: { readonly [meter: Meter]: Amount }
  readonly record: EndingRecord
}

export type Admission =
  | { readonly admitted: true; readonly readings: readonly Reading[] }
  /** `readings` are in the order of the claims, and show the counters as they are without this hold. */
  | { readonly admitted: false; readonly refused: Claim; readonly reading: Reading; readonly readings: readonly Reading[] }

export type Ending = 'ended' | 'already_ended' | 'unknown'

/** Money put into a wallet (or, negative, taken out, whatever is left then). The first one of an `id` counts, further ones are `already_credited`. Rial. */
export interface Credit {
  readonly id: string
  readonly account: string
  readonly amount: Amount
  readonly note: string
  readonly at: number
}

/** Rial. `available` = credited − posted − pending. */
export interface Wallet {
  readonly account: string
  readonly credited: Amount
  readonly posted: Amount
  readonly pending: Amount
}

export interface RecordQuery {
  readonly state?: RecordState
  readonly key?: string
  readonly account?: string
  readonly model?: string
  /** Milliseconds since the epoch; `since` inclusive, `until` exclusive. */
  readonly since?: number
  readonly until?: number
  readonly limit?: number
}

/** A hold that no one has ended, with what it has pending. */
export interface OpenHold {
  readonly id: string
  readonly at: number
  readonly record: AdmissionRecord
}

/** One difference that `verify` has found. */
export interface Difference {
  readonly what: string
  readonly expected: string
  readonly found: string
}

/**
 * Money and counters. Knows nothing of HTTP, policies or models. What a promise resolves with is durable.
 * Rejections are GatewayErrors `ledger_unavailable`, after which nothing more is admitted or ended; but a RangeError or an Error for
 * what its caller has got wrong (an amount out of range, an id held twice): that operation then has changed nothing.
 */
export interface Ledger {
  /** All claims or none. Refused: the first that does not fit; nothing is written. Per counter: posted + pending + all that this hold claims of it ≤ ceiling. */
  hold(hold: Hold): Promise<Admission>
  /** The held amounts give way to the actual ones. A counter holds 2^53 - 1 at most, and is full then: that a sum is beyond it leaves no hold open. */
  settle(id: string, settlement: Settlement): Promise<Ending>
  /** Held tokens and money are released; what is `counted` stays. */
  void(id: string, record: EndingRecord): Promise<Ending>
  credit(credit: Credit): Promise<'credited' | 'already_credited'>
  /** Posted and pending of counters, under no ceiling (a counter never seen reads 0). */
  read(counters: readonly Counter[]): Promise<Reading[]>
  wallet(account: string): Promise<Wallet>
  /** Holds that no one has ended, oldest first. */
  open(): Promise<OpenHold[]>
  /** Usage records in the order of their ids, which begin with the time at which they were made: oldest first. */
  records(query: RecordQuery): Promise<UsageRecord[]>
  /** Recomputes every counter and balance from the records and credits, while others go on; an empty list means that all agree. */
  verify(): Promise<Difference[]>
  /** Ends every open hold as recovered, as void does, at no cost; run once at start, before anything is admitted. Returns what it ended, oldest first. */
  recover(at: number): Promise<OpenHold[]>
  /** `null`: it writes. Else why not, in words for an operator. */
  readonly failure: string | null
  close(): Promise<void>
}

/** What requests need of a ledger, wherever it is: all that a process has of it that does not own it. */
export type RequestLedger = Pick<Ledger, 'hold' | 'settle' | 'void' | 'read' | 'wallet'>
