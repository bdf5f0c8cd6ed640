import { mkdirSync } from 'node:fs'
import t, { type Test } from 'tap'
import { run } from '../../src/commands/check.js'

async function check(t: Test, args: string[], files: Record<string, string> = {}, env: NodeJS.ProcessEnv = {}) {
  const cwd = t.testdir(files)
  mkdirSync(cwd, { recursive: true })
  const out = { stdout: '', stderr: '' }
  const code = await run(
    args,
    {
      stdout: text => {
        out.stdout += text
      },
      stderr: text => {
        out.stderr += text
      },
      env,
      cwd,
    },
    async () => new Map([['sandbox', { baseUrl: '', surfaces: ['chat'] }]]),
  )
  return { code, ...out }
}

t.test('without a file it says so and exits 2', async t => {
  t.strictSame(await check(t, []), { code: 2, stdout: '', stderr: 'gateway.yaml:1:1: cannot read it: there is no such file\n' })
})

t.test('every problem is a line on stderr', async t => {
  const { code, stdout, stderr } = await check(t, ['-c', 'x.yaml'], {
    'x.yaml': 'providers: {a: {kind: no-such-kind}}\nmodels: {a/b: {price: fre}}\n',
  })
  t.equal(code, 2)
  t.equal(stdout, '')
  t.equal(
    stderr,
    'x.yaml:1:23: providers.a.kind: there is no kind "no-such-kind"\nx.yaml:2:23: models.a/b.price: must be `free`, or a map with `input` and `output`\n',
  )
})

t.test('a config that can be used is printed as it counts, its secrets hidden, its warnings apart', async t => {
  const yaml = `providers: {s: {kind: sandbox}}\nmodels: {s/m: {price: free}}\nplans: {p: }\nkeys: {k: {plan: p, secret: "\${KEY}"}}\n`
  const { code, stdout, stderr } = await check(t, ['--config', 'x.yaml'], { 'x.yaml': yaml }, { KEY: 'hunter2' })
  t.equal(code, 0)
  t.match(stdout, /^listen: 127\.0\.0\.1:8080\n[\s\S]*price: free/)
  t.notMatch(stdout, /hunter2/)
  t.match(stderr, /^x\.yaml:4:29: the secret of keys\.k is short[^\n]*\n$/)
})

t.test('models of the catalog that have no price are listed, and the rest can be used', async t => {
  const yaml = `providers: {openai: {kind: sandbox}}\ncatalog: [openai]\nprices: p.yaml\n`
  const prices = 'openai/gpt-4o: {input: 7, output: 8}\nopenai/o1: {input: 1}\n'
  const { code, stdout, stderr } = await check(t, ['-c', 'x.yaml'], { 'x.yaml': yaml, 'p.yaml': prices })
  t.equal(code, 0)
  t.match(stdout, /^ {2}openai\/gpt-4o:\n[\s\S]* {6}input: 7\n/m)
  t.notMatch(stdout, 'openai/o1')
  const [head, ...lines] = stderr.split('\n')
  t.equal(head, 'not served, for want of a price (in prices; the fields that are missing):')
  t.ok(lines.includes('  openai/gpt-4o-mini   input, output'), stderr)
  t.ok(lines.includes('  openai/o1            output'), stderr)
})

t.test('as JSON: a config that can be used, and every problem of one that can not', async t => {
  const yaml = `providers: {s: {kind: sandbox}}\nmodels: {s/m: {price: {input: 9007199254740991, output: 8}, max_output_tokens: 9}}\nplans: {p: }\nkeys: {k: {plan: p, secret: "\${KEY}"}}\n`
  const good = await check(t, ['--json'], { 'gateway.yaml': yaml }, { KEY: 'hunter2' })
  t.match({ code: good.code, stderr: good.stderr }, { code: 0, stderr: '' })
  t.match(JSON.parse(good.stdout), {
    problems: [],
    warnings: [/^gateway\.yaml:4:.* is short/],
    unpriced: [],
    config: {
      listen: '127.0.0.1:8080',
      models: { 's/m': { price: { input: 9007199254740991, output: 8 } } },
      keys: { k: { account: null } },
    },
  })
  t.notMatch(good.stdout, /hunter2/)
  const bad = await check(t, ['--json'], { 'gateway.yaml': 'models: {a/b: {price: fre}}\n' })
  t.match({ code: bad.code, stderr: bad.stderr }, { code: 2, stderr: '' })
  const { problems, ...rest } = JSON.parse(bad.stdout)
  t.match(problems[0], { file: 'gateway.yaml', line: 1, col: Number, path: String, message: String })
  t.strictSame(rest, { warnings: [], unpriced: [], learned: [], config: null })
})

t.test('an option that there is not, with what may have been meant', async t => {
  await t.rejects(check(t, ['--confg', 'x']), { name: 'UsageError', message: 'there is no option --confg (did you mean "--config"?)' })
})

t.test('a ledger that can not be read is told, and is no fault of the config', async t => {
  const { code, stdout, stderr } = await check(t, [], {
    'gateway.yaml':
      'ledger: {path: ledger.db}\nproviders: {sandbox: {kind: sandbox}}\nmodels: {sandbox/echo: {price: free}}\nplans: {p: {}}\nkeys: {a: {plan: p, secret: mgk_test_key_a}}\n',
    'ledger.db': 'no ledger '.repeat(1000),
  })
  t.equal(code, 0)
  t.match(stdout, /sandbox\/echo/)
  t.match(stderr, /what models have taught can not be read from .*ledger\.db: file is not a database/)
})
