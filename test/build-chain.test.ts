import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { buildChain } from '../src/build-chain.js'
import type { Config } from '../src/config/config.js'
import { ConfigError } from '../src/config/problems.js'
import { GatewayError } from '../src/errors.js'
import { POLICIES } from '../src/paths.js'
import { importPlugin, names } from '../src/plugin.js'
import { AT, asked, host, keyOf, tehran } from './support/exchanges.js'

type Files = Parameters<Test['testdir']>[0]

/** A policy that says where it came from, with the options that it got. */
const telling = (where: string) =>
  `export default (options, host) => ({ name: 'told', respond: () => ({ where: ${JSON.stringify(where)}, options: JSON.stringify(options) }) })\n`

/** The chain of a config that lies in a folder with these files. `policies`: a name, or a name and its options. */
async function built(t: Test, files: Files, policies: readonly (string | readonly [string, unknown])[]) {
  const folder = t.testdir(files)
  const logged: unknown[][] = []
  const config = {
    file: join(folder, 'gateway.yaml'),
    keys: new Map([['a', keyOf()]]),
    policies: policies.map((policy, index) => {
      const [use, given] = typeof policy === 'string' ? [policy, undefined] : policy
      return { use, with: given, at: `gateway.yaml:${index + 3}:5` }
    }),
  } as unknown as Config
  const chain = await buildChain({
    config,
    windows: tehran,
    ledger: host(),
    now: () => AT,
    log: (...line) => logged.push(line),
    fault: (...fault) => logged.push(fault),
  })
  return { chain, logged }
}

const respond = async (t: Test, files: Files, policy: string | readonly [string, unknown]) =>
  (await built(t, files, [policy])).chain.respond({ ...asked(), readings: [] })

t.test('the policies of the house go by the names of their files', async t => {
  for (const name of ['auth', 'budget', 'hold', 'rate']) t.ok(names(POLICIES).includes(name), name)
  const { chain } = await built(t, {}, ['auth', 'rate', 'budget', 'hold'])
  await t.rejects(async () => chain.identify(asked()), { code: 'missing_api_key' })
  chain.authors = new Map()
  await chain.admit(asked({ key: keyOf({ account: 'acme', plan: { requests_per_minute: 1n }, budget: { daily_rial: 1n } }) }))
  t.strictSame([...new Set(chain.authors.values())], ['rate', 'budget', 'hold'])
})

t.test('a module by its path, beside the config or elsewhere', async t => {
  t.strictSame(await respond(t, { 'mine.mjs': telling('beside') }, './mine.mjs'), { where: 'beside', options: '{}' })
  t.strictSame(await respond(t, { policies: { 'rate.mjs': telling('below') } }, './policies/rate.mjs'), { where: 'below', options: '{}' })
  const folder = t.testdir({ 'mine.mjs': telling('absolute') })
  const module = await importPlugin(join(folder, 'mine.mjs'), { folder: POLICIES, configFile: '/nowhere/gateway.yaml' })
  t.type(module.default, 'function')
})

t.test('a file that was edited is another module, one that was not is the same', async t => {
  const common = (count: number) => `module.exports = { default: () => ${count} }\n`
  const folder = t.testdir({ 'a.mjs': 'export default () => 1\n', 'b.cjs': common(1) })
  const load = (file: string) => importPlugin(join(folder, file), { folder: POLICIES, configFile: '/nowhere/gateway.yaml' })
  const made = async (file: string) => {
    const { default: factory } = await load(file)
    return (typeof factory === 'function' ? factory : (factory as { readonly default: () => number }).default)()
  }
  t.strictSame([await made('a.mjs'), await made('b.cjs')], [1, 1])
  t.equal(await load('a.mjs'), await load('a.mjs'))
  writeFileSync(join(folder, 'a.mjs'), 'export default () => 2\n')
  writeFileSync(join(folder, 'b.cjs'), common(2))
  t.strictSame([await made('a.mjs'), await made('b.cjs')], [2, 2])
})

