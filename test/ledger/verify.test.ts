import type Database from 'better-sqlite3'
import t, { type Test } from 'tap'
import { Cells } from '../../src/ledger/cells.js'
import { DailySums } from '../../src/ledger/daily-sums.js'
import { openDatabase } from '../../src/ledger/database.js'
import { Records } from '../../src/ledger/records.js'
import { SCHEMA } from '../../src/ledger/sqlite.sql.js'
import { Verification } from '../../src/ledger/verify.js'
import { Wallets } from '../../src/ledger/wallets.js'
import { admissionRecord, endingRecord } from './figures.js'
import { AT, counter } from './script.js'

const NONE_PRUNED = { posted: () => [] }

interface Books {
  readonly db: Database.Database
  readonly cells: Cells
  readonly records: Records
  /** A record that has posted so much on counters, which say so unless they are told to say nothing. */
  end(id: string, posted: Readonly<Record<string, bigint>>, told?: boolean): readonly (readonly [number, bigint])[]
}

function books(t: Test): Books {
  const db = openDatabase(':memory:')
  t.teardown(() => db.close())
  db.exec(SCHEMA)
  const cells = new Cells(db)
  const records = new Records(db)
  const end: Books['end'] = (id, posted, told = true) => {
    const entries = Object.entries(posted).map(([name, amount]) => {
      const cell = cells.find(counter(name))
      if (told) cell.posted += amount
      cells.touch(cell)
      return [cells.idOf(cell), amount] as const
    })
    const hold = { id, at: AT, record: admissionRecord() }
    records.hold({ ...hold, parts: [] })
    records.end(hold, 'settled', entries, endingRecord())
    cells.flush()
    return entries
  }
  return { db, cells, records, end }
}

/** Four thousand records, each on a counter of its own and on one of all; sums are let go from 100 on. */
function many(t: Test): Books & { readonly verification: () => Verification } {
  const found = books(t)
  for (let i = 0; i < 4000; i++) found.end(`m${1000 + i}`, { [`tokens/k${i}/day@0`]: 2n, 'rial/acme/all@0': 5n })
  return { ...found, verification: () => new Verification(found.db, found.cells, found.records, NONE_PRUNED, new Wallets(found.db), 100) }
}

t.test('what it keeps does not grow with the counters of the file', async t => {
  const { verification } = many(t)
  const one = verification()
  let most = 0
  const turn = async () => {
    most = Math.max(most, one.kept)
  }
  t.strictSame(await one.run(turn), [])
  t.ok(most > 0 && most <= 1001, `${most} sums of 4001 at the most`)
  t.ok(one.kept < 1001)
})

t.test('sums that do not come to what their counters say are looked through again when there are twice as many', async t => {
  const { db, cells, records, end } = books(t)
  for (let i = 0; i < 4500; i++) end(`m${1000 + i}`, { [`tokens/k${i}/day@0`]: 2n }, false)
  const one = new Verification(db, cells, records, NONE_PRUNED, new Wallets(db), 100)
  let turns = 0
  const found = await one.run(async () => void turns++)
  t.equal(found.length, 4500)
  // After each full chunk of records, and of counters; and in what is looked through: 1,000 sums, and 3,000 when they are twice as many.
  t.equal(turns, 4 + 4 + 1 + 3)
})

