import { rmSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openDatabase } from '../../src/ledger/database.js'
import { openLedger, type SqliteLedger } from '../../src/ledger/sqlite.js'
import { windows } from '../../src/ledger/windows.js'
import { admissionRecord, endingRecord } from './figures.js'
import { AT, claim } from './script.js'

async function opened(t: Test, path = ':memory:'): Promise<SqliteLedger> {
  const ledger = await openLedger({ path, durability: 'process', create: true })
  t.teardown(() => ledger.close())
  return ledger
}

const day = windows('UTC', 'gregorian')

const hold = (ledger: SqliteLedger, id: string, { at = AT, rial = 0n, claims = ['tokens/a/day@0=5'] } = {}) =>
  ledger.hold({ id, at, claims: claims.map(claim), record: admissionRecord({ held_rial: rial }) })

t.test('what is held is told while it is, and no longer', async t => {
  const ledger = await opened(t)
  const told = () => {
    const { open_holds, held_rial, oldest_hold_at } = ledger.stats()
    return [open_holds, held_rial, oldest_hold_at]
  }
  t.strictSame(told(), [0, 0n, null])
  await hold(ledger, 'r1', { rial: 600n })
  await hold(ledger, 'r2', { at: AT + 1, rial: 30n })
  t.strictSame(told(), [2, 630n, AT])
  await ledger.settle('r1', { state: 'settled', actual: {}, record: endingRecord() })
  t.strictSame(told(), [1, 30n, AT + 1])
  await ledger.void('r2', endingRecord())
  t.strictSame(told(), [0, 0n, null])
})

t.test('recovery of some ends those alone, and of them only what is open', async t => {
  const ledger = await opened(t)
  for (const id of ['r1', 'r2', 'r3']) await hold(ledger, id)
  await ledger.void('r3', endingRecord())
  const ids = async (found: Promise<{ readonly id: string }[]>) => (await found).map(({ id }) => id)
  t.strictSame(await ids(ledger.recover(AT + 1, new Set(['r1', 'r3', 'another']))), ['r1'])
  t.strictSame(await ids(ledger.open()), ['r2'])
  t.strictSame(await ids(ledger.records({ state: 'recovered' })), ['r1'])
  t.strictSame(await ids(ledger.recover(AT + 1, new Set())), [])
  t.strictSame(await ids(ledger.recover(AT + 1)), ['r2'])
})

t.test('recovery of many is done in parts, between which others go on', async t => {
  const commits: number[] = []
  const commit = (_seconds: number, operations: number): void => void commits.push(operations)
  const ledger = await openLedger({ path: ':memory:', durability: 'process', create: true, observe: { commit } })
  t.teardown(() => ledger.close())
  const ids = Array.from({ length: 250 }, (_, i) => `r${String(i).padStart(3, '0')}`)
  for (const id of ids) void hold(ledger, id)
  await ledger.open()
  commits.length = 0
  const done: string[] = []
  const recovery = ledger.recover(AT + 1).then(found => {
    done.push('recovered')
    return found.map(({ id }) => id)
  })
  await ledger.wallet('acme').then(() => done.push('read'))
  // Ended by its owner after recovery has looked.
  const last = ids.at(-1) as string
  t.equal(await ledger.void(last, endingRecord()), 'ended')
  t.strictSame(await recovery, ids.slice(0, -1))
  t.strictSame(done, ['read', 'recovered'])
  t.ok(commits.length >= 3 && Math.max(...commits) <= 101, commits.join())
  t.strictSame(await ledger.verify(), [])
})

t.test('a hold on a counter that others have filled is recovered, as all are', async t => {
  const ledger = await opened(t)
  await hold(ledger, 'r1')
  await hold(ledger, 'r2', { claims: ['tokens/b/day@0=0'] })
  await hold(ledger, 'r3', { claims: ['tokens/b/day@0=5:counted'] })
  await hold(ledger, 'r4')
  const most = BigInt(Number.MAX_SAFE_INTEGER)
  await ledger.settle('r2', { state: 'settled', actual: { tokens: most }, record: endingRecord() })
  t.strictSame(
    (await ledger.recover(AT)).map(({ id }) => id),
    ['r1', 'r3', 'r4'],
  )
  t.strictSame(await ledger.open(), [])
  t.strictSame(await ledger.verify(), [])
})

t.test('open holds are told oldest first, those of one moment by their ids, however they came', async t => {
  for (const ids of ['r1 r2 r3', 'r3 r2 r1', 'r2 r3 r1']) {
    const ledger = await opened(t)
    for (const id of ids.split(' ')) await hold(ledger, id)
    await hold(ledger, 'r9', { at: AT - 1 })
    t.strictSame(
      (await ledger.open()).map(({ id }) => id),
      ['r9', 'r1', 'r2', 'r3'],
      ids,
    )
  }
})

