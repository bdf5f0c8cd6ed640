import t, { type Test } from 'tap'
import { openDatabase } from '../../src/ledger/database.js'
import { DamagedFile } from '../../src/ledger/file-errors.js'
import { asked, heldRecord, Records } from '../../src/ledger/records.js'
import { SCHEMA } from '../../src/ledger/sqlite.sql.js'
import { admissionRecord, endingRecord } from './figures.js'
import { counter } from './script.js'

const part = {
  cell: { id: 3, key: '', counter: counter('tokens/a/day@0'), posted: 0n, pending: 0n, holds: 0, stored: true, dirty: false },
  ends: 'counted' as const,
  amount: 7n,
}

function records(t: Test) {
  const db = openDatabase(':memory:')
  t.teardown(() => db.close())
  db.exec(SCHEMA)
  return { db, records: new Records(db) }
}

t.test('an id has ended when its record is there, in whatever order they came', async t => {
  const { db, records: found } = records(t)
  const end = (id: string) => found.end({ id, at: 5, record: admissionRecord() }, 'settled', [], endingRecord())
  end('m')
  end('c')
  t.strictSame(
    ['a', 'c', 'd', 'm', 'z'].map(id => found.ended(id)),
    [false, true, false, true, false],
  )
  end('z')
  t.equal(found.ended('z'), true)
  t.equal(new Records(db).ended('c'), true, 'also those of another start')
})

t.test('what a record can not hold is refused, and nothing is written', async t => {
  const { records: found } = records(t)
  const most = 2n ** 53n - 1n
  const holding = (fields: object) => () => found.hold({ id: 'a', at: 5, record: { ...admissionRecord(), ...fields }, parts: [part] })
  for (const held_rial of [most + 1n, -1n, 5]) t.throws(holding({ held_rial }), RangeError, `${typeof held_rial} ${held_rial}`)
  for (const held_tokens of [-1, 1.5, Number.NaN, 2 ** 53]) t.throws(holding({ held_tokens }), RangeError, `${held_tokens}`)
  const record = admissionRecord()
  const ending = (fields: object) => () => found.end({ id: 'a', at: 5, record }, 'settled', [], { ...endingRecord(), ...fields })
  for (const cost_rial of [most + 1n, -1n, 5]) t.throws(ending({ cost_rial }), RangeError, `${typeof cost_rial} ${cost_rial}`)
  t.throws(ending({ overrun_rial: most + 1n }), RangeError)
  for (const name of ['input_tokens', 'cached_input_tokens', 'output_tokens', 'reasoning_tokens', 'status'])
    t.throws(ending({ [name]: -1 }), RangeError, name)
  t.strictSame(found.posted('', 10), [])
  t.doesNotThrow(ending({ cost_rial: most, overrun_rial: 0n }))
})

t.test('a record is read as it was written', async t => {
  const { records: found } = records(t)
  const whole = { from: '', below: '~' }
  for (const [id, stream] of [
    ['a', true],
    ['b', false],
  ] as const) {
    const record = admissionRecord({ stream, held_rial: 2n ** 53n - 1n })
    found.hold({ id, at: 5, record, parts: [part] })
    found.end({ id, at: 5, record }, 'partial', [[3, 7n]], endingRecord({ cost_rial: 9n, ttft_ms: null }))
    t.strictSame(found.chunk(whole, {}).at(-1), {
      id,
      at: 5,
      state: 'partial',
      ...record,
      ...endingRecord({ cost_rial: 9n, ttft_ms: null }),
    })
  }
  t.strictSame(found.posted('', 10), [
    { id: 'a', posted: [[3, 7n]] },
    { id: 'b', posted: [[3, 7n]] },
  ])
})

t.test('an open hold is read as it was written', async t => {
  const { records: found } = records(t)
  found.hold({ id: 'a', at: 5, record: admissionRecord(), parts: [part] })
  t.strictSame(found.holds(), [{ id: 'a', at: 5, claims: [[3, 7n, 'counted']], record: admissionRecord() }])
})

t.test('since is inclusive, until is not; key, account, model and state are exact', async t => {
  const record = heldRecord({ id: 'a', at: 5, record: admissionRecord({ key: 'k', account: 'acme', model: 'up/m' }) })
  const rows: [Parameters<typeof asked>[1], boolean][] = [
    [{}, true],
    [{ since: 5 }, true],
    [{ since: 6 }, false],
    [{ until: 5 }, false],
    [{ until: 6 }, true],
    [{ state: 'held' }, true],
    [{ state: 'settled' }, false],
    [{ key: 'k', account: 'acme', model: 'up/m' }, true],
    [{ key: 'other' }, false],
    [{ account: 'other' }, false],
    [{ model: 'other' }, false],
  ]
  for (const [query, expected] of rows) t.equal(asked(record, query), expected, JSON.stringify(query))
})

t.test('an open hold that a damaged file does not tell whole is told by its id, and not gone on with', async t => {
  const { db, records: found } = records(t)
  found.hold({ id: 'a', at: 5, record: admissionRecord(), parts: [part] })
  t.equal(found.holds().length, 1)
  // As in a damaged file: else the table would not take it.
  db.exec(`ALTER TABLE holds RENAME TO strict; CREATE TABLE holds AS SELECT * FROM strict`)
  for (const [column, value] of [
    ['claims', "'[[3,7'"],
    ['claims', '7'],
    ['claims', "'[[3,7.5]]'"],
    ['held_rial', '-1'],
    ['held_rial', 'NULL'],
    ['held_tokens', "'x'"],
    ['held_tokens', 'NULL'],
    ['provider', 'NULL'],
    ['surface', "x'00'"],
    ['model', "x'00'"],
    ['price', "x'00'"],
    ['id', "x'00'"],
  ]) {
    db.exec(`DELETE FROM holds; INSERT INTO holds SELECT * FROM strict; UPDATE holds SET ${column} = ${value}`)
    t.throws(
      () => new Records(db).holds(),
      new DamagedFile(`the open hold ${column === 'id' ? '\0' : 'a'} can not be read`),
      `${column} ${value}`,
    )
  }
})
