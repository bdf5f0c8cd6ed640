import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { openDatabase } from '../../src/ledger/database.js'
import { place, request, run, withLedger } from '../support/command.js'

const AT = Date.parse('2026-07-01T12:00:00+03:30')

t.test('verify: exit 0 when all agrees, 1 with a list when it does not', async t => {
  const folder = await place(t, async ledger => {
    await ledger.credit({ id: 'x', account: 'acme', amount: 1000n, note: '', at: AT })
    await request(ledger, { at: AT, rial: 100n })
  })
  t.match(await run(folder, 'ledger', 'verify'), { code: 0, out: '', err: /every counter and balance agrees/ })
  const file = join(folder, 'data', 'ledger.db')
  const db = openDatabase(file)
  db.exec("UPDATE counters SET posted = posted - 40 WHERE subject = 'account:acme'")
  db.close()
  const wrong = await run(folder, 'ledger', 'verify')
  t.equal(wrong.code, 1)
  t.match(wrong.out, /^WHAT +EXPECTED +FOUND\nrial of account:acme, all from 0: posted, by the records +100 +60\n$/)
  const { whole, differences } = JSON.parse((await run(folder, 'ledger', 'verify', '--json')).out)
  t.equal(whole, false)
  t.match(differences, [{ expected: '100', found: '60' }])
})

t.test('backup: whole, for its owner alone, restorable, and it overwrites nothing', async t => {
  const folder = await place(t, async ledger => {
    await ledger.credit({ id: 'x', account: 'acme', amount: 1000n, note: '', at: AT })
    await request(ledger, { at: AT, rial: 100n })
  })
  t.match(await run(folder, 'ledger', 'backup', 'copy.db'), { code: 0, out: '', err: /copy\.db: [0-9,]+ bytes, whole and on the disk/ })
  t.equal(statSync(join(folder, 'copy.db')).mode & 0o777, 0o600)
  t.strictSame(
    readdirSync(folder).filter(name => name.includes('copy')),
    ['copy.db'],
    'nothing else is left',
  )
  t.match(await run('/', 'ledger', 'verify', '--ledger', join(folder, 'copy.db')), { code: 0 })
  t.match(await run('/', 'wallet', 'show', '--ledger', join(folder, 'copy.db')), { out: /acme +1,000 +100 +0 +900\n/ })

  writeFileSync(join(folder, 'mine'), 'mine')
  t.match(await run(folder, 'ledger', 'backup', 'mine'), { code: 1, err: /is there already: a backup overwrites nothing/ })
  t.equal(readFileSync(join(folder, 'mine'), 'utf8'), 'mine')
  t.match(await run(folder, 'ledger', 'backup', 'none/copy.db'), { code: 1, err: /its folder does not exist/ })
  t.notOk(existsSync(join(folder, 'none')))
})

t.test('holds that a crash has left', async t => {
  const folder = await place(t, async ledger => {
    await request(ledger, { at: Date.now() - 3_723_000, rial: 1500n, state: 'held' })
    await request(ledger, { at: Date.now() - 1000, rial: 7n, state: 'held', key: 'b', account: 'beta' })
  })
  const { code, out, err } = await run(folder, 'holds')
  t.equal(code, 0)
  t.match(out, /^AGE +ID +KEY +MODEL +SURFACE +TOKENS +RIAL\n1h2m\d+s +req_\w{26} +a +sandbox\/echo +chat +120 +1,500\n/)
  t.match(out, /\n2 open .* 240 +1,507\n$/)
  t.match(err, /No gateway runs on this ledger/)
  t.match(JSON.parse((await run(folder, 'holds', '--json')).out), [{ key: 'a', held_rial: 1500, stream: false }, { account: 'beta' }])
  await withLedger(folder, ledger => ledger.recover(AT))
  t.strictSame(await run(folder, 'holds'), { code: 0, out: '', err: 'No hold is open.\n' })
})

t.test('what is wrong with a call: exit 2', async t => {
  const folder = await place(t, async () => {})
  const rows: [string[], RegExp][] = [
    [['ledger', 'verfy'], /did you mean "verify"/],
    [['ledger', 'backup'], /needs the FILE to write/],
    [['ledger', 'backup', 'a', 'b'], /what is "b" to say/],
    [['holds', 'x'], /what is "x" to say/],
  ]
  for (const [args, words] of rows) t.match(await run(folder, ...args), { code: 2, out: '', err: words }, args.join(' '))
})

t.test('a ledger that another process has open, and nobody answers for', async t => {
  const folder = await place(t, async () => {})
  await withLedger(folder, async () => {
    const { code, err } = await run(folder, 'wallet', 'show')
    t.equal(code, 1)
    t.match(err, /is open in another process, but nobody answers on .*ledger\.db\.sock\./)
  })
})