t.test('the codes of policies are known, and are names', async t => {
  const policy = (codes: string) => `export default () => ({ name: 'x', codes: ${codes}, admit() {} })\n`
  const { chain } = await built(t, { 'a.mjs': policy('["too_many", "closed"]'), 'b.mjs': policy('[]') }, ['./a.mjs', 'auth', './b.mjs'])
  t.strictSame(chain.codes, new Set(['too_many', 'closed']))
  for (const wrong of ['"too_many"', '[1]', '["Too many"]', '[""]', '["a".repeat(65)]', 'Array(33).fill("a")']) {
    await t.rejects(
      built(t, { 'c.mjs': policy(wrong) }, ['./c.mjs']),
      { message: /^gateway\.yaml:3:5: .*has codes that are no list/ },
      wrong,
    )
  }
})

t.test('a hook by a wrong name would let all pass: it is told', async t => {
  const rows: [policy: string, problem: RegExp | null][] = [
    ['{ admitt() {} }', /has a function "admitt", which is no hook \(did you mean "admit"\?\)$/],
    ['{ admit() {}, Finish() {} }', /"Finish", which is no hook \(did you mean "finish"\?\)$/],
    ['new (class { admits() {} })()', /"admits", which is no hook/],
    ['{ admit: 5 }', /admit is no function$/],
    ['{ refuse() {} }', /has no hook; there are identify, amend, admit, .* close$/],
    ['{ close() {} }', null],
    ['{ admit() {}, admits() {} }', null],
    ['{ admit: undefined, finish() {}, count() {}, get respnd() { throw new Error("asked") } }', null],
    ['new (class { #held = 1; admit() {} tell() { return this.#held } })()', null],
  ]
  for (const [policy, problem] of rows) {
    const files = { 'x.mjs': `export default () => { const made = ${policy}; made.name = 'x'; return made }\n` }
    if (problem === null) await built(t, files, ['./x.mjs'])
    else await t.rejects(built(t, files, ['./x.mjs']), { message: problem }, policy)
  }
})

t.test('a policy that is no regular file is not waited for', { skip: process.platform === 'win32' }, async t => {
  const folder = t.testdir({})
  execFileSync('mkfifo', [join(folder, 'pipe.mjs')])
  const importing = importPlugin(join(folder, 'pipe.mjs'), { folder: POLICIES, configFile: '/nowhere/gateway.yaml' })
  await t.rejects(importing, { message: /pipe\.mjs: it is no regular file/ })
})

t.test('a package, however it exports itself', async t => {
  const common = `module.exports = (options) => ({ name: 'told', respond: () => ({ where: 'require', options: JSON.stringify(options) }) })\n`
  const packages: [name: string, manifest: object, where: string][] = [
    ['main, CommonJS', { main: 'index.cjs' }, 'require'],
    ['main, ES module', { type: 'module', main: 'index.js' }, 'import'],
    ['nothing but index.js', { type: 'module' }, 'import'],
    ['exports, a string', { exports: './index.mjs' }, 'import'],
    ['exports, only to import', { exports: { import: './index.mjs' } }, 'import'],
    ['exports, only to import, below "."', { exports: { '.': { import: { types: './x.d.ts', default: './index.mjs' } } } }, 'import'],
    ['exports to both', { exports: { require: './index.cjs', import: './index.mjs' } }, 'import'],
    ['exports, the default', { exports: { '.': { browser: './no.js', default: './index.mjs' } } }, 'import'],
    ['exports, only to require', { exports: { require: './index.cjs' } }, 'require'],
  ]
  const sources = { 'index.mjs': telling('import'), 'index.cjs': common, 'index.js': telling('import') }
  for (const [name, manifest, where] of packages) {
    await t.test(name, async t => {
      const files = { node_modules: { '@acme': { quota: { 'package.json': JSON.stringify(manifest), ...sources } } } }
      t.match(await respond(t, files, '@acme/quota'), { where })
    })
  }
  await t.test('a part of one', async t => {
    const manifest = JSON.stringify({ exports: { '.': './index.cjs', './inner': { import: './inner.mjs' } } })
    const files = { node_modules: { quota: { 'package.json': manifest, 'index.cjs': common, 'inner.mjs': telling('inner') } } }
    t.match(await respond(t, files, 'quota/inner'), { where: 'inner' })
  })
})

