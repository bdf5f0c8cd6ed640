import t, { type Test } from 'tap'
import { CreditCheck } from '../../src/ledger/credit-check.js'
import { openDatabase } from '../../src/ledger/database.js'
import { SCHEMA } from '../../src/ledger/sqlite.sql.js'
import { Wallets } from '../../src/ledger/wallets.js'

const credit = (id: string, amount: bigint, account = 'acme') => ({ id, account, amount, note: 'paid', at: 1 })

function books(t: Test, credits: readonly ReturnType<typeof credit>[]) {
  const db = openDatabase(':memory:')
  t.teardown(() => db.close())
  db.exec(SCHEMA)
  const wallets = new Wallets(db)
  for (const one of credits) wallets.credit(one)
  return { db, wallets, check: () => new CreditCheck(db, wallets) }
}

const no = async () => {}

t.test('whatever is changed of a credit, or of a wallet, is told', async t => {
  const credits = [credit('c1', 5n), credit('c2', 7n), credit('c3', 9n, 'beta')]
  const acme = 'wallet of acme: by its credits'
  for (const [change, ...found] of [
    ["UPDATE credits SET amount = 6 WHERE id = 'c1'", [acme, '13 in 2', '12 in 2']],
    ["UPDATE credits SET note = 'pait' WHERE id = 'c1'", [acme, '12 in 2', '12 in 2']],
    ["UPDATE credits SET at = 2 WHERE id = 'c1'", [acme, '12 in 2', '12 in 2']],
    ["UPDATE credits SET id = 'c0' WHERE id = 'c1'", [acme, '12 in 2', '12 in 2']],
    ["UPDATE credits SET amount = 12 - amount WHERE account = 'acme'", [acme, '12 in 2', '12 in 2']],
    ["DELETE FROM credits WHERE id = 'c1'", [acme, '7 in 1', '12 in 2']],
    ["DELETE FROM credits WHERE account = 'acme'", [acme, '0 in 0', '12 in 2']],
    ["INSERT INTO credits VALUES ('c4', 'acme', 0, '', 1)", [acme, '12 in 3', '12 in 2']],
    ["INSERT INTO credits VALUES ('c4', 'gamma', 1, '', 1)", ['wallet of gamma', '1 in 1', 'no such wallet']],
    ["UPDATE credits SET account = 'bcme' WHERE id = 'c1'", [acme, '7 in 1', '12 in 2'], ['wallet of bcme', '5 in 1', 'no such wallet']],
    ["UPDATE wallets SET credited = 11 WHERE account = 'acme'", ['wallet of acme: in memory', '11 in 2', '12 in 2']],
    ["UPDATE wallets SET digest = 11 WHERE account = 'acme'", ['wallet of acme: in memory', '12 in 2', '12 in 2']],
    ["DELETE FROM wallets WHERE account = 'acme'", ['wallet of acme: in memory', '0 in 0', '12 in 2']],
  ] as const) {
    const { db, check } = books(t, credits)
    t.strictSame(await check().run(no), [])
    db.exec(change)
    const differences = await check().run(no)
    t.strictSame(
      differences.map(({ what, expected, found }) => [what, sums(expected), sums(found)]),
      found,
      change,
    )
    for (const { expected, found } of differences) t.not(expected, found)
  }
})

/** What was credited, without the digest. */
const sums = (words: string) => words.replace(/ credits \(digest -?\d+\)$/, '')

t.test('a credit that an account’s list would not show is told', async t => {
  const { db, check } = books(t, [credit('c1', 5n), credit('c2', 7n)])
  // The index goes on in another table, which has not heard of the second.
  db.unsafeMode(true)
  db.exec(`CREATE TABLE other (id TEXT NOT NULL PRIMARY KEY, account TEXT NOT NULL) WITHOUT ROWID;
    CREATE INDEX others ON other (account);
    INSERT INTO other VALUES ('c1', 'acme');
    PRAGMA writable_schema = ON;
    UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'others') WHERE name = 'credits_of_account';
    PRAGMA writable_schema = RESET`)
  t.strictSame(await check().run(no), [{ what: 'credit c2: in the list of acme', expected: 'there', found: 'missing' }])
})

