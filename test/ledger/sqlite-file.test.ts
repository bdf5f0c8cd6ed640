import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { openDatabase } from '../../src/ledger/database.js'
import { openFile } from '../../src/ledger/open-file.js'
import { openLedger, type SqliteLedger } from '../../src/ledger/sqlite.js'
import { script } from './script.js'

const CHILD = fileURLToPath(new URL('child.js', import.meta.url))

function refused(t: Test, path: string, message: RegExp, create = true): Promise<unknown> {
  return t.rejects(openLedger({ path, durability: 'power', create }), { code: 'ledger_unavailable', message }, String(message))
}

async function opened(t: Test, path: string): Promise<SqliteLedger> {
  const ledger = await openLedger({ path, durability: 'power', create: false })
  t.teardown(() => ledger.close())
  return ledger
}

async function made(t: Test): Promise<string> {
  const path = join(t.testdir(), 'ledger.db')
  const ledger = await openLedger({ path, durability: 'power', create: true })
  await script(t, ledger, 'credit c1 acme 1000 -> credited\nhold r1 acme 600 tokens/a/day@0=5 -> admitted')
  await ledger.close()
  return path
}

t.test('a new file and its folder are for their owner alone, and so is its log', async t => {
  const folder = join(t.testdir(), 'a', 'b')
  const path = join(folder, 'ledger.db')
  const ledger = await openLedger({ path, durability: 'power', create: true })
  const mode = (path: string) => (statSync(path).mode & 0o777).toString(8)
  t.strictSame([mode(folder), mode(path), mode(`${path}-wal`)], ['700', '600', '600'])
  t.notOk(existsSync(`${path}-shm`), 'nothing is shared with other processes')
  await ledger.close()
  t.notOk(existsSync(`${path}-wal`), 'after closing there is the one file')
})

t.test('what SQLite is set to, also in a file that is there already', async t => {
  const path = await made(t)
  const file = await openFile({ path, durability: 'power', create: false })
  t.teardown(() => file.close(true))
  const settings = [
    'locking_mode',
    'journal_mode',
    'synchronous',
    'wal_autocheckpoint',
    'page_size',
    'trusted_schema',
    'application_id',
    'user_version',
  ]
  t.strictSame(
    settings.map(name => file.db.pragma(name, { simple: true })),
    ['exclusive', 'wal', 0, 0, 2048, 0, 0x4d475755, 4],
  )
})

t.test('a file that is missing is only made when that is wanted', async t => {
  const path = join(t.testdir(), 'ledger.db')
  await refused(
    t,
    path,
    /ledger\.db does not exist and ledger\.create is false: bring back its volume or a backup, or set ledger\.create to true/,
    false,
  )
  t.notOk(existsSync(path))
  writeFileSync(path, '')
  await refused(t, path, /ledger\.db is empty and ledger\.create is false/, false)
  writeFileSync(`${path}-wal`, 'the log of a file that was lost')
  await refused(t, path, /ledger\.db is empty, but its log ledger\.db-wal is there: bring the file back, or move the log away/)
})

t.test('a ledger of a newer gateway is refused, and not touched', async t => {
  const path = await made(t)
  const db = openDatabase(path)
  db.pragma('user_version = 5')
  db.close()
  const before = readFileSync(path)
  await refused(t, path, /was written by a newer gateway \(its schema is 5, this gateway knows 4\): run that version, or restore a backup/)
  t.strictSame(readFileSync(path), before)
})

const TAUGHT = { model: 'openai/gpt-4o-mini', basis: '1', state: '[[1,2]]' }
for (const { version, acme = [1000n, 450n], beta = 0n, kept = [TAUGHT], summed = null } of [
  { version: 1, kept: [] },
  { version: 2 },
  { version: 3, acme: [900n, 500n], beta: 7n, summed: 86_400_000 },
] as const) {
  t.test(`a ledger of version ${version} is made one of this version, with all that is in it`, async t => {
    const path = join(t.testdir(), 'ledger.db')
    const db = openDatabase(path)
    db.pragma('page_size = 2048')
    db.exec(readFileSync(new URL(`../../../test/fixtures/ledger/version-${version}.sql`, import.meta.url), 'utf8'))
    db.close()
    const ledger = await openLedger({ path, durability: 'power', create: false })
    await script(t, ledger, 'open -> r2\nverify -> same')
    const [credited, posted] = acme
    t.strictSame(await ledger.wallet('acme'), { account: 'acme', credited, posted, pending: 100n })
    t.strictSame(await ledger.wallet('beta'), { account: 'beta', credited: beta, posted: 0n, pending: 0n })
    t.strictSame(await ledger.calibrations(), kept)
    t.equal(await ledger.summedBefore(), summed)
    await ledger.keep([TAUGHT])
    await script(t, ledger, 'credit c1 acme 5 -> already_credited\ncredit c9 beta 5 -> credited')
    await ledger.close()
    const again = await openLedger({ path, durability: 'power', create: false })
    t.equal((await again.wallet('beta')).credited, beta + 5n)
    await script(t, again, 'verify -> same')
    await again.close()
    const made = (path: string) => {
      const db = openDatabase(path, { readonly: true })
      t.teardown(() => db.close())
      return [db.pragma('user_version', { simple: true }), db.prepare('SELECT name, sql FROM sqlite_schema ORDER BY name').all()]
    }
    const fresh = join(dirname(path), 'fresh.db')
    await (await openLedger({ path: fresh, durability: 'power', create: true })).close()
    t.strictSame(made(path), made(fresh), 'the tables are those of a new file')
  })
}

