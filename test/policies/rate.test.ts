import t from 'tap'
import rate from '../../policies/rate.js'
import type { Key } from '../../src/config/config.js'
import { GatewayError } from '../../src/errors.js'
import { ANONYMOUS, type Ended } from '../../src/exchange.js'
import { keyRequests, keyTokens } from '../../src/ledger/counters.js'
import type { Counter } from '../../src/ledger/ledger.js'
import type { WindowKind } from '../../src/ledger/windows.js'
import { AT, asked, host, keyOf, tehran } from '../support/exchanges.js'

const PLAN = { requests_per_minute: 10n, requests_per_hour: 100n, requests_per_day: 500n, tokens_per_minute: 20_000n }

t.test('claims one request of each window and the estimated tokens of the minute', async t => {
  const requests = (kind: WindowKind) => keyRequests('a', tehran(kind, AT))
  const claims = (plan: Partial<Key['plan']>) => rate({} as never, host()).admit?.(asked({ key: keyOf({ plan }) }))
  const expected = (plan: { [name in keyof typeof PLAN]: bigint | null }) => [
    { counter: requests('minute'), amount: 1n, ceiling: plan.requests_per_minute, code: 'rate_limit_rpm', ends: 'counted' },
    { counter: requests('hour'), amount: 1n, ceiling: plan.requests_per_hour, code: 'rate_limit_rph', ends: 'counted' },
    { counter: requests('day'), amount: 1n, ceiling: plan.requests_per_day, code: 'rate_limit_rpd', ends: 'counted' },
    { counter: keyTokens('a', tehran('minute', AT)), amount: 19n, ceiling: plan.tokens_per_minute, code: 'rate_limit_tpm' },
  ]
  t.strictSame(claims(PLAN), expected(PLAN))
  const none = { requests_per_minute: null, requests_per_hour: null, requests_per_day: null, tokens_per_minute: null }
  t.strictSame(claims({}), expected(none), 'no ceiling is counted all the same')
})

/** Reads the counters as told by kind of window, tokens apart: posted + pending. */
const used =
  (amounts: { readonly [what in WindowKind | 'tokens']?: number }) =>
  ({ meter, window }: Counter): readonly [bigint, bigint] => {
    const all = BigInt(amounts[meter === 'tokens' ? 'tokens' : window.kind] ?? 0)
    return [all / 2n, all - all / 2n]
  }

const ended = (given: Partial<Ended> = {}): Ended => ({ ...asked({ key: keyOf({ plan: PLAN }) }), readings: [], ...given }) as Ended

const triple = (of: string, limit: number, remaining: number, reset: number) => ({
  [`x-ratelimit-limit-${of}`]: String(limit),
  [`x-ratelimit-remaining-${of}`]: String(remaining),
  [`x-ratelimit-reset-${of}`]: String(reset),
})
// AT is 13:45:20.5 in Tehran.
const MINUTE = 40
const HOUR = 14 * 60 + 40
const DAY = 10 * 3600 + 14 * 60 + 40

t.test('tells of the window nearest to its end, and of the tokens', async t => {
  const refused = (code: string) => new GatewayError(code, '')
  const rows: [
    name: string,
    plan: Partial<Key['plan']>,
    amounts: Parameters<typeof used>[0],
    error: GatewayError | undefined,
    expected: object,
  ][] = [
    [
      'least remaining',
      PLAN,
      { minute: 3, hour: 98, day: 300, tokens: 5000 },
      undefined,
      {
        ...triple('requests', 100, 2, HOUR),
        ...triple('tokens', 20_000, 15_000, MINUTE),
      },
    ],
    [
      'a tie: the shorter',
      PLAN,
      { minute: 5, hour: 95, day: 495 },
      undefined,
      { ...triple('requests', 10, 5, MINUTE), ...triple('tokens', 20_000, 20_000, MINUTE) },
    ],
    ['the day', { requests_per_hour: 100n, requests_per_day: 500n }, { hour: 1, day: 499 }, undefined, triple('requests', 500, 1, DAY)],
    [
      'the one that refused',
      PLAN,
      { minute: 2, hour: 100, day: 499 },
      refused('rate_limit_rph'),
      {
        ...triple('requests', 100, 0, HOUR),
        ...triple('tokens', 20_000, 20_000, MINUTE),
      },
    ],
    [
      'the one that refused, though another is further over a ceiling that was lowered',
      PLAN,
      { minute: 10, hour: 300, day: 900 },
      refused('rate_limit_rpm'),
      {
        ...triple('requests', 10, 0, MINUTE),
        ...triple('tokens', 20_000, 20_000, MINUTE),
      },
    ],
    [
      'tokens refused',
      PLAN,
      { minute: 9, tokens: 19_999 },
      refused('rate_limit_tpm'),
      { ...triple('requests', 10, 1, MINUTE), ...triple('tokens', 20_000, 1, MINUTE) },
    ],
    [
      'another refusal',
      PLAN,
      { minute: 9 },
      refused('key_daily_budget_reached'),
      { ...triple('requests', 10, 1, MINUTE), ...triple('tokens', 20_000, 20_000, MINUTE) },
    ],
    ['below none', { requests_per_minute: 10n }, { minute: 15 }, undefined, triple('requests', 10, 0, MINUTE)],
    ['tokens alone', { tokens_per_minute: 5n }, { tokens: 1 }, undefined, triple('tokens', 5, 4, MINUTE)],
    ['a ceiling of nothing is one', { requests_per_day: 0n }, {}, undefined, triple('requests', 0, 0, DAY)],
  ]
  for (const [name, plan, amounts, error, expected] of rows) {
    const there = host([], used(amounts))
    t.strictSame(await rate({} as never, there).respond?.(ended({ key: keyOf({ plan }) }), error), expected, name)
  }
})

