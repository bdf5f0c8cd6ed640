import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { requestIds, ulids } from '../../src/ids.js'
import { accountRial } from '../../src/ledger/counters.js'
import { openDatabase } from '../../src/ledger/database.js'
import type { Claim, Ledger } from '../../src/ledger/ledger.js'
import { openLedger, type SqliteLedger } from '../../src/ledger/sqlite.js'
import { contract } from './contract.js'
import { admissionRecord, endingRecord } from './figures.js'
import { Reference } from './reference.js'
import { AT, claim, script } from './script.js'

const CHILD = fileURLToPath(new URL('child.js', import.meta.url))

async function opened(t: Test, path: string, durability: 'power' | 'process' = 'process'): Promise<SqliteLedger> {
  const ledger = await openLedger({ path, durability, create: true })
  t.teardown(() => ledger.close())
  return ledger
}

for (const durability of ['power', 'process'] as const) {
  t.test(`the contract, in a file that survives loss of ${durability}`, async t =>
    contract(t, t => opened(t, join(t.testdir(), 'ledger.db'), durability)),
  )
}

interface Operation {
  readonly kind: 'hold' | 'settle' | 'void' | 'credit' | 'recover' | 'reopen' | 'crash' | 'verify'
  readonly id: number
  readonly amount: number
  readonly claims: readonly Claim[]
}

const COUNTERS = ['requests/a/minute@0', 'tokens/a/minute@0', 'tokens/a/day@0', 'requests/a/minute@60000']
const claims = fc.array(
  fc.record({
    name: fc.constantFrom('wallet', ...COUNTERS),
    amount: fc.integer({ min: 0, max: 60 }),
    ceiling: fc.constantFrom(null, 50, 100),
    ends: fc.constantFrom('measured', 'counted', 'released'),
  }),
  { maxLength: 5 },
)
const operation: fc.Arbitrary<Operation> = fc.record({
  kind: fc.oneof(
    { weight: 12, arbitrary: fc.constantFrom('hold' as const, 'hold' as const, 'settle' as const, 'void' as const, 'credit' as const) },
    { weight: 2, arbitrary: fc.constantFrom('reopen' as const, 'crash' as const, 'recover' as const, 'verify' as const) },
  ),
  id: fc.integer({ min: 0, max: 12 }),
  amount: fc.integer({ min: -20, max: 120 }),
  claims: claims.map(all =>
    all.map(({ name, amount, ceiling, ends }): Claim => {
      if (name !== 'wallet') return claim(`${name}=${amount}${ceiling === null ? '' : `<=${ceiling}`}:${ends}`)
      return { counter: accountRial('acme'), amount: BigInt(amount), ceiling: 'credits', code: 'insufficient_balance' }
    }),
  ),
})

/** Runs one operation on both, at once on the reference; what they answer must be the same. */
async function both(t: Test, ledger: Ledger, reference: Reference, { kind, id, amount, claims }: Operation): Promise<void> {
  const name = `r${id}`
  const tokens = BigInt(Math.abs(amount))
  if (kind === 'hold') {
    const hold = { id: name, at: AT + id, claims, record: admissionRecord() }
    const expected = attempt(() => reference.hold(hold))
    same(t, await ledger.hold(hold).catch(() => 'rejected'), expected)
  } else if (kind === 'settle') {
    const actual: Record<string, bigint> = amount % 3 === 0 ? {} : { tokens, rial: tokens }
    const record = endingRecord()
    const expected = reference.end(name, 'settled', record, actual)
    same(t, await ledger.settle(name, { state: 'settled', actual, record }), expected)
  } else if (kind === 'void') {
    const record = endingRecord({ ended_by: 'client' })
    const expected = reference.end(name, 'voided', record, null)
    same(t, await ledger.void(name, record), expected)
  } else if (kind === 'credit') {
    const credit = { id: `c${id}`, account: 'acme', amount: BigInt(amount), note: '', at: AT }
    const expected = reference.credit(credit)
    same(t, await ledger.credit(credit), expected)
  } else if (kind === 'verify') {
    same(t, await ledger.verify(), [])
  }
}

function attempt<T>(operation: () => T): T | 'rejected' {
  try {
    return operation()
  } catch {
    return 'rejected'
  }
}

function same(t: Test, found: unknown, expected: unknown): void {
  if (!t.strictSame(found, expected)) throw new Error('they differ')
}

