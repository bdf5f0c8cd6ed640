import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { accountRial, keyRial } from '../../src/ledger/counters.js'
import { type Prunable, type Pruning, Retention } from '../../src/ledger/retention.js'
import { openLedger, type SqliteLedger } from '../../src/ledger/sqlite.js'
import type { Dimension, UsageQuery } from '../../src/ledger/usage.js'
import { windows } from '../../src/ledger/windows.js'
import { type Request, request } from '../support/command.js'
import { fakeTimers } from '../support/timers.js'

const DAY = 86_400_000
const FROM = Date.parse('2026-06-25T00:00:00+03:30')
const find = windows('Asia/Tehran', 'gregorian')
const dayOf = (at: number) => find('day', at)

async function pruneAll(ledger: SqliteLedger, before: number): Promise<number> {
  let sum = 0
  for (let from: string | null = ''; from !== null; ) {
    const { records, next }: { records: number; next: string | null } = await ledger.prune({ before, dayOf, from })
    if (records > 100) throw new Error(`a step took ${records} records`)
    sum += records
    from = next
  }
  return sum
}

const requests: fc.Arbitrary<Request> = fc.record({
  at: fc.integer({ min: FROM, max: FROM + 10 * DAY }),
  key: fc.constantFrom('a', 'b'),
  account: fc.constantFrom('acme', 'beta'),
  model: fc.constantFrom('x/1', 'x/2'),
  rial: fc.bigInt(0n, 1000n),
  input: fc.nat(1000),
  state: fc.constantFrom('settled', 'partial', 'voided', 'held'),
})

t.test('what is pruned is in the sums: reports of whole days, counters, wallets and the proof of them stay as they were', async t => {
  const groups = fc.subarray(['key', 'account', 'plan', 'model', 'provider', 'surface', 'day', 'month'] satisfies Dimension[])
  const filter = fc.record(
    {
      key: fc.constantFrom('a', 'c'),
      model: fc.constant('x/1'),
      since: fc.nat(9).map(day => FROM + day * DAY),
      until: fc.nat(9).map(day => FROM + day * DAY),
    },
    { requiredKeys: [] },
  )
  const turns = fc.array(fc.tuple(fc.array(requests, { maxLength: 30 }), fc.nat(11)), { maxLength: 4 })
  await fc.assert(
    fc.asyncProperty(turns, groups, filter, async (turns, by, filter) => {
      const whole = await openLedger({ path: ':memory:', durability: 'process', create: true })
      const pruned = await openLedger({ path: ':memory:', durability: 'process', create: true })
      let left: number[] = []
      for (const [made, days] of turns) {
        for (const one of made) {
          await request(whole, one)
          await request(pruned, one)
          if (one.state !== 'held') left.push(one.at)
        }
        const until = FROM + days * DAY
        await pruneAll(pruned, until)
        left = left.filter(at => at >= until)
        const there = (await pruned.records({})).filter(({ state }) => state !== 'held').map(({ at }) => at)
        t.strictSame(there.sort(), [...left].sort())
        const query: UsageQuery = { ...filter, by, timezone: 'Asia/Tehran', calendar: 'gregorian' }
        t.strictSame(await pruned.usage(query), await whole.usage(query))
        t.strictSame(await pruned.verify(), [])
        const counters = [
          ...['acme', 'beta'].map(accountRial),
          ...['a', 'b'].flatMap(key => Array.from({ length: 10 }, (_, day) => keyRial(key, find('day', FROM + day * DAY)))),
        ]
        t.strictSame(await pruned.read(counters), await whole.read(counters))
        t.strictSame(await pruned.wallet('acme'), await whole.wallet('acme'))
      }
      const gone = (await whole.records({})).length - (await pruned.records({})).length
      t.equal((await pruned.summedBefore()) !== null, gone > 0)
      await whole.close()
      await pruned.close()
    }),
    { numRuns: 30 },
  )
})

t.test('after a restart, and from another zone, the sums are there; a day counts where its noon is', async t => {
  const path = join(t.testdir(), 'ledger.db')
  let ledger = await openLedger({ path, durability: 'process', create: true })
  t.equal(await ledger.summedBefore(), null)
  await request(ledger, { at: FROM + 1, rial: 5n })
  await request(ledger, { at: FROM + DAY - 1, rial: 7n })
  await request(ledger, { at: FROM + DAY, rial: 11n })
  t.strictSame(await ledger.prune({ before: FROM + DAY, dayOf }), { records: 2, next: null })
  t.strictSame(await ledger.prune({ before: FROM + DAY, dayOf }), { records: 0, next: null })
  await ledger.close()
  ledger = await openLedger({ path, durability: 'process', create: false })
  t.teardown(() => ledger.close())
  t.equal(await ledger.summedBefore(), FROM + DAY)
  t.strictSame(await ledger.verify(), [])
  const costs = async (query: Partial<UsageQuery>) => {
    const rows = await ledger.usage({ by: ['day'], timezone: 'UTC', calendar: 'gregorian', ...query })
    return rows.map(({ group, cost_rial }) => `${group.day ?? 'all'} ${cost_rial}`)
  }
  t.strictSame(await costs({}), ['2026-06-25 23'], 'the last one was before midnight in London')
  t.strictSame(await costs({ timezone: 'Asia/Tehran' }), ['2026-06-25 12', '2026-06-26 11'])
  t.strictSame(await costs({ by: [], since: FROM + DAY / 2 }), ['all 23'])
  t.strictSame(await costs({ by: [], since: FROM + DAY / 2 + 1 }), ['all 11'])
  t.strictSame(await costs({ by: [], until: FROM + DAY / 2 }), [])
})

