import t from 'tap'
import { accountRial, keyRequests, keyRial, keyTokens } from '../src/ledger/counters.js'
import type { Claim, Reading } from '../src/ledger/ledger.js'
import { isoTime, zone } from '../src/ledger/zone.js'
import { refusal } from '../src/refusal.js'
import { AT, asked, tehran } from './support/exchanges.js'

const place = zone('Asia/Tehran')
const iso = (ms: number) => isoTime(ms, place)
const window = (kind: 'minute' | 'hour' | 'day' | 'month') => tehran(kind, AT)

function refused(
  counter: Claim['counter'],
  code: string,
  [ceiling, posted, pending, amount]: readonly [bigint, bigint, bigint, bigint],
  now = AT,
) {
  const claim: Claim = { counter, amount, ceiling, code }
  const reading: Reading = { counter, ceiling, posted, pending }
  return refusal({ admitted: false, refused: claim, reading, readings: [reading] }, asked(), now, iso)
}

t.test('each ceiling has its status, its wait and its words', async t => {
  const midnight = 10 * 3600 + 14 * 60 + 40
  const rows: [
    claim: Parameters<typeof refused>,
    status: number,
    type: string,
    retryAfter: number | undefined,
    shouldRetry: boolean | undefined,
    message: RegExp,
  ][] = [
    [
      [keyRequests('a', window('minute')), 'rate_limit_rpm', [10n, 9n, 1n, 1n]],
      429,
      'rate_limit_error',
      40,
      undefined,
      /^Requests per minute of key a reached: ceiling 10, used 9, held 1, this request needs up to 1 requests\. There is room again at 2026-11-21T13:46:00\+03:30, or raise requests_per_minute of its plan\.$/,
    ],
    [[keyRequests('a', window('hour')), 'rate_limit_rph', [10n, 10n, 0n, 1n]], 429, 'rate_limit_error', 880, false, /^Requests per hour/],
    [
      [keyRequests('a', window('day')), 'rate_limit_rpd', [10n, 10n, 0n, 1n]],
      429,
      'rate_limit_error',
      midnight,
      false,
      /^Requests per day/,
    ],
    [
      [keyTokens('a', window('minute')), 'rate_limit_tpm', [100n, 90n, 0n, 50n]],
      429,
      'rate_limit_error',
      40,
      undefined,
      /^Tokens per minute/,
    ],
    [
      [keyTokens('a', window('minute')), 'rate_limit_tpm', [100n, 0n, 0n, 101n]],
      429,
      'rate_limit_error',
      40,
      false,
      /It can never fit: ask for less \(a smaller max_tokens\), or raise tokens_per_minute of its plan\.$/,
    ],
    [
      [keyTokens('a', window('day')), 'key_daily_token_budget_reached', [100n, 90n, 0n, 50n]],
      429,
      'insufficient_quota',
      midnight,
      false,
      /^Daily tokens of key a reached.*raise budget\.daily_tokens\.$/,
    ],
    [
      [keyRial('a', window('day')), 'key_daily_budget_reached', [100n, 90n, 0n, 50n]],
      429,
      'insufficient_quota',
      midnight,
      false,
      /^Daily budget of key a reached.* 50 Rial/,
    ],
    [
      [keyRial('a', window('month')), 'monthly_cap_reached', [100n, 90n, 0n, 50n]],
      402,
      'insufficient_quota',
      undefined,
      undefined,
      /^Monthly cap of key a reached.*2026-12-01T00:00:00\+03:30/,
    ],
    [
      [keyRial('a', window('month')), 'monthly_cap_reached', [100n, 10n, 80n, 50n]],
      402,
      'insufficient_quota',
      1,
      undefined,
      /^Monthly cap/,
    ],
    [
      [accountRial('acme'), 'insufficient_balance', [100n, 90n, 0n, 50n]],
      402,
      'insufficient_quota',
      undefined,
      undefined,
      /^Wallet of account acme reached.*Ask for less \(a smaller max_tokens\), or credit the account\.$/,
    ],
    [[accountRial('acme'), 'insufficient_balance', [100n, 40n, 30n, 50n]], 402, 'insufficient_quota', 1, undefined, /^Wallet/],
    [
      [{ meter: 'images', subject: 'key:a', window: window('hour') }, 'images_reached', [1n, 1n, 0n, 1n]],
      429,
      'rate_limit_error',
      880,
      false,
      /^Ceiling images_reached reached.* 1 images/,
    ],
  ]
  for (const [claim, status, type, retryAfter, shouldRetry, message] of rows) {
    const error = refused(...claim)
    t.match({ ...error, message: error.message }, { code: claim[1], status, type, param: null, origin: 'policy', message }, claim[1])
    t.strictSame([error.retryAfter, error.shouldRetry], [retryAfter, shouldRetry], claim[1])
  }
})

t.test('where requests at one time are the ceiling, the end of one makes room', async t => {
  const all = { kind: 'all', start: 0, end: Number.POSITIVE_INFINITY } as const
  const counter = { meter: 'in_flight', subject: 'key:a', window: all }
  const claim: Claim = { counter, amount: 1n, ceiling: 2n, code: 'too_many_concurrent', ends: 'released' }
  const reading: Reading = { counter, ceiling: 2n, posted: 0n, pending: 2n }
  const error = refusal({ admitted: false, refused: claim, reading, readings: [reading] }, asked(), AT, iso)
  t.match(error.message, /Wait until one has ended, or raise the ceiling of the policy concurrency\.$/)
  t.strictSame([error.status, error.retryAfter], [429, 1])
})

t.test('the figures are told, and whether waiting is of any use', async t => {
  t.strictSame(refused(keyRial('a', window('day')), 'key_daily_budget_reached', [400_000n, 391_200n, 4_100n, 6_050n]).details, {
    ceiling: 400_000,
    posted: 391_200,
    held: 4_100,
    asked: 6_050,
    resets_at: '2026-11-22T00:00:00+03:30',
    permanent: false,
  })
  t.match(refused(keyRial('a', window('day')), 'key_daily_budget_reached', [100n, 0n, 0n, 101n]).details, { permanent: true })
  t.match(
    refused(accountRial('acme'), 'insufficient_balance', [100n, 0n, 0n, 101n]).details,
    { permanent: false, resets_at: null },
    'a wallet can be credited',
  )
})

t.test('the wait is whole seconds, at least one, and exactly until there is room', async t => {
  const end = window('minute').end
  const wait = (now: number) => refused(keyRequests('a', window('minute')), 'rate_limit_rpm', [1n, 1n, 0n, 1n], now).retryAfter
  t.strictSame([wait(end - 60_000), wait(end - 1_001), wait(end - 1_000), wait(end - 1), wait(end + 5_000)], [60, 2, 1, 1, 1])
})