t.test('random operations, crashes and restarts: the same answers as the reference, and nothing is lost', async t => {
  let run = 0
  for (const durability of ['process', 'power'] as const) {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(operation, { minLength: 1, maxLength: 6 }), { maxLength: 14 }), async turns => {
        const folder = t.testdir({ [`${durability}-${++run}`]: {} })
        let file = join(folder, `${durability}-${run}`, '0.db')
        let ledger = await openLedger({ path: file, durability, create: true })
        const reference = new Reference()
        try {
          for (const turn of turns) {
            // Operations of one turn go into one batch; what ends it does so between two.
            await Promise.all(turn.map(operation => both(t, ledger, reference, operation)))
            const [{ kind }] = turn as [Operation]
            if (kind === 'reopen') {
              await ledger.close()
              ledger = await openLedger({ path: file, durability, create: false })
            } else if (kind === 'crash') {
              const abandoned = ledger
              file = crashed(file)
              ledger = await openLedger({ path: file, durability, create: false })
              await abandoned.close()
            } else if (kind === 'recover') {
              const open = reference.open()
              for (const hold of open) reference.end(hold.id, 'recovered', endingRecord(), null)
              same(t, await ledger.recover(AT), open)
            }
            await invariants(t, ledger, reference)
          }
        } finally {
          await ledger.close()
        }
      }),
      { numRuns: 40, endOnFailure: true },
    )
  }
})

/** The files as a kill would leave them. Another process copies: closing a descriptor of the file in this one would drop SQLite's locks. */
function crashed(file: string): string {
  const copy = file.replace(/(\d+)\.db$/, (_, n) => `${Number(n) + 1}.db`)
  for (const suffix of ['', '-wal', '-mark']) {
    const { status } = spawnSync('cp', [file + suffix, copy + suffix])
    if (status !== 0) throw new Error(`cp ${file}${suffix}: ${status}`)
  }
  return copy
}

async function invariants(t: Test, ledger: SqliteLedger, reference: Reference): Promise<void> {
  const counters = [...COUNTERS.map(name => claim(`${name}=0`).counter), accountRial('acme')]
  const open = reference.open()
  const [readings, wallet, holds, records] = await Promise.all([
    ledger.read(counters),
    ledger.wallet('acme'),
    ledger.open(),
    ledger.records({}),
  ])
  same(t, readings, reference.read(counters))
  same(t, wallet, reference.wallet('acme'))
  same(t, holds, open)
  same(
    t,
    records.map(({ id, state }) => [id, state]),
    reference.states(),
  )
  same(
    t,
    readings.every(({ posted, pending }) => posted >= 0n && pending >= 0n),
    true,
  )
  const { open_holds, held_rial, oldest_hold_at } = ledger.stats()
  same(t, [open_holds, held_rial, oldest_hold_at === null], [open.length, 600n * BigInt(open.length), open.length === 0])
}

t.test('what was counted is there after a restart, also in windows long past', async t => {
  const path = join(t.testdir(), 'ledger.db')
  const ledger = await openLedger({ path, durability: 'power', create: true })
  await script(
    t,
    ledger,
    `
    credit c1 acme 1000 -> credited
    hold r1 acme 600 requests/a/minute@0=1<=2:counted -> admitted
    hold r2 acme 200 requests/a/minute@0=1<=2:counted -> admitted
    settle r1 500 -> ended
    `,
  )
  await ledger.close()
  await script(
    t,
    await opened(t, path),
    `
    open -> r2
    balance acme -> posted=500 pending=200
    hold r3 requests/a/minute@0=1<=2:counted -> requests_minute
    hold r1 acme 1 -> ! hold r1
    recover -> r2
    balance acme -> posted=500 pending=0
    hold r3 acme 501 -> insufficient_balance
    hold r3 acme 500 -> admitted
    verify -> same
    `,
  )
})

t.test('usage records of a span of time, also where the clock was set back', async t => {
  const ledger = await opened(t, ':memory:')
  const newId = requestIds(ulids())
  const times: number[] = []
  for (let i = 0; i < 3000; i++) times.push(AT + i * 1000 - (i > 2000 ? 900_000 : 0))
  await Promise.all(
    times.map(async at => {
      const id = newId(at)
      await ledger.hold({ id, at, claims: [], record: admissionRecord() })
      await ledger.void(id, endingRecord())
    }),
  )
  for (const [since, until] of [
    [AT, AT + 1000],
    [AT + 1_500_000, AT + 1_600_000],
    [AT + 1_099_000, AT + 1_102_000],
    [AT + 2_500_000, Number.POSITIVE_INFINITY],
    [0, AT],
  ] as const) {
    const expected = times.filter(at => at >= since && at < until)
    t.strictSame(
      (await ledger.records({ since, until })).map(({ at }) => at),
      expected,
    )
  }
  t.equal((await ledger.records({ limit: 2500 })).length, 2500)
})