t.test('a credit whose figures are no whole numbers any more is told', async t => {
  for (const [column, value, found] of [
    ['amount', '1.5', '1.5 at 1'],
    ['at', "'x'", '5 at x'],
  ]) {
    const { db, check } = books(t, [credit('c1', 5n)])
    // As in a damaged file: else the table would not take it.
    db.exec(`ALTER TABLE credits RENAME TO strict; DROP INDEX credits_of_account;
      CREATE TABLE credits (id TEXT NOT NULL PRIMARY KEY, account, amount, note, at) WITHOUT ROWID;
      CREATE INDEX credits_of_account ON credits (account);
      INSERT INTO credits SELECT id, account, amount, note, at FROM strict;
      UPDATE credits SET ${column} = ${value}`)
    const [first, second] = await check().run(no)
    t.strictSame(first, { what: 'credit c1', expected: 'whole numbers', found })
    t.match(second, { what: 'wallet of acme: by its credits', expected: /^0 in 0/, found: /^5 in 1/ })
  }
})

/** As many as are read at a time, and half of that: `c1000` to `c2499`. */
const many = Array.from({ length: 1500 }, (_, i) => credit(`c${1000 + i}`, BigInt(i)))

t.test('what is credited while it sums up is counted once, whether its place was passed or is still to come', async t => {
  const { wallets, check } = books(t, many)
  const one = check()
  const meanwhile = ['a', 'c1000.5', 'c1998.5', 'c1999', 'c1999.5', 'd', '\ufffd', '😀']
  let turns = 0
  const turn = async () => {
    turns++
    for (const id of meanwhile.splice(0)) {
      for (const account of ['acme', `of ${id}`]) {
        const booked = credit(`${id} ${account}`, 1n, account)
        t.equal(wallets.credit(booked), true)
        one.credited(booked)
      }
    }
  }
  t.strictSame(await one.run(turn), [])
  t.equal(meanwhile.length, 0)
  t.equal(turns, 1)
  t.equal(wallets.all().size, 9)
})

t.test('the order of ids is that of the file: by their bytes, not by their UTF-16', async t => {
  const { wallets, check } = books(t, [...many.slice(0, 999), credit('\uffff', 1n)])
  const one = check()
  let turns = 0
  const turn = async () => {
    if (turns++ > 0) return
    // In UTF-16 it would come before the last that was read.
    const booked = credit('😀', 1n)
    wallets.credit(booked)
    one.credited(booked)
  }
  t.strictSame(await one.run(turn), [])
})

t.test('many wallets are compared in turns; what is credited in between is in the sums and in the wallets', async t => {
  const { wallets, check } = books(
    t,
    Array.from({ length: 2000 }, (_, i) => credit(`c${i}`, 1n, `account ${i}`)),
  )
  const one = check()
  let turns = 0
  const turn = async () => {
    for (const account of ['account 1', 'account 1999', `new ${turns}`]) {
      const booked = credit(`z${turns} ${account}`, 1n, account)
      wallets.credit(booked)
      one.credited(booked)
    }
    turns++
  }
  t.strictSame(await one.run(turn), [])
  t.equal(turns, 2 + 2)
})

t.test('credits that are not in their order, as only a damaged file has them, are told, and not gone through in a circle', async t => {
  const { db, wallets } = books(t, many)
  const file = db.serialize()
  // The last of the first chunk, wherever it stands.
  for (let at = file.indexOf('c1999'); at >= 0; at = file.indexOf('c1999')) file.write('a', at)
  const damaged = openDatabase(file)
  t.teardown(() => damaged.close())
  await t.rejects(new CreditCheck(damaged, wallets).run(no), { message: "the ledger's file is damaged: credit a1999 is out of its place" })
})
