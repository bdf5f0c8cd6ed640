import type { UsageSource } from '../ledger/ledger.js'

/** What a request used, in tokens; all are non-negative safe integers. */
export interface Usage {
  readonly source: UsageSource
  /** All input, cached tokens included. */
  readonly input: number
  /** The part of `input` that the provider read from its cache. */
  readonly cached: number
  /** All output, reasoning included. */
  readonly output: number
  /** The part of `output` that was reasoning. */
  readonly reasoning: number
}

export const NO_USAGE: Usage = { source: 'none', input: 0, cached: 0, output: 0, reasoning: 0 }
