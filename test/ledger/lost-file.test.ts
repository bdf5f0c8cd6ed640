import { spawnSync } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { openLedger, type SqliteLedger } from '../../src/ledger/sqlite.js'
import { AT, script } from './script.js'

/*
 * Files that somebody takes away, or that come back other than they were: refused, with what to do, or exactly as they were; never another balance.
 */

const REMOVED = /was removed while the gateway ran: bring back the right file.+restart the gateway/
const REPLACED = /was replaced while the gateway ran: bring back the right file.+restart the gateway/

async function made(t: Test, name = 'ledger'): Promise<string> {
  const folder = join(t.testdir(), name)
  mkdirSync(folder)
  const path = join(folder, 'ledger.db')
  const ledger = await openLedger({ path, durability: 'power', create: true })
  await script(t, ledger, 'credit c1 acme 1000 -> credited\nhold r1 acme 600 -> admitted\nsettle r1 450 -> ended')
  await ledger.close()
  return path
}

for (const suffix of ['', '-wal']) {
  t.test(`ledger.db${suffix} is removed or replaced while the gateway runs: it says so, and admits nothing more`, async t => {
    for (const [name, take, words] of [
      ['removed', (path: string) => rmSync(path), REMOVED],
      ['moved away', (path: string) => renameSync(path, `${path}.old`), REMOVED],
      [
        'replaced',
        (path: string) => {
          copyFileSync(path, `${path}.copy`)
          renameSync(`${path}.copy`, path)
        },
        REPLACED,
      ],
    ] as const) {
      const path = await made(t, name.replace(' ', '-'))
      const ledger = await openLedger({ path, durability: 'power', create: false })
      await script(t, ledger, 'hold r2 acme 100 -> admitted')
      t.equal(ledger.failure, null)
      take(path + suffix)
      t.match(ledger.failure, words, name)
      t.match(ledger.failure, new RegExp(`${path}${suffix} `))
      await t.rejects(ledger.wallet('acme'), { code: 'ledger_unavailable' })
      await ledger.close()
    }
  })
}

t.test('without anybody who asks for its readiness, a ledger notices at its next commit, and writes nothing', async t => {
  const path = await made(t)
  const ledger = await openLedger({ path, durability: 'process', create: false })
  await script(t, ledger, 'hold r2 acme 100 -> admitted')
  rmSync(path)
  await new Promise(resolve => setTimeout(resolve, 120))
  await t.rejects(ledger.credit({ id: 'c2', account: 'acme', amount: 1n, note: '', at: 1 }), { code: 'ledger_unavailable' })
  t.match(ledger.failure, REMOVED)
  await ledger.close()
})

/** The files as a kill leaves them at this moment, in a folder of their own. */
function crashed(path: string, name: string): string {
  const folder = join(dirname(path), name)
  mkdirSync(folder)
  const copy = join(folder, 'ledger.db')
  for (const suffix of ['', '-wal', '-mark']) if (existsSync(path + suffix)) copyFileSync(path + suffix, copy + suffix)
  return copy
}

const opening = (path: string, acceptLoss = false) => openLedger({ path, durability: 'power', create: false, acceptLoss })

/** Refused; and nothing of it is changed, so that the log can still be brought back. */
async function refused(t: Test, path: string, words: RegExp, name: string): Promise<void> {
  const files = () => [path, `${path}-wal`, `${path}-mark`].map(file => (existsSync(file) ? readFileSync(file) : null))
  const before = files()
  await t.rejects(opening(path), { code: 'ledger_unavailable', message: words }, name)
  t.strictSame(files(), before, `${name}: nothing was touched`)
}

const REMEDY =
  /, or restore a backup\. What stood in that log alone is lost if you go on without it, which takes: model-gateway ledger accept-loss\.$/

