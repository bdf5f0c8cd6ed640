import t, { type Test } from 'tap'
import { AMOUNT_MAX } from '../../src/ledger/cells.js'
import { openDatabase } from '../../src/ledger/database.js'
import { DamagedFile } from '../../src/ledger/file-errors.js'
import { SCHEMA } from '../../src/ledger/sqlite.sql.js'
import { sumUpCredits, Wallets } from '../../src/ledger/wallets.js'

function wallets(t: Test) {
  const db = openDatabase(':memory:')
  t.teardown(() => db.close())
  db.exec(SCHEMA)
  return { db, wallets: new Wallets(db) }
}

const credit = (id: string, amount: bigint, account = 'acme') => ({ id, account, amount, note: '', at: 1 })

t.test('a credit counts once, for its account alone; nothing is kept of an account that has none', async t => {
  const { wallets: found } = wallets(t)
  t.equal(found.credited('nobody'), 0n)
  t.equal(found.credit(credit('c1', 5n)), true)
  t.equal(found.credit(credit('c1', 7n)), false)
  t.equal(found.credit(credit('c1', 7n, 'beta')), false)
  t.equal(found.credit(credit('c2', -2n)), true)
  t.equal(found.credit(credit('c3', 9n, 'beta')), true)
  t.strictSame(
    [...found.all()].map(([account, { credited, credits }]) => [account, credited, credits]),
    [
      ['acme', 3n, 2n],
      ['beta', 9n, 1n],
    ],
  )
  t.equal(found.credited('acme'), 3n)
})

t.test('what was credited is there again at the next start, and so it is where it is summed up anew', async t => {
  const { db, wallets: first } = wallets(t)
  for (const one of [credit('c1', 5n), credit('c2', -2n), credit('c3', 9n, 'beta'), credit('c4', 0n, '\ufffd')]) first.credit(one)
  t.strictSame(new Map([...new Wallets(db).all()].sort()), new Map([...first.all()].sort()))
  const rows = () => [db.prepare('SELECT * FROM wallets').all(), db.prepare('SELECT * FROM wallets_digest').safeIntegers().all()]
  const written = rows()
  db.exec('DELETE FROM wallets; UPDATE wallets_digest SET digest = 7')
  sumUpCredits(db)
  t.strictSame(rows(), written)
})

t.test('a wallet that is not as it was written, or is missing, or one that nobody wrote: refused', async t => {
  for (const change of [
    'UPDATE wallets SET credited = credited + 1',
    "UPDATE wallets SET credits = credits + 1 WHERE account = 'beta'",
    "UPDATE wallets SET digest = digest + 1 WHERE account = 'beta'",
    "UPDATE wallets SET account = 'bet' WHERE account = 'beta'",
    "UPDATE wallets SET account = '' WHERE account = 'beta'; UPDATE wallets SET account = 'beta' WHERE account = 'acme'; UPDATE wallets SET account = 'acme' WHERE account = ''",
    "DELETE FROM wallets WHERE account = 'beta'",
    'DELETE FROM wallets',
    "INSERT INTO wallets VALUES ('gamma', 0, 1, 0)",
    'UPDATE wallets_digest SET digest = digest + 1',
    'DELETE FROM wallets_digest',
  ]) {
    const { db, wallets: first } = wallets(t)
    for (const one of [credit('c1', 5n), credit('c2', 9n, 'beta')]) first.credit(one)
    t.ok(new Wallets(db))
    db.exec(change)
    t.throws(() => new Wallets(db), new DamagedFile('what was credited to its accounts is not as it was written'), change)
  }
})

t.test('a wallet that is gone from the file when it is credited again is a fault of the file', async t => {
  const { db, wallets: found } = wallets(t)
  found.credit(credit('c1', 5n))
  db.exec('DELETE FROM wallets')
  t.throws(() => found.credit(credit('c2', 1n)), new DamagedFile('it has lost the wallet of acme'))
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

t.test('a credit that is there already is none, however much it was and whatever else was credited', async t => {
  const { wallets: found } = wallets(t)
  t.equal(found.credit(credit('opening', AMOUNT_MAX)), true)
  t.equal(found.credit(credit('opening', AMOUNT_MAX)), false)
  t.equal(found.credit(credit('opening', AMOUNT_MAX + 1n)), false)
  t.equal(found.credited('acme'), AMOUNT_MAX)
})

t.test('without an id, or with a text that the file could not hold as it is: refused, and nothing is changed', async t => {
  const { db, wallets: found } = wallets(t)
  for (const wrong of [credit('', 1n), credit('c\udc00', 1n), credit('c1', 1n, 'a\ud800'), { ...credit('c1', 1n), note: '\ud800' }])
    t.throws(() => found.credit(wrong), { name: 'RangeError', message: /: it needs an id, and texts that can be written$/ })
  t.equal(db.prepare('SELECT count(*) FROM credits').pluck().get(), 0)
  t.ok(new Wallets(db))
})
