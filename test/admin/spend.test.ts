import t from 'tap'
import { Spending, type SpendQuery } from '../../src/admin/spend.js'
import type { UsageQuery, UsageRow } from '../../src/ledger/usage.js'

const QUERY: SpendQuery = { from: '2026-11-20', to: '2026-11-22', key: null, model: null }
const RUNTIME = { config: { timezone: 'Asia/Tehran' } } as Parameters<Spending['of']>[1]

function row(group: UsageRow['group'], rial: bigint): UsageRow {
  const tokens = { input_tokens: 5n, cached_input_tokens: 0n, output_tokens: 7n, reasoning_tokens: 0n }
  return { group, requests: 1, partial: 0, failed: 0, estimated: 0, ...tokens, cost_rial: rial, overrun_rial: 0n }
}

/** A ledger that answers when it is told to. */
function ledgerOf(rows: (query: UsageQuery) => UsageRow[] = () => []) {
  const asked: UsageQuery[] = []
  let under = 0
  let most = 0
  const usage = async (query: UsageQuery): Promise<UsageRow[]> => {
    asked.push(query)
    most = Math.max(most, ++under)
    await new Promise(resolve => setImmediate(resolve))
    under--
    return rows(query)
  }
  return { asked, most: () => most, spending: new Spending({ usage }) }
}

t.test('every day of the range has its row; the sums are those of the days', async t => {
  const { spending, asked } = ledgerOf(({ by: [name] }) => {
    if (name === 'day') return [row({ day: '2026-11-21' }, 30n), row({ day: '2026-11-22' }, 9_007_199_254_740_993n)]
    return name === 'key' ? [row({ key: 'a' }, 10n), row({ key: null }, 30n)] : [row({ model: 'up/m' }, 40n)]
  })
  const found = await spending.of(QUERY, RUNTIME, () => 0)
  t.same(
    found.days.map(({ name, rial }) => [name, rial]),
    [
      ['2026-11-20', 0n],
      ['2026-11-21', 30n],
      ['2026-11-22', 9_007_199_254_740_993n],
    ],
  )
  t.same(found.total, { requests: 2, failed: 0, input: 10n, output: 14n, rial: 9_007_199_254_741_023n })
  t.same(
    found.keys.map(({ name }) => name),
    [null, 'a'],
    'the dearest first',
  )
  // Midnight in Tehran is 20:30 UTC of the day before.
  t.match(asked[0], { since: Date.UTC(2026, 10, 19, 20, 30), until: Date.UTC(2026, 10, 22, 20, 30), timezone: 'Asia/Tehran' })
})

t.test('whoever asks for the same gets the same, until it is old; a long one stays longer', async t => {
  const { spending, asked } = ledgerOf()
  let now = 0
  const ask = (query = QUERY) => spending.of(query, RUNTIME, () => now)
  const [one, two] = await Promise.all([ask(), ask()])
  t.equal(one, two)
  now = 2999
  await ask()
  t.equal(asked.length, 3, 'one for each of day, key and model')
  now = 3001
  await ask()
  t.equal(asked.length, 6)
  await ask({ ...QUERY, key: 'a' })
  t.match(asked.at(-1), { key: 'a' })
})

t.test('one is made at a time, and what fails is not kept', async t => {
  const { spending, asked, most } = ledgerOf()
  const ask = (from: string) => spending.of({ ...QUERY, from }, RUNTIME, () => 0)
  await Promise.all(['2026-11-17', '2026-11-18', '2026-11-19'].map(ask))
  t.equal(most(), 1)
  t.equal(asked.length, 9)
  let fails = true
  const broken = ledgerOf(() => {
    if (fails) throw new Error('no')
    return []
  })
  await t.rejects(
    broken.spending.of(QUERY, RUNTIME, () => 0),
    { message: 'no' },
  )
  fails = false
  await new Promise(resolve => setImmediate(resolve))
  t.match(await broken.spending.of(QUERY, RUNTIME, () => 0), { total: { requests: 0 } })
})

t.test('a range that is none is said to be none', async t => {
  const { spending } = ledgerOf()
  const ask = (from: string, to: string) => spending.of({ ...QUERY, from, to }, RUNTIME, () => 0)
  await t.rejects(ask('2026-02-30', '2026-03-01'), { message: '"2026-02-30" is no day: write 2026-07-28' })
  await t.rejects(ask('2026-03-02', '2026-03-01'), { message: 'the first day is after the last' })
  await t.rejects(ask('2020-01-01', '2026-03-01'), { message: 'that is more than 400 days' })
  await t.rejects(ask('2026-03-01T10:00:00Z', '2026-03-02'), /no day/)
})
