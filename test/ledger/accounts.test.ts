import t from 'tap'
import { Accounts, available, sameCredit } from '../../src/ledger/accounts.js'
import { accountRial } from '../../src/ledger/counters.js'
import { openDatabase } from '../../src/ledger/database.js'
import { openLedger } from '../../src/ledger/sqlite.js'
import { SCHEMA } from '../../src/ledger/sqlite.sql.js'
import { Wallets } from '../../src/ledger/wallets.js'
import { admissionRecord, endingRecord } from './figures.js'
import { AT } from './script.js'

const credit = (id: string, amount: bigint, account = 'acme') => ({ id, account, amount, note: 'by hand', at: AT })

t.test('what is available is what was credited, less what is spent and held', async t => {
  t.equal(available({ credited: 100n, posted: 30n, pending: 20n }), 50n)
  t.equal(available({ credited: 10n, posted: 30n, pending: 20n }), -40n)
})

t.test('a credit is the same when its account and its amount are', async t => {
  const one = credit('c', 5n)
  t.equal(sameCredit(one, { ...one, note: 'sent again', at: 0 }), true)
  t.equal(sameCredit(one, { ...one, amount: 6n }), false)
  t.equal(sameCredit(one, { ...one, account: 'other' }), false)
})

t.test('accounts are those that were credited or charged; their latest credits come first', async t => {
  const db = openDatabase(':memory:')
  t.teardown(() => db.close())
  db.exec(SCHEMA)
  const wallets = new Wallets(db)
  for (const [id, at] of [
    ['c1', 1],
    ['c3', 2],
    ['c2', 2],
  ] as const)
    wallets.credit({ id, account: 'beta', amount: 5n, note: '', at })
  const counter = db.prepare("INSERT INTO counters (id, meter, subject, kind, start, until, posted) VALUES (?, ?, ?, 'all', 0, NULL, 1)")
  for (const [i, [meter, subject]] of [
    ['rial', 'account:alpha'],
    ['rial', 'account:beta'],
    ['rial', 'key:a'],
    ['tokens', 'account:gamma'],
  ].entries())
    counter.run(i + 1, meter, subject)
  const accounts = new Accounts(db)
  t.strictSame(accounts.names(), ['alpha', 'beta'])
  t.strictSame(
    [accounts.names('', 1), accounts.names('alpha', 1), accounts.names('alph', 5), accounts.names('beta', 5)],
    [['alpha'], ['beta'], ['alpha', 'beta'], []],
  )
  t.strictSame(
    accounts.credits('beta', 2).map(({ id }) => id),
    ['c3', 'c2'],
  )
  t.strictSame(accounts.credit('c1'), { id: 'c1', account: 'beta', amount: 5n, note: '', at: 1 })
  t.equal(accounts.credit('c9'), undefined)
})

t.test('a booking takes out what is available and no more, unless it may; its id counts once', async t => {
  const ledger = await openLedger({ path: ':memory:', durability: 'process', create: true })
  t.teardown(() => ledger.close())
  const booked = async (id: string, amount: bigint, overdraw = false) => {
    const { outcome, wallet } = await ledger.book(credit(id, amount), overdraw)
    return [outcome, wallet.credited]
  }
  t.strictSame(await booked('c1', 100n), ['credited', 100n])
  const wallet = { counter: accountRial('acme'), amount: 30n, ceiling: 'credits', code: 'insufficient_balance' } as const
  await ledger.hold({ id: 'r1', at: AT, claims: [wallet], record: admissionRecord() })
  t.strictSame(await booked('c2', -71n), ['short', 100n])
  t.strictSame(await booked('c2', -70n), ['credited', 30n], 'to the last of it')
  t.strictSame(await booked('c2', -70n), ['already_credited', 30n])
  t.strictSame(await booked('c2', -7n), ['conflict', 30n])
  t.strictSame(await booked('c3', -1n, true), ['credited', 29n])
  t.strictSame(await booked('c4', 0n), ['credited', 29n], 'nothing is taken out of a wallet that is overdrawn')
  t.strictSame(await booked('c5', 1n), ['credited', 30n])
  await ledger.settle('r1', { state: 'settled', actual: {}, record: endingRecord() })
  t.strictSame(await ledger.wallet('acme'), { account: 'acme', credited: 30n, posted: 30n, pending: 0n })
})
