import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { DEMO_SECRET, sha256Of } from '../../src/config/keys.js'
import { place, run, SECRET } from '../support/command.js'

t.test('a new key: 256 random bits, its SHA-256, and YAML that can be pasted', async t => {
  const folder = await place(t)
  const made = await run(folder, 'keys', 'new', '--name', 'shop', '--account', 'beta', '--plan', 'unlimited', '--json')
  const { key, sha256, yaml } = JSON.parse(made.out)
  t.match(key, /^mgk_[A-Za-z0-9_-]{43}$/)
  t.equal(sha256, sha256Of(key))
  t.equal(yaml, `shop:\n  account: beta\n  plan: unlimited\n  sha256: ${sha256}\n`)
  t.notOk(yaml.includes(key))
  t.not(JSON.parse((await run(folder, 'keys', 'new', '--json')).out).key, key)

  const shown = await run(folder, 'keys', 'new')
  t.match(
    shown.out,
    /^key {5}mgk_\S{43}\nsha256 {2}[0-9a-f]{64}\n\n {2}app:\n {4}account: acme\n {4}plan: free\n {4}sha256: [0-9a-f]{64}\n$/,
  )
  const paste = shown.out.slice(shown.out.indexOf('\n\n') + 2)
  writeFileSync(join(folder, 'gateway.yaml'), `${readFileSync(join(folder, 'gateway.yaml'), 'utf8')}${paste}`)
  t.match((await run(folder, 'keys', 'list')).out, /^app +acme +free +none +none +none +all +- +active$/m)
  t.match((await run(folder, 'keys', 'new')).out, /^ {2}app-2:$/m, 'the next free name')
})

t.test('a new key where there is no config yet', async t => {
  const made = await run(t.testdir(), 'keys', 'new', '--account', 'x')
  t.match(made, { code: 0, out: /^ {2}app:\n {4}account: x\n {4}plan: unlimited$/m, err: /no config here to choose from/ })
})

t.test('keys of the config, never their secrets', async t => {
  const folder = await place(t)
  const { out } = await run(folder, 'keys', 'list')
  t.equal(
    out,
    [
      'NAME  ACCOUNT  PLAN       TOKENS/DAY  RIAL/DAY  RIAL/MONTH  MODELS   EXPIRES           STATE',
      'a     acme     free          200,000      none   5,000,000  default  -                 active',
      'b     beta     unlimited        none      none        none  all      -                 disabled',
      'c     acme     unlimited        none      none        none  all      2020-01-01T00:00  expired',
      '',
    ].join('\n'),
  )
  const asJson = (await run(folder, 'keys', 'list', '--json')).out
  t.match(JSON.parse(asJson), [
    { name: 'a', daily_token_budget: 200_000, daily_budget_rial: null },
    { state: 'disabled' },
    { state: 'expired' },
  ])
  for (const text of [out, asJson]) t.notMatch(text, new RegExp(`${SECRET}|${sha256Of(SECRET)}|0123456789abcdef`))
})

t.test('what is wrong with a call: exit 2', async t => {
  const folder = await place(t)
  const rows: [string[], RegExp][] = [
    [['nwe'], /did you mean "new"/],
    [['new', '--name', 'a'], /there is a key "a" already/],
    [['new', '--name', 'two words'], /a name has no spaces/],
    [['new', '--account', 'acm'], /no account "acm" \(did you mean "acme"\?\)/],
    [['new', '--plan', 'fre'], /no plan "fre" \(did you mean "free"\?\)/],
    [['new', '-c', 'none.yaml'], /cannot read it/],
    [['list', '--name', 'x'], /--name has no meaning for keys list/],
  ]
  for (const [args, words] of rows) t.match(await run(folder, 'keys', ...args), { code: 2, out: '', err: words }, args.join(' '))
})

t.test('init writes a config that can be used, with a key of its own', async t => {
  const folder = t.testdir()
  const made = await run(folder, 'init')
  t.equal(made.code, 0)
  t.match(made.out, /^mgk_\S{43}\n$/)
  const file = join(folder, 'gateway.yaml')
  const text = readFileSync(file, 'utf8')
  t.ok(text.includes(`sha256: ${sha256Of(made.out.trim())} `))
  t.notOk(text.includes(made.out.trim()) || text.includes(DEMO_SECRET))
  t.equal(statSync(file).mode & 0o777, 0o600)
  t.match(await run(folder, 'check'), { code: 0, err: '' })
  t.match((await run(folder, 'keys', 'list')).out, /^app +acme +free .* active$/m)

  t.match(await run(folder, 'init'), { code: 1, out: '', err: /is there already: nothing was written/ })
  t.equal(readFileSync(file, 'utf8'), text)
  const forced = await run(folder, 'init', '--force', '--json')
  t.equal(JSON.parse(forced.out).file, file)
  t.ok(readFileSync(file, 'utf8').includes(JSON.parse(forced.out).sha256))
  t.match(await run(folder, 'init', 'none/x.yaml'), { code: 2, err: /the folder .*none does not exist/ })
})