t.test('a log that is gone, replaced, cut off or damaged after a crash: the start is refused, and goes on once it is back', async t => {
  const path = await made(t)
  const ledger = await opening(path)
  await script(t, ledger, 'hold r2 acme 300 -> admitted')
  const earlier = crashed(path, 'earlier')
  await ledger.verify()
  await ledger.close()
  const again = await opening(path)
  await script(t, again, 'hold r3 acme 200 -> admitted\nsettle r3 150 -> ended')
  const other = join(dirname(path), 'other.db')
  const another = await openLedger({ path: other, durability: 'power', create: true })
  await script(t, another, 'credit c1 acme 5 -> credited')
  for (const [name, take, words] of [
    [
      'missing',
      (log: string) => rmSync(log),
      /ledger\.db was in use when its gateway ended, and its log ledger\.db-wal is missing or empty: bring the right ledger\.db-wal back/,
    ],
    ['empty', (log: string) => writeFileSync(log, ''), /its log ledger\.db-wal is missing or empty/],
    ['no log', (log: string) => writeFileSync(log, 'x'.repeat(9000)), /its log ledger\.db-wal is missing or empty/],
    ['an earlier log', (log: string) => copyFileSync(`${earlier}-wal`, log), /ledger\.db-wal is not the log that it was written with/],
    [
      'the log of another ledger',
      (log: string) => copyFileSync(`${other}-wal`, log),
      /ledger\.db-wal is not the log that it was written with/,
    ],
    ['cut off', (log: string) => truncateSync(log, statSync(log).size - 1), /is cut off or damaged: \d+ of \d+ bytes are whole/],
    ['one byte', (log: string) => flip(log, statSync(log).size - 100), /is cut off or damaged: \d+ of \d+ bytes are whole/],
  ] as const) {
    const copy = crashed(path, name.replaceAll(' ', '-'))
    const log = readFileSync(`${copy}-wal`)
    take(`${copy}-wal`)
    await refused(t, copy, words, name)
    await refused(t, copy, REMEDY, name)
    writeFileSync(`${copy}-wal`, log)
    const back = await opening(copy)
    await script(t, back, 'balance acme -> posted=600 pending=300\nverify -> same')
    await back.close()
  }
  await again.close()
  await another.close()
})

t.test('a log that is gone together with the mark beside it', async t => {
  const path = await made(t)
  const ledger = await opening(path)
  await script(t, ledger, 'hold r2 acme 300 -> admitted')
  const copy = crashed(path, 'crashed')
  await ledger.close()
  rmSync(`${copy}-wal`)
  rmSync(`${copy}-mark`)
  await refused(t, copy, /its log ledger\.db-wal is missing or empty/, 'missing')
})

t.test('what was in use is taken as it is, whatever ended it', async t => {
  const path = await made(t)
  let ledger = await opening(path)
  const counted = async (name: string, copy: string, expected: string) => {
    const found = await opening(copy).catch(error => error as Error)
    if (found instanceof Error) throw new Error(`${name}: ${found.message}`)
    await script(t, found, expected)
    await found.close()
  }
  await counted('just opened', crashed(path, '1'), 'balance acme -> posted=450 pending=0')
  await script(t, ledger, 'hold r2 acme 300 -> admitted')
  const before = crashed(path, '2')
  await counted('killed', crashed(path, '3'), 'balance acme -> posted=450 pending=300')
  const backup = join(dirname(path), 'backup.db')
  await ledger.backup(backup)
  await counted('just checkpointed', crashed(path, '4'), 'balance acme -> posted=450 pending=300')
  await counted('a backup', crashed(backup, '5'), 'balance acme -> posted=450 pending=300')
  await script(t, ledger, 'settle r2 100 -> ended')
  const after = crashed(path, '6')
  rmSync(`${after}-wal`)
  copyFileSync(backup, after)
  await counted('a backup in its place, and the mark of the crash beside it', after, 'balance acme -> posted=450 pending=300')
  const unmarked = crashed(path, '7')
  rmSync(`${unmarked}-mark`)
  await counted('the file and its log, copied without the mark', unmarked, 'balance acme -> posted=550 pending=0')
  await ledger.close()
  t.strictSame(
    readdirSync(dirname(path)).filter(name => name.startsWith('ledger.db')),
    ['ledger.db'],
    'a clean stop leaves one file',
  )
  copyFileSync(path, `${path}.copy`)
  await counted('a copy of a stopped ledger', `${path}.copy`, 'balance acme -> posted=550 pending=0')
  copyFileSync(path, before)
  await refused(
    t,
    before,
    /was closed by its gateway or is a backup, but the log ledger\.db-wal beside it is of a ledger that was in use: move ledger\.db-wal away/,
    'a log that was left beside it',
  )
  rmSync(`${before}-wal`)
  await counted('that log moved away', before, 'balance acme -> posted=550 pending=0')
  ledger = await opening(path)
  await script(t, ledger, 'verify -> same')
  await ledger.close()
})

