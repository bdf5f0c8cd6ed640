import t, { type Test } from 'tap'
import type { Key } from '../../src/config/config.js'
import { keyPage } from '../../src/endpoints/key.js'
import type { Exchange } from '../../src/exchange.js'
import { accountRial, keyRequests, keyRial, keyTokens } from '../../src/ledger/counters.js'
import type { EndingRecord } from '../../src/ledger/ledger.js'
import { openLedger } from '../../src/ledger/sqlite.js'
import { isoTime, zone } from '../../src/ledger/zone.js'
import type { Runtime, Services } from '../../src/runtime.js'
import { AT, keyOf, tehran } from '../support/exchanges.js'

const RECORD = {
  key: 'a',
  account: 'acme',
  plan: 'p',
  surface: 'chat',
  model: 'm',
  provider: 'up',
  stream: false,
  client_request_id: null,
  trace_id: null,
  held_tokens: 0,
  held_rial: 0n,
  price: 'null',
}

async function page(t: Test, key: Key, at = AT) {
  const ledger = await openLedger({ path: ':memory:', durability: 'process', create: true })
  t.teardown(() => ledger.close())
  const place = zone('Asia/Tehran')
  const runtime = { windows: tehran, iso: (ms: number) => isoTime(ms, place) } as unknown as Runtime
  const hold = (id: string, tokens: bigint, rial: bigint) => {
    const window = (kind: 'minute' | 'hour' | 'day' | 'month') => tehran(kind, AT)
    const claim = (counter: ReturnType<typeof keyRial>, amount: bigint, counted = false) => ({
      counter,
      amount,
      ceiling: null,
      code: 'x',
      ...(counted ? { ends: 'counted' as const } : {}),
    })
    return ledger.hold({
      id,
      at: AT,
      record: RECORD,
      claims: [
        ...(['minute', 'hour', 'day'] as const).map(kind => claim(keyRequests('a', window(kind)), 1n, true)),
        claim(keyTokens('a', window('minute')), tokens),
        claim(keyTokens('a', window('day')), tokens),
        claim(keyRial('a', window('day')), rial),
        claim(keyRial('a', window('month')), rial),
        claim(accountRial('acme'), rial),
      ],
    })
  }
  const settle = (id: string, tokens: bigint, rial: bigint) =>
    ledger.settle(id, {
      state: 'settled',
      actual: { tokens, rial },
      record: {
        ended_at: AT,
        ended_by: 'provider',
        usage_source: 'provider',
        input_tokens: Number(tokens),
        cached_input_tokens: 0,
        output_tokens: 0,
        reasoning_tokens: 0,
        cost_rial: rial,
        overrun_rial: 0n,
        status: 200,
        code: null,
        provider: 'up',
        price: 'null',
        upstream_request_id: null,
        attempts: '[]',
        ttft_ms: null,
        duration_ms: 1,
      } satisfies EndingRecord,
    })
  const answer = () => keyPage.answer({ key, at } as Exchange, '', runtime, { ledger } as unknown as Services)
  return { ledger, hold, settle, answer }
}

const RESETS = {
  minute: '2026-11-21T13:46:00+03:30',
  hour: '2026-11-21T14:00:00+03:30',
  day: '2026-11-22T00:00:00+03:30',
  month: '2026-12-01T00:00:00+03:30',
}

t.test('usage and remaining make the limit; what is held is told beside them', async t => {
  const key = keyOf({
    plan: { name: 'pro', requests_per_minute: 10n, requests_per_hour: 100n, requests_per_day: 500n, tokens_per_minute: 20_000n },
    budget: { daily_tokens: 200_000n, daily_rial: 400_000n, monthly_rial: 5_000_000n },
  })
  const { ledger, hold, settle, answer } = await page(t, key)
  await ledger.credit({ id: 'c', account: 'acme', amount: 1_000_000n, note: '', at: AT })
  await hold('req_1', 100n, 1_000n)
  await settle('req_1', 60n, 700n)
  await hold('req_2', 200n, 2_000n)
  t.strictSame(await answer(), {
    object: 'key',
    plan: 'pro',
    limits: {
      requests_per_minute: 10,
      requests_per_hour: 100,
      requests_per_day: 500,
      tokens_per_minute: 20_000,
      daily_token_budget: 200_000,
      daily_budget_rial: 400_000,
      monthly_budget_rial: 5_000_000,
    },
    usage: {
      requests_this_minute: 1,
      held_requests_this_minute: 1,
      requests_this_hour: 1,
      held_requests_this_hour: 1,
      requests_today: 1,
      held_requests_today: 1,
      tokens_this_minute: 60,
      held_tokens_this_minute: 200,
      tokens_today: 60,
      held_tokens_today: 200,
      spend_today_rial: 700,
      held_spend_today_rial: 2_000,
      spend_mtd_rial: 700,
      held_spend_mtd_rial: 2_000,
    },
    remaining: {
      requests_this_minute: 9,
      requests_this_hour: 99,
      requests_today: 499,
      tokens_this_minute: 19_940,
      tokens_today: 199_940,
      budget_today_rial: 399_300,
      budget_rial: 4_999_300,
    },
    wallet: { balance_rial: 999_300, held_rial: 2_000, available_rial: 997_300 },
    resets: RESETS,
  })
})

t.test('null is no ceiling, nothing remains below 0, and there may be no wallet', async t => {
  const { hold, settle, answer } = await page(t, keyOf({ account: null, plan: { requests_per_day: 0n }, budget: { daily_rial: 500n } }))
  await hold('req_1', 100n, 400n)
  await settle('req_1', 100n, 900n)
  t.match(await answer(), {
    limits: { requests_per_minute: null, requests_per_day: 0, daily_budget_rial: 500, monthly_budget_rial: null },
    usage: { requests_this_minute: 1, requests_today: 1, spend_today_rial: 900 },
    remaining: { requests_this_minute: null, requests_today: 0, budget_today_rial: 0, budget_rial: null },
    wallet: null,
  })
})

t.test('a new window begins with nothing', async t => {
  const at = tehran('day', AT).end
  const { hold, settle, answer } = await page(t, keyOf(), at)
  await hold('req_1', 100n, 400n)
  await settle('req_1', 100n, 400n)
  t.match(await answer(), {
    usage: { requests_this_minute: 0, requests_today: 0, spend_today_rial: 0, spend_mtd_rial: 400 },
    resets: { day: '2026-11-23T00:00:00+03:30' },
  })
})
