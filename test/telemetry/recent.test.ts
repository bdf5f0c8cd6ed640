import t from 'tap'
import { GatewayError } from '../../src/errors.js'
import type { Exchange } from '../../src/exchange.js'
import { accountRial, keyRequests, keyTokens } from '../../src/ledger/counters.js'
import type { Claim, Reading } from '../../src/ledger/ledger.js'
import type { Ran } from '../../src/lifecycle.js'
import type { Access } from '../../src/telemetry/log.js'
import { Recent } from '../../src/telemetry/recent.js'
import { AT, keyOf, tehran } from '../support/exchanges.js'

function line(given: Partial<Access> = {}): Access {
  return {
    time: AT,
    level: 'info',
    request_id: 'req_1',
    client_request_id: null,
    trace_id: null,
    key: 'a',
    plan: 'p',
    surface: 'chat',
    model: 'up/m',
    provider: 'up',
    stream: false,
    status: 200,
    code: null,
    input_tokens: 10,
    output_tokens: 20,
    cached_tokens: 0,
    usage_source: 'provider',
    held_rial: 400n,
    cost_rial: 50n,
    ttft_ms: null,
    duration_ms: 30,
    upstream_ms: 20,
    gateway_ms: 5,
    retries: 0,
    ended_by: 'provider',
    upstream_request_id: null,
    ...given,
  }
}

const minute = tehran('minute', AT)

const CLAIMS: readonly Claim[] = [
  { counter: keyRequests('a', minute), amount: 1n, ceiling: 10n, code: 'rate_limit_rpm', ends: 'counted' },
  { counter: keyTokens('a', minute), amount: 30n, ceiling: null, code: 'rate_limit_tpm' },
  { counter: accountRial('acme'), amount: 400n, ceiling: 'credits', code: 'insufficient_balance' },
]

function readings(...found: readonly (readonly [posted: bigint, pending: bigint, ceiling: bigint | null])[]): Reading[] {
  return found.map(([posted, pending, ceiling], i) => ({ counter: (CLAIMS[i] as Claim).counter, posted, pending, ceiling }))
}

function exchange(given: Partial<Exchange>): Exchange {
  return {
    key: keyOf(),
    claims: CLAIMS,
    readings: [],
    estimate: { input: 10, output: 20 },
    tried: [],
    since: 1000,
    marks: { read: 1001, sent: 1003 },
    ...given,
  } as unknown as Exchange
}

const SETTLED: Ran = {
  outcome: { state: 'settled', usage: { input: 10, cached: 0, output: 20, reasoning: 4, source: 'provider' }, cost: 50n },
  billing: { usage: { input: 10, cached: 0, output: 20, reasoning: 4, source: 'provider' }, cost: 50n, overrun: 0n, endedBy: 'provider' },
  error: null,
  status: 200,
  billable: null,
}

function refused(error: GatewayError): Ran {
  return { outcome: { state: 'refused', error }, billing: null, error, status: error.status, billable: null }
}

t.test('nothing is kept until somebody watches, and nothing after the last one has gone', async t => {
  const recent = new Recent()
  t.equal(recent.on, false)
  const heard: number[] = []
  const leave = recent.watch(({ seq }) => heard.push(seq))
  const other = recent.watch()
  t.equal(recent.on, true)
  recent.add(line(), exchange({}), SETTLED)
  leave()
  leave()
  t.equal(recent.on, true, 'the other still watches')
  recent.add(line(), exchange({}), SETTLED)
  t.equal(recent.after(0, 10).length, 2)
  t.same(heard, [1])
  other()
  t.equal(recent.on, false)
  t.same(recent.after(0, 10), [])
  t.equal(recent.find('req_1'), undefined)
})

t.test('an admitted request shows each claim by its policy, with the counter as it was without it', async t => {
  const recent = new Recent()
  recent.watch()
  recent.authors.set('rate_limit_rpm', 'rate').set('rate_limit_tpm', 'rate')
  recent.add(line(), exchange({ readings: readings([3n, 2n, 10n], [0n, 30n, null], [100n, 900n, 5000n]) }), SETTLED)
  const [kept] = recent.after(0, 10)
  const common = { meter: 'requests', subject: 'key:a', window: 'minute', window_end: minute.end, refused: false }
  t.same(kept?.claims, [
    { ...common, policy: 'rate', code: 'rate_limit_rpm', amount: 1n, posted: 3n, held: 1n, ceiling: 10n },
    { ...common, meter: 'tokens', policy: 'rate', code: 'rate_limit_tpm', amount: 30n, posted: 0n, held: 0n, ceiling: null },
    {
      ...common,
      policy: null,
      code: 'insufficient_balance',
      meter: 'rial',
      subject: 'account:acme',
      window: 'all',
      window_end: null,
      amount: 400n,
      posted: 100n,
      held: 500n,
      ceiling: 5000n,
    },
  ])
  t.match(kept, { seq: 1, account: 'acme', state: 'settled', refusal: null, estimate: { input: 10, output: 20 }, overrun_rial: 0n })
  t.same(kept?.marks, { read: 1, sent: 3, first: null, answered: null })
  t.equal(kept?.reasoning_tokens, 4)
})

