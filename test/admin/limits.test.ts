import t from 'tap'
import { limits } from '../../src/admin/limits.js'
import type { Counter } from '../../src/ledger/ledger.js'
import type { Look } from '../../src/ledger/reports.js'
import type { SqliteLedger } from '../../src/ledger/sqlite.js'
import type { Runtime } from '../../src/runtime.js'
import { admissionRecord } from '../ledger/figures.js'
import { AT, keyOf, tehran } from '../support/exchanges.js'

/** A ledger whose counters read what `found` says, and whose wallets have spent the number in their name. */
function ledgerOf(found: (counter: Counter) => readonly [bigint, bigint], holds = 0): Pick<SqliteLedger, 'survey' | 'open'> {
  const look: Look = {
    reading: counter => {
      const [posted, pending] = found(counter)
      return { counter, ceiling: null, posted, pending }
    },
    wallet: account => ({ account, credited: 1000n, posted: BigInt(account.slice(1)), pending: 1n }),
  }
  return {
    survey: async (items, find) => [...items].map(item => find(item, look)),
    open: async () =>
      Array.from({ length: holds }, (_, i) => ({
        id: `req_${i}`,
        at: AT - i,
        record: admissionRecord({ key: 'k1', model: 'up/m', held_rial: 5n, held_tokens: 7 }),
      })),
  }
}

function runtime(keys: number, accounts = 0): Runtime {
  const named = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}${i}`)
  return {
    windows: tehran,
    config: {
      keys: new Map(named('k', keys).map(name => [name, keyOf({ name, plan: { requests_per_minute: 100n }, budget: { daily_rial: 0n } })])),
      accounts: new Map(named('a', accounts).map(name => [name, {}])),
    },
  } as unknown as Runtime
}

t.test('the fullest keys come first, held amounts included; what has no ceiling fills nothing', async t => {
  const used: Record<string, readonly [bigint, bigint]> = { 'key:k0': [10n, 0n], 'key:k1': [40n, 30n], 'key:k2': [50n, 0n] }
  const ledger = ledgerOf(({ meter, subject, window }) =>
    meter === 'requests' && window.kind === 'minute' ? (used[subject] ?? [0n, 0n]) : meter === 'rial' ? [0n, 0n] : [999_999n, 0n],
  )
  const two = runtime(3)
  for (const key of two.config.keys.values()) Object.assign(key.budget, { daily_rial: null })
  const found = await limits(two, ledger, '', AT)
  t.same(
    found.keys.map(({ key }) => key),
    ['k1', 'k2', 'k0'],
  )
  t.match(found.keys[0]?.gauges[0], {
    name: 'requests_per_minute',
    meter: 'requests',
    window: 'minute',
    posted: 40n,
    held: 30n,
    ceiling: 100n,
  })
  t.equal(found.keys[0]?.gauges[1]?.ceiling, null)
  t.equal(found.keys[0]?.gauges.length, 7)
})

t.test('a ceiling of zero is full', async t => {
  const ledger = ledgerOf(() => [0n, 0n])
  const found = await limits(runtime(2), ledger, 'k1', AT)
  t.same(
    found.keys.map(({ key }) => key),
    ['k1'],
  )
  t.equal(found.key_count, 1)
})

t.test('of very many keys, wallets and holds a bounded number is shown: of all that there are the fullest', async t => {
  const ledger = ledgerOf(({ subject, window }) => [subject === 'key:k1999' && window.kind === 'minute' ? 99n : 0n, 0n], 80)
  const many = runtime(2000, 700)
  for (const key of many.config.keys.values()) Object.assign(key.budget, { daily_rial: null })
  const found = await limits(many, ledger, '', AT)
  t.same([found.keys.length, found.key_count], [60, 2000])
  t.same([found.wallets.length, found.wallet_count], [60, 700])
  t.same([found.holds.length, found.hold_count], [50, 80])
  t.same(
    found.keys.slice(0, 2).map(({ key }) => key),
    ['k1999', 'k0'],
  )
  t.match(found.wallets[0], { account: 'a699', credited: 1000n, posted: 699n, held: 1n }, 'the least that is left first')
})