t.test('nothing is told where there is no ceiling, to strangers, and on pages', async t => {
  const there = host()
  const policy = rate({} as never, there)
  t.equal(await policy.respond?.(ended({ key: keyOf() })), undefined)
  t.equal(await policy.respond?.(ended({ key: ANONYMOUS })), undefined)
  t.equal(await policy.respond?.(ended({ method: 'GET' })), undefined)
  t.strictSame(there.asked, [], 'and nothing is read')
})

t.test('the readings of the admission are used where they are there, and nothing is read', async t => {
  const there = host()
  const key = keyOf({ plan: PLAN })
  const claims = (await rate({} as never, there).admit?.(asked({ key }))) ?? []
  const readings = claims.map(({ counter }, index) => ({
    counter: structuredClone(counter),
    ceiling: null,
    posted: BigInt(index),
    pending: 1n,
  }))
  t.strictSame(rate({} as never, there).respond?.(ended({ key, readings })), {
    ...triple('requests', 10, 9, MINUTE),
    ...triple('tokens', 20_000, 19_996, MINUTE),
  })
  t.strictSame(there.asked, [])
})

t.test('readings of the admission that are of others, or not all of them, are not taken for these', async t => {
  const key = keyOf({ plan: { requests_per_minute: 10n, tokens_per_minute: 100n } })
  const policy = rate({} as never, host([], used({ minute: 1, tokens: 2 })))
  const claims = (await policy.admit?.(asked({ key }))) ?? []
  const [requests, tokens] = [claims[0]?.counter as Counter, claims[3]?.counter as Counter]
  const earlier = tehran('minute', AT - 60_000)
  const others: Counter[] = [
    { ...requests, subject: 'key:b' },
    { ...requests, window: earlier },
    { ...requests, window: { ...requests.window, kind: 'hour' } },
    { ...requests, meter: 'rial' },
  ]
  const reading = (counter: Counter, posted: bigint) => ({ counter, ceiling: null, posted, pending: 0n })
  const whole = [...others.map(counter => reading(counter, 9n)), reading(requests, 3n), reading(tokens, 4n)]
  t.strictSame(await policy.respond?.(ended({ key, readings: whole })), {
    ...triple('requests', 10, 7, MINUTE),
    ...triple('tokens', 100, 96, MINUTE),
  })
  const read = { ...triple('requests', 10, 9, MINUTE), ...triple('tokens', 100, 98, MINUTE) }
  t.strictSame(await policy.respond?.(ended({ key, readings: whole.slice(0, -1) })), read, 'one is missing: all are read')
})

t.test('a reset counts from the moment of the answer; it is at least one second, rounded up', async t => {
  const key = keyOf({ plan: { requests_per_minute: 1n } })
  const reset = async (now: number) =>
    (await rate({} as never, host([], undefined, now)).respond?.(ended({ key })))?.['x-ratelimit-reset-requests']
  const end = tehran('minute', AT).end
  t.strictSame([await reset(end - 1), await reset(end - 1000), await reset(end - 1001), await reset(end - 60_000)], ['1', '1', '2', '60'])
  t.equal(await reset(end + 5000), '1', 'the window of an answer that took long may be over')
})
