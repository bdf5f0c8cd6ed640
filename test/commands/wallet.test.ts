import { join } from 'node:path'
import t from 'tap'
import { startControl } from '../../src/control.js'
import { place, request, run, withLedger, YAML } from '../support/command.js'

const AT = Date.parse('2026-07-01T12:00:00+03:30')

t.test('credit, debit and show, on the file of a stopped gateway', async t => {
  const folder = await place(t)
  const credited = await run(folder, 'wallet', 'credit', 'acme', '1_000_000', '--note', 'July')
  t.strictSame(credited, {
    code: 0,
    out: 'ACCOUNT   CREDITED  SPENT  HELD  AVAILABLE\nacme     1,000,000      0     0  1,000,000\n',
    err: '1,000,000 Rial were credited to acme.\n',
  })
  t.equal((await run(folder, 'wallet', 'debit', 'acme', '250,000')).code, 0)
  const { out } = await run(folder, 'wallet', 'show', 'acme', '--json')
  t.strictSame(JSON.parse(out), {
    account: 'acme',
    credited_rial: 750_000,
    spent_rial: 0,
    balance_rial: 750_000,
    held_rial: 0,
    available_rial: 750_000,
  })
  const all = await run(folder, 'wallet', 'show')
  t.match(all.out, /^acme +750,000 +0 +0 +750,000\nbeta +0 +0 +0 +0$/m, 'accounts of the config show before anything was credited')
  const history = JSON.parse((await run(folder, 'wallet', 'history', 'acme', '--json')).out)
  t.match(history, [{ amount_rial: -250_000 }, { amount_rial: 1_000_000, note: 'July' }])
  t.match((await run(folder, 'wallet', 'history', 'acme')).out, /^TIME +RIAL +NOTE +ID\n.* -250,000 /)
  t.match(await run(folder, 'wallet', 'history', 'beta'), { code: 0, out: '', err: /Nothing was ever credited to beta/ })
})

t.test('thousands of accounts, beside a ledger that is in use and from its file', async t => {
  const names = (letter: string) => Array.from({ length: 1500 }, (_, i) => `${letter}${String(i).padStart(4, '0')}`)
  const config = YAML.replace('accounts: {', `accounts: {${names('x').join(': {}, ')}: {}, `)
  const folder = await place(t, undefined, config)
  const credit = (account: string) => ({ id: account, account, amount: 5n, note: '', at: AT })
  const shown = async () => JSON.parse((await run(folder, 'wallet', 'show', '--json')).out) as { account: string; available_rial: number }[]
  const beside = await withLedger(folder, async ledger => {
    await Promise.all(names('b').map(account => ledger.credit(credit(account))))
    const control = await startControl({ ledger, path: join(folder, 'data/ledger.db'), failed: error => t.fail(`${error}`) })
    t.teardown(() => control?.close())
    const found = await shown()
    await control?.close()
    return found
  })
  t.strictSame(
    beside.map(({ account, available_rial }) => [account, available_rial]),
    [['acme', 0], ...names('b').map(name => [name, 5]), ['beta', 0], ...names('x').map(name => [name, 0])],
  )
  t.strictSame(await shown(), beside)
})

t.test('an idempotency key counts once, and belongs to one amount and account', async t => {
  const folder = await place(t)
  const credit = (account: string, amount: string) =>
    run(folder, 'wallet', 'credit', account, amount, '--idempotency-key', 'invoice-1', '--json')
  t.match(JSON.parse((await credit('acme', '500')).out), { outcome: 'credited', id: 'cli:invoice-1', wallet: { credited_rial: 500 } })
  const again = await credit('acme', '500')
  t.equal(again.code, 0)
  t.match(JSON.parse(again.out), { outcome: 'already_credited', wallet: { credited_rial: 500 } })
  t.match(again.err, /^Nothing changed: with this key, 500 Rial were credited to acme at 20/)
  for (const [account, amount] of [
    ['acme', '501'],
    ['beta', '500'],
  ] as const) {
    const other = await credit(account, amount)
    t.equal(other.code, 1)
    t.match(JSON.parse(other.out), { outcome: 'conflict', amount_rial: 500 })
    t.match(other.err, /the key "invoice-1" belongs to another one/)
  }
  const debit = await run(folder, 'wallet', 'debit', 'acme', '500', '--idempotency-key', 'invoice-1')
  t.equal(debit.code, 1, 'nor is a debit the credit')
  t.match((await run(folder, 'wallet', 'show', 'beta')).out, / 0 +0 +0 +0\n/)
})

t.test('a key of a person is never the id of an opening balance', async t => {
  const folder = await place(t, ledger => ledger.credit({ id: 'opening:acme', account: 'acme', amount: 7n, note: '', at: AT }))
  t.match(await run(folder, 'wallet', 'credit', 'acme', '7', '--idempotency-key', 'opening:acme'), {
    code: 0,
    err: /^7 Rial were credited/,
  })
})