t.test('verify finds what was changed behind its back, and goes on while others write', async t => {
  const path = join(t.testdir(), 'ledger.db')
  let ledger = await openLedger({ path, durability: 'process', create: true })
  const hold = async (id: string) => {
    await ledger.hold({ id, at: AT, claims: [claim('tokens/a/day@0=5')], record: admissionRecord() })
    await ledger.settle(id, { state: 'settled', actual: { tokens: 3n }, record: endingRecord() })
  }
  await Promise.all(Array.from({ length: 3000 }, (_, i) => hold(`m${i}`)))
  let verified = false
  const verification = ledger.verify().finally(() => {
    verified = true
  })
  let during = 0
  // Some before, some after what has been looked through already.
  for (; !verified; during++) await hold(`${during % 2 ? 'a' : 'z'}${during}`)
  t.strictSame(await verification, [])
  t.ok(during > 1, `${during} meanwhile`)
  await ledger.credit({ id: 'c', account: 'acme', amount: 5n, note: '', at: AT })
  await ledger.close()

  const db = openDatabase(path)
  db.exec("UPDATE counters SET posted = posted + 1; UPDATE records SET posted = '[[77,1]]' WHERE id = 'm5'")
  db.close()
  ledger = await opened(t, path)
  const total = 3 * (3000 + during)
  t.strictSame(await ledger.verify(), [
    { what: 'tokens of key:a, day from 0: posted, by the records', expected: String(total - 3), found: String(total + 1) },
    { what: 'counter 77', expected: '1', found: 'no such counter' },
  ])
})

t.test('a backup is whole, private, and taken while others write', async t => {
  const folder = t.testdir()
  const ledger = await opened(t, join(folder, 'ledger.db'), 'power')
  await script(t, ledger, 'credit c1 acme 1000 -> credited\nhold r1 acme 600 -> admitted')
  const [, admission] = await Promise.all([
    ledger.backup(join(folder, 'copy.db')),
    ledger.hold({ id: 'r2', at: AT, claims: [], record: admissionRecord() }),
  ])
  t.equal(admission.admitted, true)
  await t.rejects(ledger.backup(join(folder, 'copy.db')), { code: 'EEXIST' })
  await script(t, await opened(t, join(folder, 'copy.db')), 'balance acme -> posted=0 pending=600\nverify -> same')
})

t.test('a ledger that is closed while it is copied waits for the copy', async t => {
  const folder = t.testdir()
  const ledger = await opened(t, join(folder, 'ledger.db'))
  const ids = Array.from({ length: 200 }, (_, i) => `r${i}`)
  await Promise.all(ids.map(id => ledger.hold({ id, at: AT, claims: [], record: admissionRecord({ price: 'x'.repeat(20_000) }) })))
  const path = join(folder, 'copy.db')
  const backup = ledger.backup(path)
  while (!existsSync(path) || statSync(path).size === 0) await new Promise(resolve => setImmediate(resolve))
  await Promise.all([backup, ledger.close()])
  const copy = await opened(t, join(folder, 'copy.db'))
  t.equal((await copy.open()).length, 200)
  t.strictSame(await copy.verify(), [])
})

