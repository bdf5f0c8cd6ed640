import t, { type Test } from 'tap'
import { openDatabase } from '../../src/ledger/database.js'
import { SCHEMA } from '../../src/ledger/sqlite.sql.js'
import { Timeline } from '../../src/ledger/timeline.js'

const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const END = '\u{10ffff}'
const TIME_MAX = 2 ** 48 - 1

function timeline(t: Test) {
  const db = openDatabase(':memory:')
  t.teardown(() => db.close())
  db.exec(SCHEMA)
  return { db, timeline: new Timeline(db) }
}

/** The beginning of an id, in Crockford's base 32, as one would write it by hand. */
function prefix(time: number): string {
  const digits = BigInt(time).toString(32).padStart(10, '0')
  return `req_${[...digits].map(digit => ALPHABET[Number.parseInt(digit, 32)]).join('')}`
}

const id = (time: number) => `${prefix(time)}0123456789ABCDEF`

t.test('ids that begin with the time of their record need no more than that', async t => {
  const { timeline: line } = timeline(t)
  line.note(id(1_764_000_000_123), 1_764_000_000_123)
  t.strictSame(line.range(1000, 2000), { from: prefix(1000), below: prefix(2000) })
  t.strictSame(line.range(0, TIME_MAX), { from: prefix(0), below: prefix(TIME_MAX) })
  t.strictSame(line.range(-5, TIME_MAX + 1), { from: prefix(0), below: END })
  t.strictSame(line.range(1000.2, Number.POSITIVE_INFINITY), { from: prefix(1001), below: END })
})

t.test('a clock that was set back widens what is looked through, in either direction, and for the next start too', async t => {
  const { db, timeline: line } = timeline(t)
  line.note(id(5000), 5300)
  line.note(id(5000), 4900)
  const wider = { from: prefix(700), below: prefix(2100) }
  t.strictSame(line.range(1000, 2000), wider)
  line.flush()
  t.strictSame(new Timeline(db).range(1000, 2000), wider)
  line.note(id(5000), 5400)
  t.strictSame(line.range(1000, 2000), { from: prefix(600), below: prefix(2100) })
})

t.test('nothing is written where nothing has changed', async t => {
  const { db, timeline: line } = timeline(t)
  line.note(id(5000), 5300)
  line.note(id(5000), 4900)
  line.flush()
  db.exec('UPDATE timeline SET least = -1, most = 1')
  for (const at of [5300, 5000, 4900]) line.note(id(5000), at)
  line.flush()
  t.strictSame(db.prepare('SELECT least, most FROM timeline').raw().get(), [-1, 1])
})

t.test('among ids of another making, all are looked through, from then on', async t => {
  for (const other of ['r1', `${id(5000)}0`, id(5000).toLowerCase(), `req_8${'0'.repeat(25)}`]) {
    const { db, timeline: line } = timeline(t)
    line.note(other, 5000)
    t.strictSame(line.range(1000, 2000), { from: '', below: END }, other)
    line.flush()
    const next = new Timeline(db)
    next.note(id(5000), 5000)
    t.strictSame(next.range(1000, 2000), { from: '', below: END })
  }
})

t.test('a file without its row is damaged', async t => {
  const { db } = timeline(t)
  db.exec('DELETE FROM timeline')
  t.throws(() => new Timeline(db), { message: 'the table timeline is empty' })
})