t.test('a process that exits without closing leaves a file that is whole by itself', async t => {
  const path = await made(t)
  const text = `
    const { openLedger } = await import(${JSON.stringify(new URL('../../src/ledger/sqlite.js', import.meta.url).href)})
    const ledger = await openLedger({ path: ${JSON.stringify(path)}, durability: 'power', create: false })
    await ledger.credit({ id: 'c2', account: 'acme', amount: 5n, note: '', at: 1 })
    process.exit(0)`
  t.equal(spawnSync(process.execPath, ['--input-type=module', '-e', text]).status, 0)
  t.strictSame(readdirSync(dirname(path)), ['ledger.db'])
  const ledger = await opening(path)
  t.equal((await ledger.wallet('acme')).credited, 1005n)
  await ledger.close()
})

t.test('the loss of a log is accepted: what the file itself says counts, and what was there is put aside', async t => {
  const path = await made(t)
  const ledger = await opening(path)
  await script(t, ledger, 'hold r2 acme 300 -> admitted\nhold r3 acme 50 -> admitted')
  const missing = crashed(path, 'missing')
  rmSync(`${missing}-wal`)
  const foreign = crashed(path, 'foreign')
  const cut = crashed(path, 'cut')
  truncateSync(`${cut}-wal`, statSync(`${cut}-wal`).size - 2048)
  await ledger.close()
  const next = await opening(path)
  await script(t, next, 'settle r2 100 -> ended')
  copyFileSync(`${path}-wal`, `${foreign}-wal`)
  await next.close()
  for (const [copy, balance, files] of [
    [missing, 'posted=450 pending=0', ['ledger.db']],
    [foreign, 'posted=450 pending=0', ['ledger.db', 'ledger.db-wal.aside']],
    [cut, 'posted=450 pending=300', ['ledger.db', 'ledger.db-wal.aside']],
  ] as const) {
    await t.rejects(opening(copy), { code: 'ledger_unavailable' })
    const accepted = await opening(copy, true)
    await script(t, accepted, `balance acme -> ${balance}\nverify -> same`)
    await accepted.close()
    t.strictSame(readdirSync(dirname(copy)), files)
    await (await opening(copy)).close()
  }
})

t.test('a file that is no whole database without its log is not gone on with', async t => {
  const path = await made(t)
  const ledger = await opening(path)
  await script(t, ledger, 'hold r2 acme 300 -> admitted')
  const copy = crashed(path, 'crashed')
  await ledger.close()
  rmSync(`${copy}-wal`)
  const torn = readFileSync(copy)
  torn.fill(0, 2 * 2048, 6 * 2048)
  writeFileSync(copy, torn)
  await t.rejects(opening(copy, true), { message: /(is damaged|is no whole database without that log .*): restore a backup/ })
  await t.rejects(opening(copy), { message: /is missing or empty/ })
})

for (const durability of ['power', 'process'] as const) {
  t.test(`${durability}: of a log that is cut off or damaged anywhere, a start takes what was promised to be kept, or nothing`, async t => {
    const path = await made(t)
    const ledger = await openLedger({ path, durability, create: false })
    const states: string[] = []
    const seen = async (of: typeof ledger) => {
      const { credited, posted, pending } = await of.wallet('acme')
      return [credited, posted, pending].join()
    }
    for (const line of [
      'hold r2 acme 100 -> admitted',
      'settle r2 70 -> ended',
      'hold r3 acme 200 -> admitted',
      'void r3 -> ended',
      'credit c2 acme 50 -> credited',
    ]) {
      await script(t, ledger, line)
      states.push(await seen(ledger))
    }
    // With power, all of it was synced; else no more than its beginning.
    const kept = durability === 'power' ? states.slice(-1) : states
    const crash = crashed(path, 'crashed')
    await ledger.close()
    const log = readFileSync(`${crash}-wal`)
    let run = 0
    const came = { refused: 0, taken: 0 }
    await fc.assert(
      fc.asyncProperty(fc.nat(log.length), fc.option(fc.integer({ min: 1, max: 255 })), async (at, flip) => {
        const one = crashed(crash, String(++run))
        const damaged = flip === null ? log.subarray(0, at) : Buffer.from(log)
        if (flip !== null && at < log.length) damaged[at] = (log[at] as number) ^ flip
        writeFileSync(`${one}-wal`, damaged)
        try {
          const after = await openLedger({ path: one, durability, create: false })
          const state = await seen(after)
          const differences = await after.verify()
          await after.close()
          came.taken++
          return kept.includes(state) && differences.length === 0 && (durability === 'process' || damaged.equals(log))
        } catch (error) {
          came.refused++
          return (error as { code?: string }).code === 'ledger_unavailable' && !damaged.equals(log)
        }
      }),
      { numRuns: 40, examples: [[log.length, null]] },
    )
    t.comment(JSON.stringify(came))
    t.ok(came.refused > 0 && came.taken > 0)
  })
}

