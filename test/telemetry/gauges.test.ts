import t, { type Test } from 'tap'
import type { Store } from '../../src/ledger/batch.js'
import { accountRial, keyRial } from '../../src/ledger/counters.js'
import { openLedger } from '../../src/ledger/sqlite.js'
import type { Runtime } from '../../src/runtime.js'
import { collect } from '../../src/telemetry/gauges.js'
import { admissionRecord, endingRecord } from '../ledger/figures.js'
import { AT, keyOf, tehran } from '../support/exchanges.js'

const CALIBRATIONS = { of: () => ({ upper: 1 }) } as unknown as Parameters<typeof collect>[2]

/** A ledger in memory, and how often it has made something durable. */
async function counted(t: Test) {
  const syncs = { count: 0 }
  const disk = (store: Store): Store => ({
    commit: () => store.commit(),
    rollback: () => store.rollback(),
    sync: async () => {
      syncs.count++
      await store.sync()
    },
    tidy: () => store.tidy(),
    isBroken: error => store.isBroken(error),
  })
  const ledger = await openLedger({ path: ':memory:', durability: 'process', create: true, disk })
  t.teardown(() => ledger.close())
  return { ledger, syncs }
}

function runtime(keys: number, accounts: number): Runtime {
  const budget = { daily_tokens: 10n, daily_rial: 10n, monthly_rial: 0n }
  return {
    windows: tehran,
    config: {
      keys: new Map(Array.from({ length: keys }, (_, i) => [`k${i}`, keyOf({ name: `k${i}`, budget })])),
      accounts: new Map(Array.from({ length: accounts }, (_, i) => [`a${i}`, {}])),
      models: new Map([['m', { id: 'm' }]]),
    },
  } as unknown as Runtime
}

t.test('what is left in wallets, and the used part of each budget', async t => {
  const { ledger } = await counted(t)
  await ledger.credit({ id: 'c', account: 'a1', amount: 100n, note: '', at: AT })
  const claims = [
    { counter: keyRial('k1', tehran('day', AT)), amount: 4n, ceiling: null, code: '' },
    { counter: accountRial('a1'), amount: 4n, ceiling: 'credits' as const, code: '' },
  ]
  await ledger.hold({ id: 'r1', at: AT, claims, record: admissionRecord() })
  await ledger.settle('r1', { state: 'settled', actual: { rial: 5n }, record: endingRecord() })
  await ledger.hold({ id: 'r2', at: AT, claims, record: admissionRecord({ held_rial: 4n }) })
  const { wallets, keyBudgets, corrections, ...rest } = await collect(runtime(2, 2), ledger, CALIBRATIONS, AT + 2000)
  t.match(rest, { holdsOpen: 1, heldRial: 4n, oldestAgeSeconds: 2 })
  t.strictSame(
    [...wallets],
    [
      ['a0', 0n],
      ['a1', 95n],
    ],
  )
  t.strictSame(
    [...keyBudgets],
    [
      ['k0', 'day', 0],
      ['k0', 'day', 0],
      ['k0', 'month', 1],
      ['k1', 'day', 0],
      ['k1', 'day', 0.5],
      ['k1', 'month', 1],
    ],
  )
  t.strictSame([...corrections], [['m', 1]])
})

t.test('very many wallets and budgets are read while writes go on, and wait for few of them', async t => {
  const { ledger, syncs } = await counted(t)
  let over = false
  const writes = (async () => {
    for (let i = 0; !over; i++) await ledger.credit({ id: `c${i}`, account: 'other', amount: 1n, note: '', at: AT })
  })()
  const before = syncs.count
  const found = await collect(runtime(1000, 1000), ledger, CALIBRATIONS, AT)
  const waited = syncs.count - before
  over = true
  await writes
  t.equal([...found.wallets].length, 1000)
  t.equal([...found.keyBudgets].length, 3000)
  t.ok(waited >= 5, `so that no write waits for all of it: ${waited} writes came between`)
  t.ok(waited < 30, `${waited} writes were waited for`)
})
