import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { openLedger } from '../../src/ledger/sqlite.js'
import type { Dimension, UsageQuery } from '../../src/ledger/usage.js'
import { isoTime, zone } from '../../src/ledger/zone.js'
import { type Request, request } from '../support/command.js'

const FROM = Date.parse('2026-06-25T00:00:00Z')
const TEHRAN = zone('Asia/Tehran')

const requests: fc.Arbitrary<Request> = fc.record({
  at: fc.integer({ min: FROM, max: FROM + 10 * 86_400_000 }),
  key: fc.constantFrom('a', 'b'),
  account: fc.constantFrom('acme', 'beta'),
  model: fc.constantFrom('x/1', 'x/2'),
  rial: fc.bigInt(0n, 1000n),
  input: fc.nat(1000),
  state: fc.constantFrom('settled', 'partial', 'voided', 'held'),
})

t.test('sums are those of the records, under any grouping and filter', async t => {
  const by = fc.subarray(['key', 'account', 'model', 'day', 'month'] satisfies Dimension[])
  const filter = fc.record(
    { key: fc.constantFrom('a', 'c'), model: fc.constant('x/1'), since: fc.integer({ min: FROM, max: FROM + 86_400_000 * 9 }) },
    { requiredKeys: [] },
  )
  await fc.assert(
    fc.asyncProperty(fc.array(requests, { maxLength: 40 }), by, filter, async (made, by, filter) => {
      const ledger = await openLedger({ path: ':memory:', durability: 'process', create: true })
      for (const one of made) await request(ledger, one)
      const expected = new Map<string, { requests: number; cost: bigint; input: bigint }>()
      for (const { at, key = '', account = '', model = '', rial = 0n, input = 0, state } of made) {
        if (state === 'held' || at < (filter.since ?? 0) || key !== (filter.key ?? key) || model !== (filter.model ?? model)) continue
        const time = isoTime(at, TEHRAN)
        const values = { key, account, model, day: time.slice(0, 10), month: time.slice(0, 7) }
        const id = JSON.stringify(by.map(name => values[name]))
        const sum = expected.get(id) ?? { requests: 0, cost: 0n, input: 0n }
        const charged = state === 'voided' ? 0n : 1n
        expected.set(id, { requests: sum.requests + 1, cost: sum.cost + rial * charged, input: sum.input + BigInt(input) * charged })
      }
      const query: UsageQuery = { ...filter, by, timezone: 'Asia/Tehran', calendar: 'gregorian' }
      const rows = await ledger.usage(query)
      await ledger.close()
      const found = new Map(
        rows.map(row => [
          JSON.stringify(by.map(name => row.group[name])),
          { requests: row.requests, cost: row.cost_rial, input: row.input_tokens },
        ]),
      )
      t.strictSame([...found].sort(), [...expected].sort())
      t.strictSame([...found.keys()], [...found.keys()].sort(), 'in the order of the groups')
    }),
    { numRuns: 40 },
  )
})

t.test('more records than are read at a time', async t => {
  const ledger = await openLedger({ path: join(t.testdir(), 'ledger.db'), durability: 'process', create: true })
  t.teardown(() => ledger.close())
  const ids: string[] = []
  for (let i = 0; i < 2500; i += 250) {
    ids.push(...(await Promise.all(Array.from({ length: 250 }, (_, j) => request(ledger, { at: FROM + i + j, rial: 2n })))))
  }
  const query = { by: [], timezone: 'UTC', calendar: 'gregorian' } as const
  t.match(await ledger.usage(query), [{ group: {}, requests: 2500, cost_rial: 5000n, input_tokens: 250_000n }])
  t.strictSame(await ledger.usage({ ...query, until: FROM }), [])
  const seen: string[] = []
  let turns = 0
  const counting = setInterval(() => turns++, 0)
  for await (const page of ledger.pages({})) seen.push(...page.map(({ id }) => id))
  clearInterval(counting)
  t.strictSame(seen, ids.sort())
  t.ok(turns > 3, 'others have their turn in between')
  const part = []
  for await (const page of ledger.pages({ since: FROM + 10, until: FROM + 12 })) part.push(...page.map(({ at }) => at - FROM))
  t.strictSame(part, [10, 11])
})

t.test('groups come in their order, whatever the order of the records: the first that differs decides', async t => {
  const ledger = await openLedger({ path: join(t.testdir(), 'ledger.db'), durability: 'process', create: true })
  t.teardown(() => ledger.close())
  // More of each than are read at a time.
  const made = [
    { key: 'b', model: 'x/2' },
    { key: 'c', model: 'x/1' },
    { key: 'a', model: 'x/3' },
    { key: 'b', model: 'x/1' },
  ]
  for (const [i, one] of made.entries())
    await Promise.all(Array.from({ length: 1001 }, (_, j) => request(ledger, { ...one, at: FROM + i * 10_000 + j })))
  const rows = await ledger.usage({ by: ['key', 'model'], timezone: 'UTC', calendar: 'gregorian' })
  t.strictSame(
    rows.map(({ group, requests }) => [group.key, group.model, requests]),
    [
      ['a', 'x/3', 1001],
      ['b', 'x/1', 1001],
      ['b', 'x/2', 1001],
      ['c', 'x/1', 1001],
    ],
  )
  const pages = []
  for await (const page of ledger.pages({ key: 'c' })) pages.push(page.length)
  t.equal(
    pages.reduce((sum, length) => sum + length, 0),
    1001,
  )
  t.notOk(pages.includes(0), 'no page is empty')
})

t.test('months of the persian calendar go by their own names', async t => {
  const ledger = await openLedger({ path: ':memory:', durability: 'process', create: true })
  t.teardown(() => ledger.close())
  for (const at of ['2026-03-20T12:00:00Z', '2026-03-21T12:00:00Z', '2026-07-28T12:00:00Z']) await request(ledger, { at: Date.parse(at) })
  const months = async (calendar: 'gregorian' | 'persian') =>
    (await ledger.usage({ by: ['month'], timezone: 'Asia/Tehran', calendar })).map(({ group }) => group.month)
  t.strictSame(await months('persian'), ['1404-12', '1405-01', '1405-05'])
  t.strictSame(await months('gregorian'), ['2026-03', '2026-07'])
})

t.test('a zone that does not exist', async t => {
  const ledger = await openLedger({ path: ':memory:', durability: 'process', create: true })
  t.teardown(() => ledger.close())
  await t.rejects(ledger.usage({ by: ['day'], timezone: 'Mars', calendar: 'gregorian' }), {
    message: /"Mars" is not in the time zone database/,
  })
})