t.test('a record says what it has posted, and nothing of counters on which it has left nothing', async t => {
  const path = join(t.testdir(), 'ledger.db')
  const ledger = await opened(t, path)
  const claims = ['tokens/a/day@0=5', 'rial/a/day@0=7', 'requests/a/day@0=1:counted', 'places/a/day@0=1:released']
  await hold(ledger, 'r1', { claims })
  await hold(ledger, 'r2', { claims })
  await ledger.settle('r1', { state: 'settled', actual: { tokens: 0n, rial: 3n }, record: endingRecord() })
  await ledger.void('r2', endingRecord())
  await ledger.close()
  const db = openDatabase(path)
  t.teardown(() => db.close())
  t.strictSame(db.prepare('SELECT posted FROM records ORDER BY id').pluck().all(), ['[[2,3],[3,1]]', '[[3,1]]'])
})

t.test('a file that is gone is a failure as soon as it is asked about; a closed ledger says that it is closed', async t => {
  const path = join(t.testdir(), 'ledger.db')
  const ledger = await opened(t, path)
  t.equal(ledger.failure, null)
  rmSync(path)
  t.match(ledger.failure, /was removed while the gateway ran/)
  await t.rejects(hold(ledger, 'r1'), { code: 'ledger_unavailable' })
  const other = await opened(t, join(t.testdir(), 'other.db'))
  await other.close()
  t.equal(other.failure, 'the ledger is closed')
})

t.test('nothing is pruned while a report is made, and again afterwards', async t => {
  const ledger = await opened(t)
  const pruned = async () => (await ledger.prune({ before: AT + 1, dayOf: at => day('day', at) })).records
  for (const id of ['r1', 'r2']) {
    await hold(ledger, id)
    await ledger.void(id, endingRecord())
    const report = ledger.usage({ by: [], timezone: 'UTC', calendar: 'gregorian' })
    t.equal(await pruned(), 0)
    await report
    t.equal(await pruned(), 1)
  }
})

t.test('few batches of many operations are moved out of the log as well', async t => {
  const ledger = await opened(t, join(t.testdir(), 'ledger.db'))
  const long = admissionRecord({ price: 'x'.repeat(8000) })
  await Promise.all(Array.from({ length: 1024 }, (_, i) => ledger.hold({ id: `r${i}`, at: AT, claims: [], record: long })))
  t.ok(ledger.stats().wal_bytes < 6_000_000, `${ledger.stats().wal_bytes} bytes in four batches`)
})

t.test('a recovered hold lasted until the start that ended it; a clock that was set back makes it nothing', async t => {
  const ledger = await opened(t)
  await hold(ledger, 'r1', { at: AT - 250 })
  await hold(ledger, 'r2', { at: AT + 250 })
  await ledger.recover(AT)
  t.strictSame(
    (await ledger.records({ state: 'recovered' })).map(({ id, duration_ms }) => [id, duration_ms]),
    [
      ['r1', 250],
      ['r2', 0],
    ],
  )
})

t.test('a long reading of records lets others have their turn', async t => {
  const ledger = await opened(t)
  const ids = Array.from({ length: 2000 }, (_, i) => `r${1000 + i}`)
  await Promise.all(ids.map(id => hold(ledger, id)))
  await Promise.all(ids.map(id => ledger.settle(id, { state: 'settled', actual: {}, record: endingRecord() })))
  let turns = 0
  let over = false
  const count = (): void => {
    turns++
    if (!over) setImmediate(count)
  }
  setImmediate(count)
  const records = await ledger.records({})
  over = true
  t.strictSame(
    records.map(({ id }) => id),
    ids,
  )
  t.ok(turns > 6, `${turns} turns`)
})

t.test('what models have taught is durable when it is told to be kept', async t => {
  const commits: number[] = []
  const path = join(t.testdir(), 'ledger.db')
  const observe = { commit: (_: number, operations: number) => commits.push(operations) }
  const ledger = await openLedger({ path, durability: 'process', create: true, observe })
  const kept = { model: 'up/m', basis: '1', state: '{}' }
  await ledger.keep([kept])
  t.strictSame(commits, [1])
  await ledger.close()
  const again = await opened(t, path)
  t.strictSame(await again.calibrations(), [kept])
})

t.test('pruning goes on behind what it has looked at, also where that stays', async t => {
  const ledger = await opened(t)
  const end = async (id: string, at: number): Promise<void> => {
    await hold(ledger, id, { at, claims: [] })
    await ledger.settle(id, { state: 'settled', actual: {}, record: endingRecord() })
  }
  // Ids are not in the order of their times.
  await end('a', AT)
  for (let i = 0; i < 350; i++) await end(`b${1000 + i}`, AT + 2 * 86_400_000)
  await end('c', AT)
  const pruned: number[] = []
  let from: string | null = ''
  while (from !== null && pruned.length < 10) {
    const { records, next }: { records: number; next: string | null } = await ledger.prune({
      before: day('day', AT).end,
      dayOf: at => day('day', at),
      from,
    })
    pruned.push(records)
    from = next
  }
  t.strictSame(pruned, [1, 0, 0, 1])
  t.equal((await ledger.records({})).length, 350)
})
