import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { openLedger } from '../../src/ledger/sqlite.js'
import { script } from './script.js'

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

t.test('a log that is gone after a crash: nothing can know what it held, but the file is whole', async t => {
  const path = await made(t)
  const ledger = await openLedger({ path, durability: 'power', create: false })
  await script(t, ledger, 'hold r2 acme 300 -> admitted')
  const copy = `${path}.crashed`
  spawnSync('cp', [path, copy])
  await ledger.close()
  const after = await openLedger({ path: copy, durability: 'power', create: false })
  t.strictSame(await after.wallet('acme'), { account: 'acme', credited: 1000n, posted: 450n, pending: 0n })
  t.strictSame(await after.verify(), [])
  await after.close()
})

t.test('a log of which the end is missing or damaged: what is left of it is a whole state that there was', async t => {
  const path = await made(t)
  const ledger = await openLedger({ path, durability: 'power', create: false })
  const states = new Set<string>()
  const seen = async (of: typeof ledger) => {
    const { credited, posted, pending } = await of.wallet('acme')
    return [credited, posted, pending].join()
  }
  states.add(await seen(ledger))
  for (const line of [
    'hold r2 acme 100 -> admitted',
    'settle r2 70 -> ended',
    'hold r3 acme 200 -> admitted',
    'void r3 -> ended',
    'credit c2 acme 50 -> credited',
  ]) {
    await script(t, ledger, line)
    states.add(await seen(ledger))
  }
  const crashed = path.replace('ledger.db', 'crashed.db')
  spawnSync('cp', [path, crashed])
  spawnSync('cp', [`${path}-wal`, `${crashed}-wal`])
  await ledger.close()
  const file = readFileSync(crashed)
  const log = readFileSync(`${crashed}-wal`)
  let run = 0
  await fc.assert(
    fc.asyncProperty(fc.nat(log.length - 1), fc.option(fc.integer({ min: 1, max: 255 })), async (at, flip) => {
      const one = crashed.replace('crashed.db', `crashed-${++run}.db`)
      const damaged = flip === null ? log.subarray(0, at) : Buffer.from(log)
      if (flip !== null) damaged[at] = (log[at] as number) ^ flip
      writeFileSync(one, file)
      writeFileSync(`${one}-wal`, damaged)
      const after = await openLedger({ path: one, durability: 'process', create: false })
      const state = await seen(after)
      const differences = await after.verify()
      await after.close()
      return states.has(state) && differences.length === 0
    }),
    { numRuns: 60 },
  )
})

t.test('a file with damaged bytes: refused, failed, told by verify, or the very same balance', async t => {
  const path = await made(t)
  const file = readFileSync(path)
  let run = 0
  const came: Record<string, number> = {}
  await fc.assert(
    fc.asyncProperty(fc.nat(file.length - 1), fc.integer({ min: 1, max: 255 }), async (at, flip) => {
      const one = path.replace('ledger.db', `damaged-${++run}.db`)
      const damaged = Buffer.from(file)
      damaged[at] = (file[at] as number) ^ flip
      writeFileSync(one, damaged)
      const what = await outcome(one)
      came[what] = (came[what] ?? 0) + 1
      return what !== 'another balance, and nothing said' && !what.startsWith('not refused in words')
    }),
    { numRuns: 150 },
  )
  t.comment(JSON.stringify(came))
  t.ok((came['the same balance'] ?? 0) > 0 && existsSync(path))
})

async function outcome(path: string): Promise<string> {
  let ledger: Awaited<ReturnType<typeof openLedger>>
  try {
    ledger = await openLedger({ path, durability: 'process', create: false })
  } catch (error) {
    return (error as { code?: string }).code === 'ledger_unavailable' ? 'refused' : `not refused in words: ${String(error)}`
  }
  try {
    const { credited, posted, pending } = await ledger.wallet('acme')
    if (credited === 1000n && posted === 450n && pending === 0n) return 'the same balance'
    return (await ledger.verify()).length > 0 ? 'told by verify' : 'another balance, and nothing said'
  } catch {
    return ledger.failure === null ? 'rejected' : 'failed'
  } finally {
    await ledger.close().catch(() => {})
  }
}
