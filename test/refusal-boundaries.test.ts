import t from 'tap'
import { ANONYMOUS, type Asked } from '../src/exchange.js'
import { accountRial, keyRequests, keyRial, keyTokens } from '../src/ledger/counters.js'
import type { Admission, Counter, Ends } from '../src/ledger/ledger.js'
import { refusal } from '../src/refusal.js'

const NOW = 1_700_000_000_000
const KEY = { ...ANONYMOUS, name: 'a', account: 'acme' }
const iso = (at: number) => `T+${at - NOW}`
const minute = (end: number) => ({ kind: 'minute', start: NOW - 60_000, end }) as const

interface Figures {
  readonly ceiling: bigint
  readonly posted?: bigint
  readonly pending?: bigint
  readonly amount: bigint
}

function refused(code: string, counter: Counter, { ceiling, posted = 0n, pending = 0n, amount }: Figures, ends: Ends = 'measured') {
  const reading = { counter, ceiling, posted, pending }
  const claim = { counter, amount, ceiling, code, ends }
  const admission: Extract<Admission, { admitted: false }> = { admitted: false, refused: claim, reading, readings: [reading] }
  const { message, status, retryAfter, shouldRetry, details } = refusal(admission, { key: KEY } as Asked, NOW, iso)
  return { message, status, retryAfter, shouldRetry, permanent: details?.permanent, resets_at: details?.resets_at }
}

t.test('the wait is whole seconds to the end of the window, at least one', async t => {
  const wait = (ms: number) =>
    refused('rate_limit_rpm', keyRequests('a', minute(NOW + ms)), { ceiling: 1n, posted: 1n, amount: 1n }).retryAfter
  t.strictSame([wait(23_000), wait(22_001), wait(1), wait(0), wait(-5000)], [23, 23, 1, 1, 1], 'also where the clock has passed the end')
})

t.test('a wait of more than a minute is not for a client to sit out', async t => {
  const hour = (ms: number) =>
    refused('rate_limit_rph', keyRequests('a', { kind: 'hour', start: NOW - 60_000, end: NOW + ms }), {
      ceiling: 1n,
      posted: 1n,
      amount: 1n,
    })
  t.equal(hour(60_000).shouldRetry, undefined)
  t.equal(hour(60_001).shouldRetry, false)
})

t.test('what alone is larger than its ceiling can never fit; what is as large as it can', async t => {
  const tokens = (amount: bigint) => refused('rate_limit_tpm', keyTokens('a', minute(NOW + 5000)), { ceiling: 100n, posted: 1n, amount })
  t.match(tokens(100n), { permanent: false, message: /There is room again at T\+5000, or raise tokens_per_minute of its plan\./ })
  t.equal(tokens(100n).shouldRetry, undefined)
  t.match(tokens(101n), { permanent: true, shouldRetry: false, message: /It can never fit: ask for less/ })
})

t.test('what to do instead is what helps: fewer tokens do so where tokens or Rial are counted, and nowhere else', async t => {
  const all = { kind: 'all', start: 0, end: Number.POSITIVE_INFINITY } as const
  const day = { kind: 'day', start: 0, end: NOW + 5000 } as const
  const own = { meter: 'in_flight', subject: 'key:a', window: all }
  const full = { ceiling: 1n, pending: 1n, amount: 1n }
  const rows: [told: ReturnType<typeof refused>, advice: RegExp, permanent: boolean][] = [
    [refused('rate_limit_rpd', keyRequests('a', day), { ceiling: 0n, amount: 1n }), / fit: raise requests_per_day of its plan\.$/, true],
    [refused('too_many', own, full, 'released'), / in_flight\. Wait until one has ended, or raise it\.$/, false],
    [refused('too_many', own, { ceiling: 0n, amount: 1n }, 'released'), / It can never fit: raise it\.$/, true],
    [refused('too_many', own, full), / in_flight\. Raise it\.$/, false],
  ]
  for (const [{ message, permanent }, advice, never] of rows) {
    t.match(message, advice)
    t.equal(permanent, never, message)
  }
})

t.test('money that is only held comes back soon; money that is spent does not', async t => {
  const month = (figures: Figures) => refused('monthly_cap_reached', keyRial('a', { kind: 'month', start: 0, end: NOW + 9 }), figures)
  t.match(month({ ceiling: 100n, posted: 40n, pending: 1n, amount: 60n }), { status: 402, retryAfter: 1 })
  t.equal(month({ ceiling: 100n, posted: 41n, pending: 1n, amount: 60n }).retryAfter, undefined)
  t.equal(month({ ceiling: 100n, posted: 40n, pending: 0n, amount: 60n }).retryAfter, undefined, 'nothing is held that could come back')
})

t.test('a wallet can be credited: nothing is beyond it for ever', async t => {
  const wallet = refused('insufficient_balance', accountRial('acme'), { ceiling: 10n, amount: 500n })
  t.strictSame(wallet, {
    message:
      'Wallet of account acme reached: ceiling 10, used 0, held 0, this request needs up to 500 Rial. Ask for less (a smaller max_tokens), or credit the account.',
    status: 402,
    retryAfter: undefined,
    shouldRetry: undefined,
    permanent: false,
    resets_at: null,
  })
})