t.test('the log is moved into the file again and again, and nothing is lost', async t => {
  const path = join(t.testdir(), 'ledger.db')
  const sizes: number[] = []
  const commits: [number, number][] = []
  const ledger = await openLedger({
    path,
    durability: 'power',
    create: true,
    observe: { commit: (seconds, operations) => commits.push([seconds, operations]) },
  })
  const newId = requestIds(ulids())
  const one = async (key: string) => {
    for (let i = 0; i < 120; i++) {
      const id = newId(AT + i)
      await ledger.hold({ id, at: AT + i, claims: [claim(`tokens/${key}/day@0=5`)], record: admissionRecord({ price: 'x'.repeat(1500) }) })
      await ledger.settle(id, { state: 'settled', actual: { tokens: 3n }, record: endingRecord() })
      sizes.push(ledger.stats().wal_bytes)
    }
  }
  await Promise.all(Array.from({ length: 64 }, (_, i) => one(`k${i}`)))
  t.ok(sizes.filter((size, i) => size < (sizes[i - 1] ?? 0)).length > 1, 'cut several times')
  t.ok(Math.max(...sizes) < 10_000_000, `at most ${Math.max(...sizes)}`)
  t.equal(
    commits.reduce((sum, [, operations]) => sum + operations, 0),
    64 * 120 * 2,
  )
  t.ok(commits.every(([seconds]) => seconds > 0 && seconds < 10))
  t.ok(commits.length < 64 * 120, `${commits.length} commits`)
  await ledger.close()
  const again = await opened(t, path)
  t.strictSame(await again.verify(), [])
  t.equal((await again.records({})).length, 64 * 120)
  await script(t, again, 'read tokens/k63/day@0 -> posted=360 pending=0')
})

function child(t: Test, ...args: string[]): ChildProcess {
  const process = spawn('/bin/sh', args, { stdio: ['pipe', 'pipe', 'inherit'] })
  t.teardown(() => process.kill('SIGKILL'))
  return process
}

async function output(process: ChildProcess): Promise<string> {
  let text = ''
  process.stdout?.setEncoding('utf8').on('data', chunk => {
    text += chunk
  })
  await once(process, 'close')
  return text
}

t.test('one process at a time has the file', async t => {
  const path = join(t.testdir(), 'ledger.db')
  const ledger = await openLedger({ path, durability: 'process', create: true })
  const busy = { code: 'ledger_unavailable', message: /is open in another process: stop that gateway, or choose another ledger.path/ }
  await t.rejects(openLedger({ path, durability: 'process', create: true }), busy, 'nor twice in one process')
  const refused = JSON.parse(await output(child(t, '-c', `exec "${process.execPath}" "${CHILD}" open "${path}"`)))
  t.match(refused, { error: busy.message })
  await script(t, ledger, 'credit c1 acme 1000 -> credited')
  await ledger.close()
  t.strictSame(JSON.parse(await output(child(t, '-c', `exec "${process.execPath}" "${CHILD}" open "${path}"`))), { opened: true })
})

t.test('kill -9 loses nothing of what was answered', async t => {
  for (const durability of ['power', 'process'] as const) {
    const path = join(t.testdir({ [durability]: {} }), durability, 'ledger.db')
    const killed = child(t, '-c', `exec "${process.execPath}" "${CHILD}" work "${path}" ${durability}`)
    let text = ''
    killed.stdout?.setEncoding('utf8').on('data', chunk => {
      text += chunk
      if (text.length > 30_000) killed.kill('SIGKILL')
    })
    await once(killed, 'close')
    const ledger = await opened(t, path)
    const states = new Map((await ledger.records({})).map(({ id, state }) => [id, state]))
    const answers = text.split('\n').slice(0, -1)
    t.ok(answers.length > 500, `${answers.length} answers`)
    const lost = answers.filter(line => {
      const [verb, id = ''] = line.split(' ')
      return verb === 'held' ? !states.has(id) : states.get(id) !== 'settled'
    })
    t.strictSame(lost, [])
    t.strictSame(await ledger.verify(), [])
    const open = [...states.values()].filter(state => state === 'held').length
    t.equal((await ledger.recover(AT)).length, open)
    t.ok(open > 0 && open <= 65, `${open} open`)
    t.strictSame(await ledger.verify(), [])
  }
})

t.test('a disk that refuses to be written: nothing more is answered, and the file is as it was last', async t => {
  const path = join(t.testdir(), 'ledger.db')
  const text = await output(child(t, '-c', `trap '' XFSZ; ulimit -f 1500; exec "${process.execPath}" "${CHILD}" fill "${path}"`))
  const { admitted, rejections, failure, last } = JSON.parse(text) as {
    admitted: string[]
    rejections: string[]
    failure: string
    last: string
  }
  t.match(failure, /the ledger could not be written: .+ Remove the cause, then restart the gateway\./)
  t.strictSame([...new Set(rejections), last], ['ledger_unavailable', 'ledger_unavailable'])
  const ledger = await opened(t, path)
  const open = new Set((await ledger.open()).map(({ id }) => id))
  t.ok(admitted.length > 50)
  t.strictSame(
    admitted.filter(id => !open.has(id)),
    [],
  )
  t.strictSame(await ledger.verify(), [])
})
