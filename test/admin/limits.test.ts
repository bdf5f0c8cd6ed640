import t from 'tap'
import { limits } from '../../src/admin/limits.js'
import type { Counter, Ledger, Reading } from '../../src/ledger/ledger.js'
import type { Runtime } from '../../src/runtime.js'
import { AT, keyOf, tehran } from '../support/exchanges.js'

/** A ledger whose counters read what `found` says, and what it was asked. */
function ledgerOf(found: (counter: Counter) => readonly [bigint, bigint], holds = 0) {
  const reads: number[] = []
  const ledger = {
    read: async (counters: readonly Counter[]): Promise<Reading[]> => {
      reads.push(counters.length)
      return counters.map(counter => {
        const [posted, pending] = found(counter)
        return { counter, ceiling: null, posted, pending }
      })
    },
    wallet: async (account: string) => ({ account, credited: 1000n, posted: BigInt(account.slice(1)), pending: 1n }),
    open: async () =>
      Array.from({ length: holds }, (_, i) => ({
        id: `req_${i}`,
        at: AT - i,
        record: { key: 'k1', model: 'up/m', held_rial: 5n, held_tokens: 7 },
      })),
  }
  return { ledger: ledger as unknown as Ledger, reads }
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
  const { ledger } = ledgerOf(({ meter, subject, window }) =>
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
  const { ledger } = ledgerOf(() => [0n, 0n])
  const found = await limits(runtime(2), ledger, 'k1', AT)
  t.same(
    found.keys.map(({ key }) => key),
    ['k1'],
  )
  t.equal(found.key_count, 1)
})

t.test('of very many keys, wallets and holds a bounded number is read and shown, some keys a turn', async t => {
  const { ledger, reads } = ledgerOf(() => [0n, 0n], 80)
  const found = await limits(runtime(2000, 700), ledger, '', AT)
  t.same([found.keys.length, found.key_count], [60, 2000])
  t.same([found.wallets.length, found.wallet_count], [60, 700])
  t.same([found.holds.length, found.hold_count], [50, 80])
  t.equal(reads.length, 10)
  t.ok(reads.every(counters => counters === 350))
  t.match(found.wallets[0], { account: 'a499', credited: 1000n, posted: 499n, held: 1n }, 'the least that is left first')
})