t.test('no more is taken out than is left, what requests hold included, unless it is allowed', async t => {
  const folder = await place(t, async ledger => {
    await ledger.credit({ id: 'x', account: 'acme', amount: 1000n, note: '', at: AT })
    await request(ledger, { at: AT, rial: 100n })
    await request(ledger, { at: AT, rial: 200n, state: 'held' })
  })
  const short = await run(folder, 'wallet', 'debit', 'acme', '701')
  t.strictSame([short.code, short.out], [1, ''])
  t.match(short.err, /acme has 700 Rial available, 701 were to be taken out\n\(credited 1,000, spent 100, held by requests under way 200\)/)
  t.match(await run(folder, 'wallet', 'debit', 'acme', '700'), { code: 0, out: /acme +300 +100 +200 +0\n/ })
  t.match(await run(folder, 'wallet', 'debit', 'acme', '1', '--allow-negative'), { code: 0, out: /acme +299 +100 +200 +-1\n/ })
  const again = await run(folder, 'wallet', 'debit', 'acme', '5', '--idempotency-key', 'k', '--allow-negative')
  t.equal(again.code, 0)
  t.match(await run(folder, 'wallet', 'debit', 'acme', '5', '--idempotency-key', 'k'), { code: 0, err: /^Nothing changed: with this key/ })
  t.strictSame(await withLedger(folder, ledger => ledger.verify()), [])
})

t.test('what is wrong with a call is said, and changes nothing: exit 2', async t => {
  const folder = await place(t, async () => {})
  const rows: [string[], RegExp][] = [
    [['wallet'], /say what to do: show, history, credit, debit/],
    [['wallet', 'shwo'], /there is no "shwo" here \(did you mean "show"\?\)/],
    [['walet'], /there is no verb "walet" \(did you mean "wallet"\?\)/],
    [['wallet', 'credit'], /needs an ACCOUNT and an AMOUNT/],
    [['wallet', 'history'], /needs an ACCOUNT\n/],
    [['wallet', 'credit', 'acme'], /needs an AMOUNT/],
    [['wallet', 'credit', 'acme', '5', '6'], /what is "6" to say/],
    [['wallet', 'credit', 'acm', '5'], /there is no account "acm" in .* \(did you mean "acme"\?\)/],
    [['wallet', 'show', 'acm'], /did you mean "acme"/],
    [['wallet', 'credit', 'acme', '1,00'], /"1,00" is no amount/],
    [['wallet', 'credit', 'acme', '0'], /the amount is 0/],
    [['wallet', 'credit', 'acme', '-5'], /-5 is no amount: write whole Rial above 0; wallet debit takes money out/],
    [['wallet', 'credit', 'acme', '1.5'], /is no amount/],
    [['wallet', 'credit', 'acme', '9007199254740992'], /more than a wallet can hold/],
    [['wallet', 'credit', 'acme', '5', '--not', 'x'], /there is no option --not \(did you mean "--note"\?\)/],
    [['wallet', 'credit', 'acme', '5', '--note'], /--note needs a value/],
    [['wallet', 'credit', 'acme', '5', '--note', '--json'], /--note needs a value/],
    [['wallet', 'credit', 'acme', '5', '--note', 'a', '--note', 'b'], /--note stands there twice/],
    [['wallet', 'credit', 'acme', '5', '--json=yes'], /--json takes no value/],
    [['wallet', 'credit', 'acme', '5', '--allow-negative'], /--allow-negative has no meaning for wallet credit/],
    [['wallet', 'show', '--note', 'x'], /--note has no meaning for wallet show/],
    [['wallet', 'show', '-c', 'none.yaml'], /none\.yaml:1:1: cannot read it/],
    [['wallet', 'show', '-c', 'gateway.yaml', '--ledger', 'data/ledger.db'], /both name a ledger/],
  ]
  for (const [args, words] of rows) t.match(await run(folder, ...args), { code: 2, out: '', err: words }, args.join(' '))
  t.strictSame(await withLedger(folder, ledger => ledger.accounts()), [])
})

t.test('beyond what a wallet can hold: exit 1, and nothing changes', async t => {
  const folder = await place(t)
  t.equal((await run(folder, 'wallet', 'credit', 'acme', '9007199254740991')).code, 0)
  t.match(await run(folder, 'wallet', 'credit', 'acme', '1'), { code: 1, out: '', err: /beyond 9007199254740991/ })
})

t.test('without a ledger', async t => {
  const folder = await place(t)
  t.match(await run(folder, 'wallet', 'show'), { code: 1, err: /there is no ledger at .*ledger\.db yet: the gateway makes it/ })
  t.match(await run(folder, 'wallet', 'show', '--ledger', 'x.db'), { code: 1, err: /there is no ledger at .*x\.db\.\n/ })
  const memory = await place(
    { testdir: () => `${folder}/memory` },
    undefined,
    'ledger: {path: ":memory:"}\nproviders: {sandbox: {kind: sandbox}}\nmodels: {sandbox/echo: {price: free}}\n',
  )
  t.match(await run(memory, 'wallet', 'show'), { code: 1, err: /this ledger is in memory/ })
})

t.test('a ledger by itself, without a config', async t => {
  const folder = await place(t, ledger => ledger.credit({ id: 'x', account: 'gone', amount: 5n, note: '', at: AT }))
  t.match(await run('/', 'wallet', 'credit', 'gone', '5', '--ledger', `${folder}/data/ledger.db`), { code: 0, out: /gone +10 / })
  t.match(await run('/', 'wallet', 'credit', 'acme', '5', '--ledger', `${folder}/data/ledger.db`), {
    code: 2,
    err: /no account "acme" in this ledger/,
  })
})
