import t from 'tap'
import { GatewayError } from '../src/errors.js'
import type { Exchange } from '../src/exchange.js'
import { ending, settlement } from '../src/settlement.js'
import type { Billable } from '../src/upstream/fallback.js'
import { sampleModel } from './support/sample-call.js'

const PRICE = { input: 1_000_000n, cached_input: 500_000n, output: 2_000_000n, request: 3n }
const USAGE = { source: 'provider', input: 10, cached: 4, output: 5, reasoning: 2 } as const
const CLOCK = { now: () => 1_700_000_000_500, monotonic: () => 2_000.4 }
const faults: string[] = []
const SERVICES = { clock: CLOCK, fault: (_: string, error: unknown) => faults.push(String(error)) }
const billable = { target: { model: sampleModel({ price: PRICE }) }, upstreamRequestId: 'theirs' } as unknown as Billable

const exchange = (given: object = {}) =>
  ({
    since: 1_000,
    marks: { first: 1_250.6 },
    stream: true,
    estimateRial: 100n,
    model: sampleModel(),
    tried: [{ target: 'a', result: 'answered', ms: 1 }],
    ...given,
  }) as unknown as Exchange

t.test('a settlement charges the target that answered, for what it delivered, at its price', async t => {
  const { billing, settled } = settlement(exchange(), billable, { usage: USAGE, endedBy: 'provider', status: 200, error: null }, SERVICES)
  // 6 × 1 + 4 × 0.5 + 5 × 2 + 3
  t.strictSame(billing, { usage: USAGE, cost: 21n, overrun: 0n, endedBy: 'provider' })
  t.strictSame(settled, {
    state: 'settled',
    actual: { tokens: 15n, rial: 21n },
    record: {
      ended_at: 1_700_000_000_500,
      ended_by: 'provider',
      usage_source: 'provider',
      input_tokens: 10,
      cached_input_tokens: 4,
      output_tokens: 5,
      reasoning_tokens: 2,
      cost_rial: 21n,
      overrun_rial: 0n,
      status: 200,
      code: null,
      provider: 'acme',
      price: '{"input":1000000,"cached_input":500000,"output":2000000,"request":3}',
      upstream_request_id: 'theirs',
      attempts: '[{"target":"a","result":"answered","ms":1}]',
      ttft_ms: 251,
      duration_ms: 1000,
    },
  })
})

t.test('what is above the hold is charged in full, and told', async t => {
  const { billing, settled } = settlement(
    exchange({ estimateRial: 20n }),
    billable,
    { usage: USAGE, endedBy: 'provider', status: 200, error: null },
    SERVICES,
  )
  t.strictSame([billing.cost, billing.overrun, settled.actual.rial, settled.record.overrun_rial], [21n, 1n, 21n, 1n])
})

t.test('an answer that was cut off is partial, and says why', async t => {
  const error = new GatewayError('upstream_error', 'broke')
  const { settled } = settlement(exchange(), billable, { usage: USAGE, endedBy: 'upstream_error', status: 200, error }, SERVICES)
  t.match(settled, { state: 'partial', record: { code: 'upstream_error', ended_by: 'upstream_error', status: 200 } })
})

t.test('where nothing was charged, the record names the model that was asked for, and no first token', async t => {
  const end = { usage: USAGE, endedBy: 'upstream_error', status: 502, error: null } as const
  t.match(ending(exchange({ marks: {} }), end, 0n, null, CLOCK), {
    provider: 'acme',
    upstream_request_id: null,
    ttft_ms: null,
    cost_rial: 0n,
  })
  t.equal(ending(exchange({ stream: false }), end, 0n, null, CLOCK).ttft_ms, null, 'an answer at once has no first token')
})

t.test('what is more than a ledger can keep: the most that it can is charged, and the fault is told', async t => {
  const MOST = BigInt(Number.MAX_SAFE_INTEGER)
  const settled = (rial: bigint, input: number) => {
    const price = { input: 0n, cached_input: 0n, output: 0n, request: rial }
    const dear = { ...billable, target: { model: sampleModel({ price }) } } as unknown as Billable
    const end = { usage: { ...USAGE, input }, endedBy: 'provider', status: 200, error: null } as const
    const { billing, settled: written } = settlement(exchange(), dear, end, SERVICES)
    t.equal(written.record.cost_rial, billing.cost)
    t.equal(written.record.overrun_rial, billing.cost - 100n)
    return written.actual
  }
  t.strictSame(settled(MOST, 10), { tokens: 15n, rial: MOST })
  t.strictSame(faults, [])
  t.strictSame(settled(MOST + 1n, Number.MAX_SAFE_INTEGER), { tokens: MOST, rial: MOST })
  t.strictSame(faults, ['RangeError: 9007199254740992 Rial, of which 9007199254740991 are charged'])
})