function flip(path: string, at: number): void {
  const bytes = readFileSync(path)
  bytes[at] = (bytes[at] as number) ^ 1
  writeFileSync(path, bytes)
}

/** How many bytes are damaged, one file for each; more of them by hand. */
const DAMAGES = Number(process.env.DAMAGES ?? 150)

t.test('a file with a damaged byte, wherever it is: refused, failed, told by verify, or all balances and credits as they were', async t => {
  const path = await made(t)
  const ledger = await opening(path)
  // More than a page of them, so that there are pages above others.
  for (let i = 0; i < 60; i++) {
    const [account, amount] = [`team-${i % 7}`, BigInt(i % 5 === 4 ? -37 * i : 5000 + 37 * i)]
    await ledger.credit({ id: `cli:${i}`, account, amount, note: i % 3 === 0 ? '' : `invoice ${i}`, at: i })
  }
  await script(
    t,
    ledger,
    `hold r2 team-1 300 -> admitted
    settle r2 120 tokens=20 -> ended
    hold r3 team-2 100 -> admitted
    void r3 -> ended
    hold r4 team-3 500 requests/a/minute@0=1:counted -> admitted`,
  )
  await ledger.close()
  const file = readFileSync(path)
  const again = await opening(path)
  const right = await told(again)
  await again.close()
  const came: Record<string, number> = {}
  await fc.assert(
    fc.asyncProperty(fc.nat(file.length - 1), fc.integer({ min: 1, max: 255 }), async (at, flip) => {
      const damaged = Buffer.from(file)
      damaged[at] = (file[at] as number) ^ flip
      const what = await outcome(path.replace('ledger.db', 'damaged.db'), damaged, right)
      came[what] = (came[what] ?? 0) + 1
      if (!(what in OUTCOMES)) throw new Error(what)
    }),
    // Of the ways that it can go, what is written of a credit is hit too seldom to leave it to chance.
    { numRuns: DAMAGES, examples: [[file.indexOf('invoice 1'), 1]] },
  )
  t.comment(JSON.stringify(came))
  t.strictSame(Object.keys(came).sort(), Object.keys(OUTCOMES).sort())
})

/** What may come of damaged bytes. */
const OUTCOMES = { refused: 0, 'told by verify': 0, 'as it was': 0 } as const

/** All that a ledger says of balances and credits once it has been started: open holds are ended before anything is admitted. */
async function told(ledger: SqliteLedger): Promise<string> {
  await ledger.recover(AT)
  const found: unknown[] = []
  for (const account of await ledger.accounts()) {
    found.push(await ledger.wallet(account), await ledger.credits(account, 1000))
  }
  return JSON.stringify(found, (_, value) => (typeof value === 'bigint' ? String(value) : value))
}

async function outcome(path: string, file: Buffer, right: string): Promise<string> {
  for (const suffix of ['-wal', '-mark']) rmSync(path + suffix, { force: true })
  writeFileSync(path, file)
  let ledger: SqliteLedger
  try {
    ledger = await openLedger({ path, durability: 'process', create: false })
  } catch (error) {
    return (error as { code?: string }).code === 'ledger_unavailable' ? 'refused' : `not refused in words: ${String(error)}`
  }
  try {
    const found = await told(ledger)
    if ((await ledger.verify()).length > 0) return 'told by verify'
    if (found !== right) return `another balance, and nothing said: ${found}, not ${right}`
    for (let i = 0; i < 60; i++) {
      if ((await ledger.credit({ id: `cli:${i}`, account: 'team-0', amount: 1n, note: '', at: 0 })) !== 'already_credited')
        return 'credited twice'
    }
    return 'as it was'
  } catch (error) {
    // A page that can not be read: nothing is admitted any more.
    if (ledger.failure !== null) return 'refused'
    return /SQLITE_CORRUPT|damaged/.test(`${(error as { code?: string }).code} ${error}`) ? 'told by verify' : `rejected: ${String(error)}`
  } finally {
    await ledger.close().catch(() => {})
  }
}