t.test('options are held against the schema that the module exports', async t => {
  const schema = `export const options = { properties: { max: { type: 'integer', minimum: 1 } }, required: ['max'], additionalProperties: false }\n`
  const files = { 'limit.mjs': telling('x') + schema, 'plain.mjs': telling('x') }
  t.match(await respond(t, files, ['./limit.mjs', { max: 5 }]), { options: '{"max":5}' })
  const rows: [policy: [string, unknown], problem: RegExp][] = [
    [['./limit.mjs', { max: 0 }], /^gateway\.yaml:3:5: policies: with\.max must be/],
    [['./limit.mjs', { max: 'five' }], /^gateway\.yaml:3:5: policies: with\.max must be/],
    [['./limit.mjs', {}], /^gateway\.yaml:3:5: policies: with.*max/],
    [['./limit.mjs', { max: 1, maxx: 1 }], /^gateway\.yaml:3:5: policies: with.*maxx/],
    [['./limit.mjs', []], /^gateway\.yaml:3:5: policies: with must be/],
    [['./plain.mjs', { max: 1 }], /^gateway\.yaml:3:5: policies: policy "\.\/plain\.mjs" takes no options/],
    [['rate', { max: 1 }], /takes no options/],
  ]
  for (const [policy, problem] of rows) await t.rejects(built(t, files, [policy]), { message: problem })
})

t.test('every policy that can not be had is told at once, with its place', async t => {
  const files = {
    'none.mjs': 'export const name = 1\n',
    'nameless.mjs': 'export default () => ({})\n',
    'null.mjs': 'export default () => null\n',
    'throws.mjs': 'export default () => { throw new Error("no luck") }\n',
    'syntax.mjs': 'export default (\n',
    'closes.mjs':
      'export default () => ({ name: "closes", close() { globalThis.__closed = (globalThis.__closed ?? 0) + 1; throw new Error("x") } })\n',
  }
  const uses = [
    './closes.mjs',
    'rat',
    './none.mjs',
    './nameless.mjs',
    './null.mjs',
    './throws.mjs',
    './syntax.mjs',
    './absent.mjs',
    '@acme/none',
  ]
  const error = await built(t, files, uses).catch((fault: unknown) => fault)
  if (!(error instanceof ConfigError)) throw error
  t.match(error.message.split('\n'), [
    /^gateway\.yaml:4:5: policies: policy "rat" can not be loaded: there is neither a policy nor a package.*did you mean.*rate/,
    /^gateway\.yaml:5:5: .*"\.\/none\.mjs" has no function as its default export/,
    /^gateway\.yaml:6:5: .*made nothing with a name/,
    /^gateway\.yaml:7:5: .*made nothing with a name/,
    /^gateway\.yaml:8:5: policies: policy "\.\/throws\.mjs" can not be made: no luck$/,
    /^gateway\.yaml:9:5: .*can not be loaded/,
    /^gateway\.yaml:10:5: policies: policy "\.\/absent\.mjs" can not be loaded: \/\S+\/absent\.mjs: there is no such file$/,
    /^gateway\.yaml:11:5: .*neither a policy nor a package/,
  ])
  t.equal(error.problems.length, 8)
  t.equal((globalThis as { __closed?: number }).__closed, 1, 'those that had been made are closed')
})

t.test('a policy is made of what the host hands it, and needs no import of ours', async t => {
  const source = `
export default (options, host) => {
  let open = 0
  host.log('made', { keys: [...host.keys.keys()] })
  return {
    name: 'concurrency',
    admit({ at, key }) {
      if (open >= 1) throw host.error('too_many_concurrent', 'One at a time.', { status: 429 })
      open++
      return [{ counter: { meter: 'x', subject: 'key:' + key.name, window: host.window('minute', at) }, amount: 1n, ceiling: 1n, code: 'x' }]
    },
    async finish() { open-- },
    async respond() { return { read: String((await host.read([])).length) } },
  }
}
`
  const { chain, logged } = await built(t, { 'concurrency.mjs': source }, ['./concurrency.mjs'])
  t.strictSame(logged, [['./concurrency.mjs', 'made', { keys: ['a'] }]])
  t.match(await chain.admit(asked()), [{ counter: { meter: 'x', subject: 'key:a', window: { kind: 'minute' } }, amount: 1n }])
  t.throws(() => chain.admit(asked()), new GatewayError('too_many_concurrent', 'One at a time.', { status: 429 }))
  await chain.finish({ ...asked(), readings: [] }, { state: 'answered' })
  t.equal((await chain.admit(asked())).length, 1)
  t.strictSame(await chain.respond({ ...asked(), readings: [] }), { read: '0' })
})
