import type { Ending, EndingRecord, OpenHold } from './ledger.js'

// 1 ms: a dead worker may have left thousands, and others go on in between.
const ENDED_AT_ONCE = 100

/** Ends each of them by an operation of its own, so many in one transaction. Resolves with those that `end` has ended, in their order. */
export async function recover(holds: readonly OpenHold[], end: (hold: OpenHold) => Promise<Ending>): Promise<OpenHold[]> {
  const found: OpenHold[] = []
  for (let i = 0; i < holds.length; i += ENDED_AT_ONCE) {
    const some = holds.slice(i, i + ENDED_AT_ONCE)
    const endings = await Promise.all(some.map(end))
    found.push(...some.filter((_, at) => endings[at] === 'ended'))
  }
  return found
}

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