t.test('sums of records that were pruned are compared, however many there are', async t => {
  const { db, cells, records } = books(t)
  const pruned: (readonly [number, bigint])[] = []
  for (let i = 0; i < 3500; i++) {
    const cell = cells.find(counter(`tokens/k${i}/day@0`))
    cell.posted = BigInt(i)
    cells.touch(cell)
    pruned.push([cells.idOf(cell), BigInt(i)])
  }
  cells.flush()
  const posted = (after: number, limit: number) => pruned.filter(([id]) => id > after).slice(0, limit)
  const one = new Verification(db, cells, records, { posted }, new Wallets(db), 100)
  let most = 0
  const turn = async () => {
    most = Math.max(most, one.kept)
  }
  t.strictSame(await one.run(turn), [])
  t.ok(most > 0 && most <= 1000, `${most} sums of 3,500 at the most`)
  const whole = pruned.splice(0, 1000, ...pruned.slice(0, 1000).map(([id]) => [id, -1n] as const))
  const left = { posted: (after: number, limit: number) => pruned.filter(([id]) => id > after).slice(0, limit) }
  t.equal((await new Verification(db, cells, records, left, new Wallets(db), 100).run(turn)).length, whole.length)
  const exact = { posted: (after: number, limit: number) => whole.filter(([id]) => id > after).slice(0, limit) }
  t.equal((await new Verification(db, cells, records, exact, new Wallets(db), 100).run(turn)).length, 2500, 'as many as are read at a time')
})

t.test('counters that are made meanwhile are compared, too', async t => {
  const { end, verification } = many(t)
  const one = verification()
  let turns = 0
  const turn = async () => {
    if (++turns === 1) for (let i = 0; i < 2500; i++) end(`n${1000 + i}`, { [`tokens/n${i}/day@0`]: 7n })
  }
  t.strictSame(await one.run(turn), [])
})

t.test('what the ledger has in memory is held against the file', async t => {
  const { db, cells, records, end } = books(t)
  end('m1', { 'tokens/a/day@0': 2n })
  cells.find(counter('tokens/a/day@0')).posted += 3n
  t.strictSame(await new Verification(db, cells, records, NONE_PRUNED, new Wallets(db)).run(async () => {}), [
    { what: 'tokens of key:a, day from 0: posted, in memory', expected: '2', found: '5' },
  ])
})

t.test('a record more on a counter whose sum had come to what it says is a difference', async t => {
  const { end, verification } = many(t)
  end('m9999', { 'tokens/k7/day@0': 3n }, false)
  t.strictSame(await verification().run(async () => {}), [
    { what: 'tokens of key:k7, day from 0: posted, by the records', expected: '5', found: '2' },
  ])
})

t.test('what ends meanwhile, on either side of its place, is no difference on a counter that is done with', async t => {
  const { end, verification } = many(t)
  const one = verification()
  // After the first thousand, k7 is done with: one record has its place before it, one after it, and one is the last.
  let turns = 0
  const turn = async () => {
    if (++turns !== 3) return
    const before = one.kept
    one.ended('z', [[1, 0n]])
    t.equal(one.kept, before + 1, 'what is still to come is kept, too')
    for (const id of ['m1500.5', 'm4500.5', 'z']) one.ended(id, end(id, { 'tokens/k7/day@0': 3n, 'rial/acme/all@0': 1n }))
  }
  t.strictSame(await one.run(turn), [])
  t.ok(turns > 3)
})

t.test('a record on a counter that is not there is a difference, whatever its number looks like', async t => {
  const { db, verification } = many(t)
  const set = db.prepare('UPDATE records SET posted = ? WHERE id = ?')
  const numbers = ['4294967304', '8.5', '99999', '0']
  for (const [i, number] of numbers.entries()) set.run(`[[${number},2]]`, `m${4990 + i}`)
  const found = await verification().run(async () => {})
  for (const number of numbers)
    t.ok(
      found.some(one => one.what === `counter ${number}` && one.found === 'no such counter'),
      number,
    )
  t.equal(found.length, numbers.length + numbers.length + 1, 'and what these records had posted before is missing')
})