t.test('while a report or a check is under way, the records stay', async t => {
  const ledger = await openLedger({ path: ':memory:', durability: 'process', create: true })
  t.teardown(() => ledger.close())
  await Promise.all(Array.from({ length: 3000 }, (_, i) => request(ledger, { at: FROM + i, rial: 2n })))
  const step = { before: FROM + DAY, dayOf, from: 'req_' }
  const query = { by: [], timezone: 'UTC', calendar: 'gregorian' } as const
  for (const [name, task] of [
    ['a report', () => ledger.usage(query)],
    ['a check', () => ledger.verify()],
  ] as const) {
    let over = false
    const working = task().then(result => {
      over = true
      return result
    })
    await ledger.stats()
    const pruned = await ledger.prune(step)
    t.equal(over, false)
    t.strictSame(pruned, { records: 0, next: 'req_' }, name)
    await working
  }
  t.equal(await pruneAll(ledger, step.before), 3000)
  t.match(await ledger.usage(query), [{ requests: 3000, cost_rial: 6000n }])
  t.strictSame(await ledger.verify(), [])
})

t.test('a sum that can not be written leaves the records as they are', async t => {
  const ledger = await openLedger({ path: ':memory:', durability: 'process', create: true })
  t.teardown(() => ledger.close())
  await request(ledger, { at: FROM, rial: 5n })
  await t.rejects(
    ledger.prune({ before: FROM + DAY, dayOf: () => ({ kind: 'day', start: FROM + 5, end: FROM + 1 }) }),
    /there is no day from/,
  )
  t.equal(ledger.failure, null)
  t.equal((await ledger.records({})).length, 1)
  t.equal(await ledger.summedBefore(), null)
  t.strictSame(await ledger.verify(), [])
})

/** Remembers its steps, of which it gives so many before there are no more. */
function prunable(steps: number): Prunable & { readonly asked: Pruning[] } {
  const asked: Pruning[] = []
  return {
    asked,
    prune: async step => {
      asked.push(step)
      return { records: 10, next: asked.length % steps === 0 ? null : `after ${asked.length}` }
    },
  }
}

const turn = () => new Promise<void>(resolve => setImmediate(resolve))

t.test('looks each hour, goes on from step to step, and the slower the more is under way', async t => {
  const timers = fakeTimers(t)
  const ledger = prunable(3)
  const told: unknown[] = []
  let now = FROM + 10 * DAY + 5
  let busy = 0
  const retention = new Retention({
    ledger,
    retention: 4 * DAY,
    dayOf,
    now: () => now,
    busy: () => busy,
    pruned: (records, before) => told.push([records, before]),
    failed: error => told.push(error),
  })
  const after = async (ms: number) => {
    timers.advance(ms)
    await turn()
    return ledger.asked.length
  }
  t.equal(await after(999), 0, 'a start has other things to do')
  t.equal(await after(1), 1)
  t.match(ledger.asked, [{ before: FROM + 6 * DAY, from: '' }])
  busy = 8
  t.equal(await after(20), 2)
  t.equal(await after(199), 2, 'the busiest moment so far')
  busy = 2
  t.equal(await after(1), 3)
  t.match(ledger.asked[2], { before: FROM + 6 * DAY, from: 'after 2' })
  t.strictSame(told, [[30, FROM + 6 * DAY]])
  now += DAY
  t.equal(await after(3_599_999), 3)
  t.equal(await after(1), 4)
  t.match(ledger.asked[3], { before: FROM + 7 * DAY, from: '' })
  t.equal(await after(59), 4)
  t.equal(await after(1), 5, 'some are under way')
  await retention.close()
  t.equal(await after(10_000_000), 5)
  t.equal(timers.set, 0)
})

t.test('a ledger that fails is told once, and left alone', async t => {
  const timers = fakeTimers(t)
  const told: unknown[] = []
  const retention = new Retention({
    ledger: { prune: () => Promise.reject(new Error('the disk is gone')) },
    retention: DAY,
    dayOf,
    now: () => FROM,
    busy: () => 0,
    pruned: () => t.fail(),
    failed: error => told.push((error as Error).message),
  })
  timers.advance(1000)
  await turn()
  t.strictSame(told, ['the disk is gone'])
  t.equal(timers.set, 0)
  await retention.close()
})
