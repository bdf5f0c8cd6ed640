import fc from 'fast-check'
import t from 'tap'
import type { LiveEvent } from '../../src/control/live.js'
import type { Access } from '../../src/telemetry/log.js'
import { dashboard, type ScreenLine } from '../../src/terminal/dashboard.js'
import { Gathered } from '../../src/terminal/figures.js'
import { widthOf } from '../../src/terminal/table.js'

function line(over: Partial<Access> = {}): Access {
  return {
    time: 1_800_000_000_000,
    level: 'info',
    request_id: 'req_01M80A8CF42QS4FG2ZPYQRK4KJ',
    client_request_id: null,
    trace_id: null,
    key: 'app',
    plan: 'free',
    surface: 'chat',
    model: 'up/m',
    provider: 'up',
    stream: false,
    status: 200,
    code: null,
    input_tokens: 100,
    output_tokens: 20,
    cached_tokens: 0,
    usage_source: 'provider',
    held_rial: 500n,
    cost_rial: 300n,
    ttft_ms: null,
    duration_ms: 40,
    upstream_ms: 30,
    gateway_ms: 1,
    retries: 0,
    ended_by: 'provider',
    upstream_request_id: null,
    ...over,
  }
}

function ended(over: Partial<Access> = {}, state: 'settled' | 'refused' | 'voided' = 'settled'): LiveEvent {
  return { kind: 'ended', state, line: line(over) }
}

const REFUSED = { status: 429, code: 'rate_limit_rpm', input_tokens: null, output_tokens: null, cost_rial: null, duration_ms: 1 }
const STATE: LiveEvent = {
  kind: 'state',
  state: { at: 10_000, version: '1.2.3', in_flight: 4, open_holds: 3, held_rial: 12_345n, oldest_hold_at: 7_500 },
}

function shown(lines: readonly ScreenLine[]): string[] {
  return lines.map(({ text }) => text)
}

t.test('the figures of the last minute, of all and of each key and model', async t => {
  const gathered = new Gathered(0)
  gathered.add(ended({ duration_ms: 9000 }), 1000)
  for (let i = 0; i < 30; i++) gathered.add(ended({ duration_ms: i, key: i < 20 ? 'a' : 'b', request_id: `req_${i}` }), 50_000 + i)
  for (let i = 0; i < 3; i++) gathered.add(ended({ ...REFUSED, key: 'a', model: null }, 'refused'), 51_000)
  gathered.add(ended({ status: 502, code: 'upstream_error', cost_rial: 0n }, 'voided'), 51_000)
  gathered.add(STATE, 51_000)
  const { total, keys, models, codes, slowest, span, state } = gathered.figures(62_000)
  t.match(total, { requests: 34, refused: 3, failed: 1, inputTokens: 3100, outputTokens: 620, rial: 9000n, median: 14, slow: 28 })
  t.match(keys, [
    { name: 'a', requests: 23, refused: 3 },
    { name: 'b', requests: 10 },
    { name: 'app', requests: 1, failed: 1 },
  ])
  t.match(models, [{ name: 'up/m', requests: 31 }])
  t.strictSame(codes, [
    { code: 'rate_limit_rpm', status: 429, count: 3 },
    { code: 'upstream_error', status: 502, count: 1 },
  ])
  t.equal(slowest.length, 10)
  t.equal(slowest[0]?.request_id, 'req_29', 'what is older than a minute is gone')
  t.equal(span, 60_000)
  t.match(state, { open_holds: 3 })
  t.equal(gathered.figures(200_000).total.requests, 0)
})

t.test('what it looks like', async t => {
  const gathered = new Gathered(0)
  for (let i = 0; i < 20; i++) gathered.add(ended({ duration_ms: 20 + i, ttft_ms: 5.25 }), 1000)
  for (let i = 0; i < 4; i++) gathered.add(ended({ ...REFUSED, model: null, key: 'batch' }, 'refused'), 1000)
  gathered.add(STATE, 1000)
  const lines = shown(dashboard(gathered.figures(10_000), 'gateway.yaml', false, { columns: 100, rows: 22 }))
  t.strictSame(lines.slice(0, 16), [
    'model-gateway 1.2.3  last 10 s  (q ends it)  gateway.yaml',
    '',
    'requests  2.4/s, 4 refused, 0 failed',
    'tokens    200/s in, 40/s out',
    'spend     6,000 Rial, 36,000 a minute',
    'held      12,345 Rial in 3 holds, the oldest for 2500 ms; 4 under way',
    'time      29 ms median, 38 ms at 95 %',
    'refusals  429 rate_limit_rpm 4',
    '',
    'KEY    REQ/S  REFUSED  FAILED  IN/S  OUT/S   RIAL  MEDIAN   95 %',
    'app      2.0        0       0   200     40  6,000   29 ms  38 ms',
    'batch    0.4        4       0     0      0      0       -      -',
    '',
    'MODEL  REQ/S  REFUSED  FAILED  IN/S  OUT/S   RIAL  MEDIAN   95 %',
    'up/m     2.0        0       0   200     40  6,000   29 ms  38 ms',
    '',
  ])
  t.equal(lines.length, 22)
  const gone = dashboard(gathered.figures(10_000), 'gateway.yaml', true, { columns: 100, rows: 3 })
  t.strictSame(gone.slice(1, 2), [{ text: 'The gateway has gone away; waiting for it.', look: 'bad' }])
  gathered.add({ kind: 'missed', count: 1200 }, 1000)
  t.match(shown(dashboard(gathered.figures(10_000), 'x', false, { columns: 100, rows: 3 }))[1], /^1,200 requests are not in these figures/)
})

t.test('a small terminal keeps what matters: the sums, then keys, then models', async t => {
  const gathered = new Gathered(0)
  for (let i = 0; i < 50; i++) gathered.add(ended({ key: `key-${i}` }), 1000)
  const titles = (rows: number) =>
    shown(dashboard(gathered.figures(2000), 'x', false, { columns: 60, rows })).flatMap(
      text => /^ *(KEY|MODEL|SLOWEST)\b/.exec(text)?.[1] ?? [],
    )
  t.strictSame([8, 11, 14, 17, 40].map(titles), [[], ['KEY'], ['KEY', 'MODEL'], ['KEY', 'MODEL', 'SLOWEST'], ['KEY', 'MODEL', 'SLOWEST']])
})

t.test('whatever names come to, it never goes beyond the terminal, and nothing steers it', async () => {
  const name = fc.string({ unit: 'binary', maxLength: 200 })
  const event = fc.record({ key: fc.option(name), model: fc.option(name), code: fc.option(name) }).map(over => ended(over))
  fc.assert(
    fc.property(
      fc.array(event, { maxLength: 30 }),
      fc.integer({ min: 1, max: 200 }),
      fc.integer({ min: 1, max: 60 }),
      (events, columns, rows) => {
        const gathered = new Gathered(0)
        for (const one of events) gathered.add(one, 500)
        const lines = shown(dashboard(gathered.figures(1000), 'gateway.yaml', false, { columns, rows }))
        return lines.length <= rows && lines.every(text => widthOf(text) <= columns && !/\p{Cc}/u.test(text))
      },
    ),
  )
})
