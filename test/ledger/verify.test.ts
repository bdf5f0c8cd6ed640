import Database from 'better-sqlite3'
import t from 'tap'
import { Cells } from '../../src/ledger/cells.js'
import { Records } from '../../src/ledger/records.js'
import { SCHEMA } from '../../src/ledger/sqlite.sql.js'
import { Verification } from '../../src/ledger/verify.js'
import { admissionRecord, endingRecord } from './figures.js'
import { AT, counter } from './script.js'

t.test('what ends while it is summed up is counted once, whether its place has been passed or is still to come', async t => {
  const db = new Database(':memory:')
  t.teardown(() => db.close())
  db.exec(SCHEMA)
  const cells = new Cells(db)
  const records = new Records(db)
  const cell = cells.find(counter('tokens/a/day@0'))
  const entries = [[cells.idOf(cell), 3n]] as const
  const end = (id: string): void => {
    const hold = { id, at: AT, record: admissionRecord() }
    records.hold({ ...hold, claims: [] })
    records.end(hold, 'settled', entries, endingRecord())
    cell.posted += 3n
    cells.touch(cell)
    cells.flush()
  }
  for (let i = 1000; i < 2500; i++) end(`m${i}`)
  const verification = new Verification(db, cells, records)
  const meanwhile = ['a1', 'm1999.5', 'm2400.5', 'z1']
  const turn = async (): Promise<void> => {
    for (const id of meanwhile.splice(0)) {
      end(id)
      verification.ended(id, entries)
    }
  }
  t.strictSame(await verification.run(turn, new Map()), [])
  t.equal(meanwhile.length, 0, 'the event loop turned in between')
  t.equal(cell.posted, 3n * 1504n)
})
