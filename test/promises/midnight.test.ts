import t, { type Test } from 'tap'
import { type Answer, gateway, inspect, type RunningGateway, yaml } from '../support/gateway.js'
import { provider } from '../support/provider.js'
import { type WallClock, wallClock } from '../support/wall-clock.js'

/*
 * Budgets begin anew at midnight in Tehran, with the month's first day, and never by a clock that was set back.
 */

/** What the scripted provider's answer costs. */
const COST = 13
const BODY = { model: 'up/m', max_tokens: 20, messages: [{ role: 'user', content: 'Hello' }] }

/** A gateway whose key has room for exactly two answers within one window of `budget`. */
async function roomForTwo(t: Test, clock: WallClock, budget: string, more = ''): Promise<RunningGateway> {
  const up = await provider(t)
  const running = await gateway(t, yaml(up.url, { budget: '{daily_rial: 1}', more }), { env: clock.env })
  const { json } = await running.post('/v1/chat/completions', BODY)
  await running.reload(yaml(up.url, { budget: `{${budget}: ${json.error.details.asked + COST}}`, more }))
  return running
}

async function ask(running: RunningGateway, times: number): Promise<Answer[]> {
  const answers: Answer[] = []
  for (let i = 0; i < times; i++) answers.push(await running.post('/v1/chat/completions', BODY))
  return answers
}

const codes = (answers: readonly Answer[]): string[] => answers.map(({ status, json }) => (status === 200 ? 'ok' : json.error.code))

/** The seconds to `end` that a clock showed while an answer was made, as `retry-after` may say them. */
function between(t: Test, from: number, until: number, end: string, answer: Answer): void {
  const wait = Number(answer.headers.get('retry-after'))
  const [most, least] = [from, until].map(at => Math.ceil((Date.parse(end) - at) / 1000))
  t.ok(wait >= (least as number) && wait <= (most as number), `retry-after ${wait} is from ${least} to ${most}`)
}

t.jobs = 2
t.test('the daily budget: retry-after is the seconds to midnight in Tehran, and a new day is a new budget', async t => {
  // 23:47:13 in Tehran.
  const clock = wallClock(t, '2026-11-21T20:17:13Z')
  const running = await roomForTwo(t, clock, 'daily_rial')
  let from = clock.now()
  const before = await ask(running, 3)
  t.same(codes(before), ['ok', 'ok', 'key_daily_budget_reached'])
  const refused = before[2] as Answer
  between(t, from, clock.now(), '2026-11-21T20:30:00Z', refused)
  t.equal(refused.status, 429)
  t.equal(refused.headers.get('x-should-retry'), 'false')
  t.equal(refused.json.error.details.resets_at, '2026-11-22T00:00:00+03:30')

  await clock.stop('2026-11-21T20:29:59.300Z')
  const last = (await ask(running, 1))[0] as Answer
  t.equal(last.headers.get('retry-after'), '1', 'never less than a second')

  await clock.set('2026-11-21T20:30:02Z')
  t.match((await running.get('/v1/key')).json, { usage: { spend_today_rial: 0, spend_mtd_rial: 2 * COST } })
  from = clock.now()
  const after = await ask(running, 3)
  t.same(codes(after), ['ok', 'ok', 'key_daily_budget_reached'], 'fresh after midnight')
  between(t, from, clock.now(), '2026-11-22T20:30:00Z', after[2] as Answer)
})

for (const [month, at, end, local] of [
  ['gregorian', '2026-11-30T20:20:00Z', '2026-11-30T20:30:05Z', '2026-12-01T00:00:00+03:30'],
  // 30 Aban 1405 is the last day of its month.
  ['persian', '2026-11-21T20:20:00Z', '2026-11-21T20:30:05Z', '2026-11-22T00:00:00+03:30'],
] as const) {
  t.test(`the monthly cap, ${month}: fresh with the first day of the month`, async t => {
    const clock = wallClock(t, at)
    const running = await roomForTwo(t, clock, 'monthly_rial', `month: ${month}`)
    const before = await ask(running, 3)
    t.same(codes(before), ['ok', 'ok', 'monthly_cap_reached'])
    const { status, headers, json } = before[2] as Answer
    t.equal(status, 402)
    t.equal(headers.get('retry-after'), null, 'nobody shall wait for a month inside a retry loop')
    t.match(json.error.details, { posted: 2 * COST, held: 0, resets_at: local, permanent: false })
    await clock.set(end)
    t.match((await running.get('/v1/key')).json, { usage: { spend_mtd_rial: 0 }, remaining: { budget_rial: json.error.details.ceiling } })
    t.same(codes(await ask(running, 3)), ['ok', 'ok', 'monthly_cap_reached'])
  })
}

t.test('a month of the other calendar does not end there', async t => {
  const clock = wallClock(t, '2026-11-21T20:20:00Z')
  const running = await roomForTwo(t, clock, 'monthly_rial', 'month: gregorian')
  t.same(codes(await ask(running, 3)), ['ok', 'ok', 'monthly_cap_reached'])
  await clock.set('2026-11-21T20:30:05Z')
  t.same(codes(await ask(running, 1)), ['monthly_cap_reached'])
})

t.test('a clock that is set back reopens no window, neither one that was used up nor one that was not used', async t => {
  const clock = wallClock(t, '2026-11-21T20:20:00Z')
  const running = await roomForTwo(t, clock, 'daily_rial')
  t.same(codes(await ask(running, 3)), ['ok', 'ok', 'key_daily_budget_reached'])
  await clock.set('2026-11-21T20:30:05Z')
  t.same(codes(await ask(running, 3)), ['ok', 'ok', 'key_daily_budget_reached'])
  for (const back of ['2026-11-21T20:29:58Z', '2026-11-19T12:00:00Z', '2026-11-21T20:31:00Z']) {
    await clock.set(back)
    t.same(codes(await ask(running, 1)), ['key_daily_budget_reached'], back)
  }
  t.ok(await running.line('the clock was set back by'))
  await clock.set('2026-11-22T20:30:05Z')
  t.same(codes(await ask(running, 1)), ['ok'], 'the next day comes all the same')
  await running.stop()
  await inspect(running.folder, async ledger => t.same(await ledger.verify(), []))
})
