import t from 'tap'
import type { Exchange } from '../src/exchange.js'
import { type Billing, ending, settlement } from '../src/settlement.js'
import type { Billable } from '../src/upstream/fallback.js'
import { sampleModel } from './support/sample-call.js'

const clock = { now: () => 5000, monotonic: () => 900.4 }
const usage = { source: 'provider', input: 10, cached: 4, output: 6, reasoning: 1 } as const
const price = { input: 1_000_000n, cached_input: 500_000n, output: 2_000_000n, request: 3n }
/** 6 + 2 + 12 + 3 */
const COST = 23n

const model = sampleModel({ price })
const billable = { target: { model }, upstreamRequestId: 'far-1' } as unknown as Billable
const exchange = (held: bigint, stream: boolean, first?: number) =>
  ({ estimateRial: held, stream, since: 100, marks: first === undefined ? {} : { first }, tried: [], model }) as unknown as Exchange

const settled = (held: bigint) =>
  settlement(exchange(held, true, 350.6), billable, { usage, endedBy: 'provider', status: 200, error: null }, { clock, fault: () => {} })

t.test('what is settled: all tokens, the cost, and how far it is above the hold', async t => {
  const { billing, settled: written } = settled(20n)
  t.strictSame(billing, { usage, cost: COST, overrun: 3n, endedBy: 'provider' } satisfies Billing)
  t.strictSame([written.state, written.actual], ['settled', { tokens: 16n, rial: COST }])
  t.match(written.record, {
    cost_rial: COST,
    overrun_rial: 3n,
    ended_at: 5000,
    duration_ms: 800,
    ttft_ms: 251,
    upstream_request_id: 'far-1',
  })
})

t.test('a cost that is as high as the hold, or lower, is no overrun', async t => {
  t.equal(settled(COST).billing.overrun, 0n)
  t.equal(settled(COST + 1n).billing.overrun, 0n)
  t.equal(settled(COST - 1n).billing.overrun, 1n)
})

t.test('the time to the first token is of streams alone', async t => {
  const record = (stream: boolean, first?: number) =>
    ending(exchange(0n, stream, first), { usage, endedBy: 'client', status: 499, error: null }, 0n, null, clock)
  t.equal(record(true, 350.6).ttft_ms, 251)
  t.equal(record(false, 350.6).ttft_ms, null)
  t.equal(record(true).ttft_ms, null)
})
