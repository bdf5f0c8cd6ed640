import type { EndingRecord, OpenHold } from './ledger.js'

/** How the usage record of a hold ends that a crash has left open: nothing is known of it, so nothing is charged. */
export function recovered(hold: OpenHold, at: number): EndingRecord {
  return {
    ended_at: at,
    ended_by: 'recovery',
    usage_source: 'none',
    input_tokens: 0,
    cached_input_tokens: 0,
    output_tokens: 0,
    reasoning_tokens: 0,
    cost_rial: 0n,
    overrun_rial: 0n,
    status: 0,
    code: null,
    provider: hold.record.provider,
    price: hold.record.price,
    upstream_request_id: null,
    attempts: '[]',
    ttft_ms: null,
    duration_ms: Math.max(0, at - hold.at),
  }
}
