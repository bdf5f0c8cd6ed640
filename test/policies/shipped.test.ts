import t from 'tap'
import auth from '../../policies/auth.js'
import budget from '../../policies/budget.js'
import hold from '../../policies/hold.js'
import rate from '../../policies/rate.js'
import type { Key } from '../../src/config/config.js'
import { GatewayError } from '../../src/errors.js'
import { ANONYMOUS, type Arrived, type Asked, type Ended } from '../../src/exchange.js'
import { accountRial, keyRequests, keyRial, keyTokens } from '../../src/ledger/counters.js'
import type { Claim, Counter, Reading } from '../../src/ledger/ledger.js'
import { windows } from '../../src/ledger/windows.js'
import type { Host, Policy, PolicyFactory } from '../../src/policy.js'

/* The four policies that are shipped, one by one: what they claim, and what they tell. */

const AT = Date.UTC(2026, 4, 31, 23, 59, 58, 500)
const find = windows('UTC', 'gregorian')
const SHA = '2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b' // of «secret»

const key = (fields: Partial<Key> = {}, plan: Partial<Key['plan']> = {}): Key => ({
  ...ANONYMOUS,
  name: 'a',
  account: 'acme',
  sha256: SHA,
  plan: { ...ANONYMOUS.plan, ...plan },
  budget: { daily_tokens: 7n, daily_rial: 8n, monthly_rial: 9n },
  ...fields,
})

function made(factory: PolicyFactory, one: Key, readings: readonly Reading[] = []): Policy {
  const host: Host = {
    keys: new Map([[one.name, one]]),
    window: find,
    now: () => AT,
    read: async counters => counters.map(counter => readings.find(reading => reading.counter === counter) ?? nothing(counter)),
    error: (code, message, options) => new GatewayError(code, message, options),
    log: () => {},
  }
  return factory({} as never, host) as Policy
}

const nothing = (counter: Counter): Reading => ({ counter, ceiling: null, posted: 0n, pending: 0n })
const asked = (one: Key) =>
  ({ key: one, at: AT, method: 'POST', estimate: { input: 30, output: 12 }, estimateRial: 55n }) as unknown as Asked

t.test('auth: a key is known until the moment at which it expires, and while it is not disabled', async t => {
  const who = (one: Key) => {
    const exchange = { headers: { authorization: 'Bearer secret' }, at: AT } as unknown as Arrived
    try {
      const found = made(auth, one).identify?.(exchange) as Key | undefined
      return found?.name
    } catch (error) {
      return (error as GatewayError).code
    }
  }
  t.equal(who(key()), 'a')
  t.equal(who(key({ expires: AT + 1 })), 'a')
  t.equal(who(key({ expires: AT })), 'invalid_api_key')
  t.equal(who(key({ disabled: true })), 'invalid_api_key')
  t.equal(who(key({ sha256: SHA.replace('2', '3') })), 'invalid_api_key')
})

t.test('rate: one request of each window, and all tokens of the minute', async t => {
  const one = key({}, { requests_per_minute: 1n, requests_per_hour: 2n, requests_per_day: null, tokens_per_minute: 4n })
  const claims = (await made(rate, one).admit?.(asked(one))) as readonly Claim[]
  t.strictSame(claims, [
    { counter: keyRequests('a', find('minute', AT)), amount: 1n, ceiling: 1n, code: 'rate_limit_rpm', ends: 'counted' },
    { counter: keyRequests('a', find('hour', AT)), amount: 1n, ceiling: 2n, code: 'rate_limit_rph', ends: 'counted' },
    { counter: keyRequests('a', find('day', AT)), amount: 1n, ceiling: null, code: 'rate_limit_rpd', ends: 'counted' },
    { counter: keyTokens('a', find('minute', AT)), amount: 42n, ceiling: 4n, code: 'rate_limit_tpm' },
  ])
})

t.test('budget: tokens and Rial of the day, Rial of the month', async t => {
  t.strictSame(await made(budget, key()).admit?.(asked(key())), [
    { counter: keyTokens('a', find('day', AT)), amount: 42n, ceiling: 7n, code: 'key_daily_token_budget_reached' },
    { counter: keyRial('a', find('day', AT)), amount: 55n, ceiling: 8n, code: 'key_daily_budget_reached' },
    { counter: keyRial('a', find('month', AT)), amount: 55n, ceiling: 9n, code: 'monthly_cap_reached' },
  ])
})

t.test('hold: the most that a request can cost, of the wallet of its account; of nobody where there is none', async t => {
  t.strictSame(await made(hold, key()).admit?.(asked(key())), [
    { counter: accountRial('acme'), amount: 55n, ceiling: 'credits', code: 'insufficient_balance' },
  ])
  t.strictSame(await made(hold, key()).admit?.(asked(key({ account: null }))), [])
})

t.test('rate tells the window with the least left, of equal ones the shorter; after a refusal, the one that refused', async t => {
  const told = async (used: readonly [minute: bigint, hour: bigint, day: bigint], error?: string, pending = 0n) => {
    const one = key({}, { requests_per_minute: 10n, requests_per_hour: 20n, requests_per_day: 30n })
    const kinds = ['minute', 'hour', 'day'] as const
    const readings = kinds.map((kind, i) => ({ ...nothing(keyRequests('a', find(kind, AT))), posted: used[i] as bigint, pending }))
    const fields = await made(rate, one).respond?.(
      { ...asked(one), readings } as unknown as Ended,
      error === undefined ? undefined : new GatewayError(error, ''),
    )
    return Object.values(fields ?? {}).join(' ')
  }
  // Limit, remaining, seconds to the reset.
  t.equal(await told([0n, 0n, 0n]), '10 10 2')
  t.equal(await told([9n, 18n, 0n]), '10 1 2')
  t.equal(await told([9n, 20n, 0n]), '20 0 2')
  t.equal(await told([0n, 10n, 20n]), '10 10 2', 'of equal ones the shorter')
  t.equal(await told([4n, 0n, 0n], undefined, 2n), '10 4 2', 'what is held is used')
  t.equal(await told([10n, 20n, 30n], 'rate_limit_rpd'), '30 0 2', 'the day refused')
  t.equal(await told([12n, 0n, 0n]), '10 0 2', 'never less than nothing, where a ceiling was lowered')
})