t.test('a refusal marks the claim that did not fit, and keeps its words and figures', async t => {
  const recent = new Recent()
  recent.watch()
  const details = { ceiling: 10, posted: 10, held: 0, asked: 1, resets_at: null, permanent: false }
  const error = new GatewayError('rate_limit_rpm', 'Requests per minute of key a reached.', { details })
  const found = readings([10n, 0n, 10n], [0n, 0n, null], [0n, 0n, 5000n])
  recent.add(line({ status: 429, code: 'rate_limit_rpm' }), exchange({ readings: found }), refused(error))
  const [kept] = recent.after(0, 10)
  t.same(kept?.refusal, { code: 'rate_limit_rpm', message: 'Requests per minute of key a reached.', details })
  t.same(
    kept?.claims.map(({ refused, held }) => [refused, held]),
    [
      [true, 0n],
      [false, 0n],
      [false, 0n],
    ],
  )
})

t.test('of claims on one counter the one is marked that crosses it with those before it', async t => {
  const recent = new Recent()
  recent.watch()
  const twice = [
    { ...(CLAIMS[0] as Claim), amount: 4n },
    { ...(CLAIMS[0] as Claim), amount: 7n, code: 'again' },
  ]
  const reading = readings([0n, 0n, 10n])[0] as Reading
  const error = new GatewayError('again', 'no', { status: 429 })
  recent.add(line({ code: 'again' }), exchange({ claims: twice, readings: [reading, reading] }), refused(error))
  t.same(
    recent.after(0, 1)[0]?.claims.map(claim => claim.refused),
    [false, true],
  )
  recent.add(line(), exchange({ claims: twice, readings: [11n, 11n].map(pending => ({ ...reading, ceiling: null, pending })) }), SETTLED)
  t.same(
    recent.after(1, 1)[0]?.claims.map(claim => claim.held),
    [0n, 0n],
    'none of it is held by others',
  )
})

t.test('the words of an error without figures are not kept: they may quote what the client sent', async t => {
  const recent = new Recent()
  recent.watch()
  const error = new GatewayError('invalid_request', 'messages[0].role is "my secret prompt"', { param: 'messages[0].role' })
  recent.add(line({ status: 400, code: 'invalid_request' }), exchange({ claims: [] }), refused(error))
  recent.add(line({ status: 404, code: 'not_found', key: null }), null, null)
  const kept = recent.after(0, 10)
  t.notMatch(
    JSON.stringify(kept, (_, value) => (typeof value === 'bigint' ? String(value) : value)),
    /secret/,
  )
  t.match(kept[0], { refusal: null, line: { code: 'invalid_request' } })
  t.match(kept[1], { refusal: null, state: 'refused', account: null, claims: [], attempts: [] })
})

t.test('a crowd of good requests does not push out a refusal, and memory is bounded', async t => {
  const recent = new Recent()
  recent.watch()
  recent.add(
    line({ request_id: 'req_no', code: 'rate_limit_rpm', status: 429 }),
    exchange({}),
    refused(new GatewayError('rate_limit_rpm', 'no')),
  )
  for (let i = 0; i < 5000; i++) recent.add(line({ request_id: `req_${i}` }), exchange({}), SETTLED)
  t.equal(recent.after(0, 10_000).length, 2048)
  t.same(
    recent.after(0, 3).map(({ seq }) => seq),
    [4999, 5000, 5001],
    'the newest, oldest first',
  )
  t.same(
    recent.after(4999, 100).map(({ seq }) => seq),
    [5000, 5001],
  )
  t.equal(recent.find('req_0'), undefined)
  t.equal(recent.find('req_4999')?.seq, 5001)
  t.equal(recent.find('req_no')?.seq, 1)
  t.same(
    recent.after(0, 10, 'refused').map(({ line }) => line.request_id),
    ['req_no'],
  )
  for (let i = 0; i < 600; i++) recent.add(line({ code: 'x' }), exchange({}), refused(new GatewayError('x', 'no')))
  t.equal(recent.after(0, 10_000, 'refused').length, 512)
})
