import t from 'tap'
import { AMOUNT_MAX, Cells } from '../../src/ledger/cells.js'
import { openDatabase } from '../../src/ledger/database.js'
import { SCHEMA } from '../../src/ledger/sqlite.sql.js'
import { counter } from './script.js'

function cells(max: number) {
  const db = openDatabase(':memory:')
  db.exec(SCHEMA)
  return { db, cells: new Cells(db, max) }
}

t.test('counters that are not in use are forgotten, those of past windows first, and found again', async t => {
  const { cells: small, db } = cells(4)
  t.teardown(() => db.close())
  for (let i = 0; i < 4; i++) small.find(counter(`tokens/k${i}/minute@0`))
  const open = small.find(counter('tokens/held/minute@0'))
  open.holds = 1
  const current = small.find(counter('tokens/k0/day@0'))
  small.tidy(59_999)
  t.strictSame([...small.all()], [open], 'too many of the present: all that no hold needs')
  t.equal(small.find(counter('tokens/held/minute@0')), open)
  for (let i = 0; i < 4; i++) small.find(counter(`tokens/k${i}/minute@0`))
  const day = small.find(counter('tokens/k0/day@0'))
  small.tidy(60_000)
  t.strictSame([...small.all()], [open, day])
  t.strictSame(current, day)
})

t.test('what a hold refers to, or is yet to be written, is not forgotten', async t => {
  const { cells: small, db } = cells(0)
  t.teardown(() => db.close())
  const held = small.find(counter('tokens/held/minute@0'))
  held.holds = 1
  const dirty = small.find(counter('tokens/dirty/minute@0'))
  small.idOf(dirty)
  small.touch(dirty)
  small.find(counter('tokens/idle/minute@0'))
  small.tidy(60_000)
  t.strictSame([...small.all()], [held, dirty])
})

t.test('what was forgotten is read from the file', async t => {
  const { cells: kept, db } = cells(0)
  t.teardown(() => db.close())
  const cell = kept.find(counter('tokens/a/minute@60000'))
  kept.idOf(cell)
  cell.posted = 5n
  kept.touch(cell)
  kept.flush()
  kept.tidy(0)
  t.equal(kept.peek('tokens', 'key:a', 'minute', 60_000), undefined)
  const again = kept.find(counter('tokens/a/minute@60000'))
  t.not(again, cell)
  t.strictSame(again, cell)
  t.equal(kept.byId(cell.id), again)
  again.posted = 9n
  kept.touch(again)
  kept.flush()
  kept.tidy(0)
  t.strictSame(db.prepare('SELECT posted FROM counters').pluck().all(), [9])
  t.throws(() => kept.byId(77), /counter 77.*is missing/)
})

t.test('a look finds a counter wherever it is, and keeps none in memory', async t => {
  const { cells: kept, db } = cells(0)
  t.teardown(() => db.close())
  const cell = kept.find(counter('tokens/a/day@0'))
  kept.idOf(cell)
  cell.posted = 5n
  cell.pending = 2n
  t.match(kept.look(counter('tokens/a/day@0')), { posted: 5n, pending: 2n })
  cell.pending = 0n
  kept.touch(cell)
  kept.flush()
  kept.tidy(0)
  t.match(kept.look(counter('tokens/a/day@0')), { posted: 5n, pending: 0n })
  t.match(kept.look(counter('tokens/b/day@0')), { posted: 0n, pending: 0n })
  t.strictSame([...kept.all()], [])
})

t.test('meters and subjects that look alike are not mixed up', async t => {
  const { cells: kept } = cells(10)
  const { window } = counter('tokens/a/minute@0')
  const first = kept.find({ meter: 'a b', subject: 'c', window })
  t.not(kept.find({ meter: 'a', subject: 'b c', window }), first)
  t.not(kept.find({ meter: 'a b', subject: 'c minute 0', window }), first)
})

t.test('there is no counter of a window without a moment in it', async t => {
  const { cells: kept, db } = cells(4)
  t.teardown(() => db.close())
  const of = (start: number, end: number) => () => kept.find({ meter: 'tokens', subject: 'key:a', window: { kind: 'day', start, end } })
  t.throws(of(5, 5), RangeError)
  t.throws(of(5, 4), RangeError)
  t.throws(of(5, 6.5), RangeError)
  t.doesNotThrow(of(5, 6))
  t.doesNotThrow(of(5, Number.POSITIVE_INFINITY))
})

t.test('so many may stay, and half of them when those of the past are gone', async t => {
  const { cells: four, db } = cells(4)
  t.teardown(() => db.close())
  const past = Array.from({ length: 4 }, (_, i) => four.find(counter(`tokens/k${i}/minute@0`)))
  four.tidy(60_000)
  t.strictSame([...four.all()], past, 'not more than there may be')
  const present = Array.from({ length: 4 }, (_, i) => four.find(counter(`tokens/k${i}/minute@60000`)))
  four.tidy(60_000)
  t.strictSame([...four.all()], present)
})

t.test('where open holds keep many, others may stay as well', async t => {
  const { cells: two, db } = cells(2)
  t.teardown(() => db.close())
  for (let i = 0; i < 6; i++) two.find(counter(`tokens/k${i}/minute@0`)).holds = 1
  two.tidy(60_000)
  for (let i = 6; i < 12; i++) two.find(counter(`tokens/k${i}/minute@0`))
  two.tidy(60_000)
  t.equal([...two.all()].length, 12, 'twice as many as were kept')
  two.find(counter('tokens/k12/minute@0'))
  two.tidy(60_000)
  t.equal([...two.all()].length, 6)
})

t.test('a counter is found by its number, and numbers go on, after a restart', async t => {
  const { cells: before, db } = cells(10)
  t.teardown(() => db.close())
  const all = before.find({ meter: 'rial', subject: 'account:acme', window: { kind: 'all', start: 0, end: Number.POSITIVE_INFINITY } })
  const day = before.find(counter('tokens/a/day@0'))
  t.strictSame([before.idOf(all), before.idOf(day), before.idOf(all)], [1, 2, 1])
  for (const cell of [all, day]) {
    cell.posted = 5n
    before.touch(cell)
  }
  before.flush()
  const after = new Cells(db)
  t.strictSame([after.byId(1), after.byId(2)], [all, day])
  t.equal(after.byId(2), after.find(counter('tokens/a/day@0')))
  t.equal(after.idOf(after.find(counter('tokens/b/day@0'))), 3)
})

t.test('a counter that a damaged file has no amount for is not gone on with; 0 and the most that there can be are amounts', async t => {
  const { db } = cells(4)
  t.teardown(() => db.close())
  // As in a damaged file: else the table would not take it.
  db.exec(`DROP TABLE counters; CREATE TABLE counters (id INTEGER PRIMARY KEY, meter, subject, kind, start, until, posted);
    INSERT INTO counters VALUES (1, 'tokens', 'key:a', 'day', 0, 86400000, 5)`)
  const day = counter('tokens/a/day@0')
  for (const [posted, told] of [
    ['-1', '-1'],
    ['9007199254740992', '9007199254740992'],
    ['1.5', '1.5'],
    ["'5'", '5'],
    ['NULL', 'null'],
  ] as const) {
    db.exec(`UPDATE counters SET posted = ${posted}`)
    for (const find of [() => new Cells(db).find(day), () => new Cells(db).byId(1)])
      t.throws(find, { message: `the ledger's file is damaged: counter 1 has posted ${told}` })
  }
  for (const posted of [0n, AMOUNT_MAX]) {
    db.prepare('UPDATE counters SET posted = ?').run(posted)
    t.equal(new Cells(db).find(day).posted, posted)
  }
})