t.test('what models have taught is kept, the last of each model and basis', async t => {
  const path = await made(t)
  const ledger = await openLedger({ path, durability: 'power', create: false })
  const kept = (model: string, basis: string, state: string) => ({ model, basis, state })
  await ledger.keep([])
  await ledger.keep([kept('b/m', '1', '[]'), kept('a/m', '1', '[[1,1]]')])
  await ledger.keep([kept('a/m', '2', '[]'), kept('a/m', '1', '[[1,2]]')])
  await ledger.close()
  t.strictSame(await (await opened(t, path)).calibrations(), [kept('a/m', '1', '[[1,2]]'), kept('a/m', '2', '[]'), kept('b/m', '1', '[]')])
})

t.test('an SQLite file of another program is refused, and not touched', async t => {
  const path = join(t.testdir(), 'other.db')
  const db = openDatabase(path)
  db.exec('CREATE TABLE notes (text)')
  db.close()
  const before = readFileSync(path)
  await refused(t, path, /is an SQLite file of another program: choose another ledger\.path/)
  t.strictSame(readFileSync(path), before)
})

t.test('what is no SQLite file is refused, and not touched', async t => {
  const path = join(t.testdir({ 'ledger.db': 'gateway.yaml '.repeat(1000) }), 'ledger.db')
  await refused(t, path, /is no ledger \(not an SQLite file\): choose another ledger\.path, or move the file away/)
  t.equal(readFileSync(path, 'utf8'), 'gateway.yaml '.repeat(1000))
})

t.test('a file that was cut off or overwritten is refused', async t => {
  const path = await made(t)
  truncateSync(path, 3 * 2048)
  await refused(t, path, /is damaged: restore a backup/)
})

t.test('a link to a file that lies elsewhere', async t => {
  const path = await made(t)
  const link = join(t.testdir({ elsewhere: t.fixture('symlink', path), 'ledger.db': readFileSync(path) }), 'elsewhere')
  await script(t, await opened(t, link), 'balance acme -> posted=0 pending=600')
  await refused(t, path, /is open in another process/)
})

t.test('a path that can be no file', async t => {
  const folder = t.testdir({ file: 'text', folder: {} })
  await refused(t, join(folder, 'folder'), /folder is no file: name a file in ledger\.path/)
  await refused(t, join(folder, 'file', 'ledger.db'), /a part of that path is not a folder: choose another ledger\.path/)
})

t.test(
  'a folder or a file that may not be written',
  { skip: process.getuid?.() !== 0 && 'only root can become somebody else' },
  async t => {
    const folder = mkdtempSync(join(tmpdir(), 'ledger-'))
    t.teardown(() => spawnSync('rm', ['-r', folder]))
    chmodSync(folder, 0o755)
    const open = (path: string) => JSON.parse(String(spawnSync(process.execPath, [CHILD, 'open-as-nobody', path]).stdout)).error
    const words = /cannot be written by this user: give it write access to the file and its folder, or choose another ledger\.path/
    t.match(open(join(folder, 'ledger.db')), words)
    const path = join(folder, 'own', 'ledger.db')
    mkdirSync(join(folder, 'own'))
    const ledger = await openLedger({ path, durability: 'power', create: true })
    await ledger.close()
    chownSync(join(folder, 'own'), 65534, 65534)
    chmodSync(path, 0o444)
    t.match(open(path), words)
  },
)

t.test('a process that exits without closing leaves a whole file', async t => {
  const path = await made(t)
  const text = `
    const { openLedger } = await import(${JSON.stringify(new URL('../../src/ledger/sqlite.js', import.meta.url).href)})
    const ledger = await openLedger({ path: ${JSON.stringify(path)}, durability: 'power', create: false })
    await ledger.credit({ id: 'c2', account: 'acme', amount: 5n, note: '', at: 1 })
    process.exit(0)`
  t.equal(spawnSync(process.execPath, ['--input-type=module', '-e', text]).status, 0)
  const ledger = await openLedger({ path, durability: 'power', create: false })
  t.equal((await ledger.wallet('acme')).credited, 1005n)
  await ledger.close()
})
