import Database from 'better-sqlite3'
import t, { type Test } from 'tap'
import { AMOUNT_MAX } from '../../src/ledger/cells.js'
import { SCHEMA } from '../../src/ledger/sqlite.sql.js'
import { Wallets } from '../../src/ledger/wallets.js'

function wallets(t: Test) {
  const db = new Database(':memory:')
  t.teardown(() => db.close())
  db.exec(SCHEMA)
  return { db, wallets: new Wallets(db) }
}

const credit = (id: string, amount: bigint) => ({ id, account: 'acme', amount, note: '', at: 1 })

t.test('what was credited is summed up once, and kept only where there is anything', async t => {
  const { db, wallets: found } = wallets(t)
  t.equal(found.credited('nobody'), 0n)
  t.strictSame([...found.all()], [])
  t.equal(found.credit(credit('c1', 5n)), true)
  t.equal(found.credit(credit('c1', 7n)), false)
  t.strictSame([...found.all()], [['acme', 5n]])
  db.exec('DELETE FROM credits')
  t.equal(found.credited('acme'), 5n, 'known')
  t.equal(new Wallets(db).credited('acme'), 0n, 'and summed up anew by another')
})

t.test('what is in the file is kept from the first time that it is asked for', async t => {
  const { db, wallets: first } = wallets(t)
  first.credit(credit('c1', 5n))
  first.credit(credit('c2', -2n))
  const again = new Wallets(db)
  t.strictSame([...again.all()], [])
  t.equal(again.credited('acme'), 3n)
  t.strictSame([...again.all()], [['acme', 3n]])
})

t.test('neither a credit nor the sum of all may pass what can be kept, in either direction', async t => {
  const { wallets: found } = wallets(t)
  const beyond = { name: 'RangeError', message: /beyond 9007199254740991$/ }
  t.throws(() => found.credit(credit('c0', AMOUNT_MAX + 1n)), beyond)
  t.throws(() => found.credit(credit('c0', -AMOUNT_MAX - 1n)), beyond)
  t.equal(found.credit(credit('c1', AMOUNT_MAX)), true)
  t.throws(() => found.credit(credit('c2', 1n)), beyond)
  t.throws(() => found.credit(credit('c3', -AMOUNT_MAX - 1n)), beyond, 'also where the sum could be kept')
  t.equal(found.credit(credit('c4', -AMOUNT_MAX)), true)
  t.equal(found.credit(credit('c5', -AMOUNT_MAX)), true)
  t.throws(() => found.credit(credit('c6', -1n)), beyond)
  t.equal(found.credited('acme'), -AMOUNT_MAX)
})
