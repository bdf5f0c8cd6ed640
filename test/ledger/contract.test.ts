import t from 'tap'
import { openLedger } from '../../src/ledger/sqlite.js'
import { contract } from './contract.js'

t.test('the contract, in memory', async t =>
  contract(t, async t => {
    const ledger = await openLedger({ path: ':memory:', durability: 'process', create: true })
    t.teardown(() => ledger.close())
    return ledger
  }),
)