t.test('what ends while it is summed up is counted once, whether its place has been passed or is still to come', async t => {
  const db = openDatabase(':memory:')
  t.teardown(() => db.close())
  db.exec(SCHEMA)
  const cells = new Cells(db)
  const records = new Records(db)
  const cell = cells.find(counter('tokens/a/day@0'))
  const entries = [[cells.idOf(cell), 3n]] as const
  const end = (id: string): void => {
    const hold = { id, at: AT, record: admissionRecord() }
    records.hold({ ...hold, parts: [] })
    records.end(hold, 'settled', entries, endingRecord())
    cell.posted += 3n
    cells.touch(cell)
    cells.flush()
  }
  for (let i = 1000; i < 2500; i++) end(`m${i}`)
  const verification = new Verification(db, cells, records, NONE_PRUNED, new Wallets(db))
  const meanwhile = ['a1', 'm1999.5', 'm2400.5', 'z1']
  const turn = async (): Promise<void> => {
    for (const id of meanwhile.splice(0)) {
      end(id)
      verification.ended(id, entries)
    }
  }
  t.strictSame(await verification.run(turn), [])
  t.equal(meanwhile.length, 0, 'the event loop turned in between')
  t.equal(cell.posted, 3n * 1504n)
})

t.test('rows that are not in their order, as only a damaged file has them, are told, and not gone through in a circle', async t => {
  const { db, cells, records } = books(t)
  const walked = (...lasts: number[]) => ({
    posted: (_: number, size: number) =>
      Array.from({ length: size }, (_, i) => [i === size - 1 ? (lasts.shift() as number) : 1, 1n] as const),
  })
  const run = (pruned: ReturnType<typeof walked>) => new Verification(db, cells, records, pruned, new Wallets(db)).run(async () => {})
  await t.rejects(run(walked(1000, 999)), { message: "the ledger's file is damaged: 999 comes after 1000 in it" })
  await t.rejects(run(walked(1000, 1001, 1001)), { message: "the ledger's file is damaged: 1001 comes after 1001 in it" })
})

t.test('a record whose words can not be read is told by its id', async t => {
  for (const posted of ['[[1,2]', '[[1,1.5]]', '{}']) {
    const { db, cells, records, end } = books(t)
    end('m1', { 'tokens/a/day@0': 2n })
    db.pragma('ignore_check_constraints = ON')
    db.prepare('UPDATE records SET posted = ?').run(posted)
    const run = new Verification(db, cells, records, NONE_PRUNED, new Wallets(db)).run(async () => {})
    await t.rejects(run, { message: `the ledger's file is damaged: record m1 has posted ${posted}` })
  }
})

t.test('a counter that is not found by its name, since the index has lost it, is told: a ledger would begin it at 0', async t => {
  const { db, cells, records, end } = books(t)
  end('m1', { 'tokens/a/day@0': 2n, 'tokens/b/day@0': 3n })
  const index = "WHERE name = 'sqlite_autoindex_counters_1'"
  // The index goes on in that of another table, which has not heard of the second.
  db.unsafeMode(true)
  db.exec(`CREATE TABLE other (id INTEGER PRIMARY KEY, meter TEXT, subject TEXT, kind TEXT, start INTEGER, UNIQUE (meter, subject, kind, start));
    INSERT INTO other SELECT id, meter, subject, kind, start FROM counters WHERE id = 1;
    PRAGMA writable_schema = ON;
    UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_other_1') ${index};
    PRAGMA writable_schema = RESET`)
  t.strictSame(await new Verification(db, cells, records, NONE_PRUNED, new Wallets(db)).run(async () => {}), [
    { what: 'tokens of key:b, day from 0: in the index', expected: '2', found: 'null' },
  ])
})

t.test('what pruned records have posted is told where it is no amount', async t => {
  const { db, cells, records } = books(t)
  // As in a damaged file: else the table would not take it.
  db.exec(
    'DROP TABLE pruned_counters; CREATE TABLE pruned_counters (id INTEGER PRIMARY KEY, posted); INSERT INTO pruned_counters VALUES (7, 1.5)',
  )
  const run = new Verification(db, cells, records, new DailySums(db), new Wallets(db)).run(async () => {})
  await t.rejects(run, { message: "the ledger's file is damaged: pruned records have posted 1.5 on counter 7" })
})
