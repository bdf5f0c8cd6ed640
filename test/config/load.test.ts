import { execFileSync, spawn } from 'node:child_process'
import { chmodSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { sha256Of } from '../../src/config/keys.js'
import { loadConfig } from '../../src/config/load.js'
import type { ConfigError } from '../../src/config/problems.js'
import { readText } from '../../src/config/secrets.js'
import { loadKinds } from '../../src/upstream/kinds.js'
import { BASE, KINDS, load, problems, ROOT } from './loading.js'

t.test('a target is the model as it is there: its own price, cap and options, and what it does not say as the model has it', async t => {
  const { config } = load(`
providers:
  sandbox: {kind: sandbox}
  other: {kind: sandbox, health: off, queue: 5, queue_timeout: 2s, retry_unknown: true}
  c: {kind: claude, options: {region: eu}}
models:
  sandbox/m:
    price: {input: 10, output: 20}
    options: {pace: 7}
    attempts: 2
    targets:
      - {provider: other, weight: 3}
      - {provider: sandbox, upstream: n, price: free, options: {pace: 9}}
      - {provider: c, upstream: claude-x, weight: 0, price: {input: 1, output: 2}}
`)
  const model = config.models.get('sandbox/m')
  const { targets, ...rest } = model as NonNullable<typeof model>
  const price = { input: 10n, cached_input: 10n, output: 20n, request: 0n }
  const provider = (name: string) => config.providers.get(name)
  t.match(provider('other'), { health: null, queue: 5, queue_timeout: 2000, retry_unknown: true })
  t.strictSame(targets, [
    { name: 'other/m', weight: 3, model: { ...rest, provider: provider('other'), upstream: 'm', price, options: { pace: 7 } } },
    { name: 'sandbox/n', weight: 1, model: { ...rest, provider: provider('sandbox'), upstream: 'n', price: null, options: { pace: 9 } } },
    {
      name: 'c/claude-x',
      weight: 0,
      model: {
        ...rest,
        provider: provider('c'),
        upstream: 'claude-x',
        price: { input: 1n, cached_input: 1n, output: 2n, request: 0n },
        options: {},
      },
    },
  ])
})

t.test('a target keeps the spelling of the cap that the model has; options that are empty are the model’s', async t => {
  const { config } = load(`
providers:
  sandbox: {kind: sandbox}
  other: {kind: sandbox}
models:
  sandbox/m:
    price: free
    cap: max_completion_tokens
    options: {pace: 7}
    targets:
      - {provider: other, options: }
`)
  t.match(config.models.get('sandbox/m')?.targets?.[0]?.model, { cap: 'max_completion_tokens', options: { pace: 7 } })
})

t.test('the smallest config gets every default', async t => {
  const { config, warnings, files } = load(BASE)
  t.strictSame(warnings, [])
  t.strictSame(files, [])
  const provider = {
    name: 'sandbox',
    kind: 'sandbox',
    base_url: '',
    api_key: null,
    timeout: { connect: 5000, first_byte: 60_000, idle: 60_000, total: 600_000 },
    max_connections: 256,
    keep_connections: 'key',
    queue: 1000,
    queue_timeout: 10_000,
    retry_unknown: false,
    health: { failures: 5, ejection: 1000 },
    usage_stream: 'option',
    cap: 'max_tokens',
    on_disconnect: 'abort',
    usage: 'normal',
    options: {},
  }
  const model = {
    id: 'sandbox/echo',
    provider,
    upstream: 'echo',
    price: null,
    max_output_tokens: null,
    default_max_tokens: 2048,
    context: null,
    tokenizer: null,
    estimate: 'calibrated',
    parameters: null,
    surfaces: null,
    attempts: 3,
    fallback: [],
    created: 1_735_689_600,
    options: { pace: 5 },
  }
  t.strictSame(config, {
    file: '/etc/gw/gateway.yaml',
    listen: { host: '127.0.0.1', port: 8080 },
    ops: { host: '127.0.0.1', port: 9090 },
    admin: null,
    admin_token: null,
    timezone: 'Asia/Tehran',
    month: 'gregorian',
    ledger: { path: '/etc/gw/data/ledger.db', durability: 'power', create: true, retention: null },
    policies: ['auth', 'rate', 'budget', 'hold'].map(use => ({ use, with: undefined, at: 'gateway.yaml:1:1' })),
    providers: new Map([['sandbox', provider]]),
    models: new Map([['sandbox/echo', model]]),
    aliases: new Map(),
    plans: new Map(),
    accounts: new Map(),
    keys: new Map(),
    limits: { body: 33_554_432, connections: 10_000 },
    timeout: { request: 60_000, write: 60_000 },
    workers: 1,
    drain_timeout: 25_000,
    tls: null,
    log: { level: 'info', format: 'auto' },
  })
  t.strictSame(structuredClone(config), config, 'plain data throughout')
})

t.test('what the file says is what counts', async t => {
  const { config, at } = load(`
listen: '[::1]:0'
ops: null
month: persian
ledger: {path: ':memory:', durability: process, create: false, retention: 400d}
policies:
  - auth
  - {use: ./mine.mjs, with: {max: 5, on: true}}
providers:
  c: {kind: claude, options: {region: eu}, base_url: "https://other.example/api/", on_disconnect: drain}
models:
  c/opus:
    upstream: claude-opus
    price: {input: 3, output: 15}
    max_output_tokens: 100
    parameters: [stop]
    surfaces: [chat]
    cap: max_tokens
    created: 2025-02-01
  c/b: {price: {request: 7}, fallback: [big]}
aliases: {best: big, big: c/opus}
plans: {free: {requests_per_minute: 9007199254740991, models: [c/*]}, none: }
accounts: {acme: }
keys:
  a: {plan: none, account: acme, sha256: ${'AB'.repeat(32)}, expires: 2027-01-01, disabled: true, models: [best]}
limits: {body: 1MB}
drain_timeout: 0s
x-anything: [goes]
`)
  t.strictSame(config.listen, { host: '::1', port: 0 })
  t.equal(config.ops, null)
  t.strictSame(config.ledger, { path: ':memory:', durability: 'process', create: false, retention: 400 * 86_400_000 })
  t.strictSame(config.policies, [
    { use: 'auth', with: undefined, at: 'gateway.yaml:7:5' },
    { use: './mine.mjs', with: { max: 5, on: true }, at: 'gateway.yaml:8:5' },
  ])
  t.equal(at(['policies', 1, 'with', 'max']), 'gateway.yaml:8:35')
  t.match(config.providers.get('c'), {
    base_url: 'https://other.example/api',
    cap: 'max_completion_tokens',
    usage_stream: 'always',
    usage: 'strict',
    on_disconnect: 'drain',
    options: { region: 'eu' },
  })
  t.match(config.models.get('c/opus'), { upstream: 'claude-opus', default_max_tokens: 100, cap: 'max_tokens', created: 1_738_368_000 })
  t.strictSame(config.models.get('c/opus')?.price, { input: 3n, cached_input: 3n, output: 15n, request: 0n })
  t.strictSame(config.models.get('c/b')?.fallback, ['c/opus'], 'an alias of an alias')
  t.strictSame(
    [...config.aliases],
    [
      ['best', 'c/opus'],
      ['big', 'c/opus'],
    ],
  )
  t.equal(config.plans.get('free')?.requests_per_minute, 9_007_199_254_740_991n)
  t.equal(config.plans.get('none')?.requests_per_minute, null)
  t.equal(config.accounts.get('acme')?.opening_balance_rial, 0n)
  t.match(config.keys.get('a'), {
    sha256: 'ab'.repeat(32),
    expires: Date.UTC(2026, 11, 31, 20, 30),
    disabled: true,
    plan: { name: 'none' },
  })
  t.equal(config.limits.body, 1_000_000)
  t.equal(config.drain_timeout, 0)
})

t.test('names of Object.prototype are names like any other', async t => {
  const { config } = load(
    `${BASE}plans: {constructor: {}, toString: {}}\nkeys: {hasOwnProperty: {plan: constructor, secret: 0123456789abcdefg}}\n`,
  )
  t.equal(config.keys.get('hasOwnProperty')?.plan.name, 'constructor')
  t.strictSame(problems(`${BASE}plans: {a: }\nkeys: {k: {plan: valueOf, secret: 0123456789abcdefg}}\n`), [
    'gateway.yaml:4:18: keys.k.plan: there is no plan "valueOf"',
  ])
})

t.test('variables are filled where they stand, with the type that is expected', async t => {
  const yaml = `${BASE}
policies:
  - auth
  - rate
  - use: ./x.mjs
    with: {n: "\${RPM}", text: "x\${RPM}"}
  - use: ./y.mjs
    with:
      n: \${RPM}
plans: {p: {requests_per_minute: "\${RPM}", requests_per_hour: "\${RPH:-70}"}}
keys:
  a: {plan: p, secret: "\${DIGITS}"}
  b:
    plan: p
    secret: pre-\${file:secrets/b}-\${SET:-unused}
  c:
    plan: p
    secret: \${file:/run/c}
  d: {plan: p, secret: "literal-$\${NOT_A_VARIABLE}"}
`
  const files = { '/etc/gw/secrets/b': 'from-a-file\n', '/run/c': `two-line-breaks\r\n` }
  const { config, ...loaded } = load(yaml, { env: { RPM: '60', DIGITS: '01234567890123456', SET: 'set', EMPTY: '' }, files })
  t.match(config.plans.get('p'), { requests_per_minute: 60n, requests_per_hour: 70n })
  t.strictSame(config.policies[2]?.with, { n: '60', text: 'x60' }, 'where nobody says what is expected, quotes mean text')
  t.strictSame(config.policies[3]?.with, { n: 60 }, 'and no quotes what YAML makes of it')
  t.strictSame(
    [...config.keys.values()].map(key => key.sha256),
    ['01234567890123456', 'pre-from-a-file-set', 'two-line-breaks', `literal-\${NOT_A_VARIABLE}`].map(sha256Of),
  )
  t.strictSame(loaded.files, ['/etc/gw/secrets/b', '/run/c', '/etc/gw/x.mjs', '/etc/gw/y.mjs'])
  t.equal(loaded.template(['keys', 'c', 'secret']), `\${file:/run/c}`)
})

t.test('what can be wrong with a variable', async t => {
  const secret = (text: string, options = {}) =>
    problems(`${BASE}plans: {p: }\nkeys: {k: {plan: p, secret: "${text}"}}\n`, { env: { APP_KEY: 'x', EMPTY: '' }, ...options })
  const at = 'gateway.yaml:4:29: keys.k.secret:'
  t.strictSame(secret(`\${APP_KEYS}`), [`${at} the environment has no variable APP_KEYS (did you mean "APP_KEY"?)`])
  t.strictSame(secret(`\${EMPTY}`), [`${at} must not be empty`])
  t.strictSame(secret(`\${EMPTY:-}`), [`${at} must not be empty`])
  t.strictSame(secret(`\${APP_KEY`), [`${at} \`\${APP_KEY\` has no closing }; $\${ is a literal \${`])
  t.strictSame(secret(`\${1X}`), [`${at} \`\${1X}\` is none of \${VAR}, \${VAR:-default} and \${file:path}; $\${ is a literal \${`])
  t.strictSame(secret(`\${file:}`), [`${at} \`\${file:}\` names no file`])
  t.strictSame(secret(`\${file:gone}`), [`${at} cannot read /etc/gw/gone: there is no such file`])
  t.strictSame(secret(`\${file:empty}`, { files: { '/etc/gw/empty': '\n' } }), [`${at} must not be empty`])
  t.strictSame(problems(`${BASE}plans: {p: {requests_per_day: "\${EMPTY:-}"}}\n`), [
    'gateway.yaml:3:31: plans.p.requests_per_day: must be a whole number, or null for none, but the text is empty',
  ])
  try {
    load(`${BASE}plans: {p: }\nkeys: {k: {plan: p, secret: "\${file:gone}"}}\n`)
  } catch (error) {
    t.strictSame((error as ConfigError).files, ['/etc/gw/gone'], 'the missing file is named, to be waited for')
  }
})

t.test('no message quotes a secret', async t => {
  const secret = 'a secret with spaces'
  const text = problems(
    `${BASE}plans: {p: }\nkeys: {k: {plan: p, secret: "\${S}", sha256: "\${S}", disabled: "\${S}", expires: "\${S}"}}\ndrain_timeout: \${S}\nlisten: \${S}\nmonth: \${S}\n`,
    { env: { S: secret } },
  )
  t.equal(text.length, 8)
  t.notMatch(text.join('\n'), secret)
})

t.test('prices are converted from the text of the file', async t => {
  const price = (written: string, head = 'rates: {usd: 1050000}') =>
    load(`${head}\nproviders: {s: {kind: sandbox}}\nmodels: {s/m: {price: ${written}}}\n`, {
      env: { USD: '1050000', IN: '2.50' },
    }).config.models.get('s/m')?.price
  t.strictSame(price('{input: {usd: 2.50}, output: {usd: 10}}'), {
    input: 2_625_000n,
    cached_input: 2_625_000n,
    output: 10_500_000n,
    request: 0n,
  })
  t.strictSame(price('{input: {usd: 0.15}, cached_input: {usd: 0.075}, output: 7}', 'rates: {usd: 1050000}\nmarkup: 1.15'), {
    input: 181_125n,
    cached_input: 90_563n,
    output: 7n,
    request: 0n,
  })
  t.equal(
    price('{input: {usd: 1}, output: 0, markup: 2}', 'rates: {usd: 10}\nmarkup: 1.15')?.input,
    20n,
    'its own markup in place of the general one',
  )
  // A float would read this as 0.1 and stay below the next Rial.
  t.equal(price('{input: {usd: 0.1000000000000000000001}, output: 0}', 'rates: {usd: 10}')?.input, 2n)
  t.equal(price('{input: {usd: 9007199254740991}, output: 0}', 'rates: {usd: 1}')?.input, 2n ** 53n - 1n, 'the most that there may be')
  t.equal(price(`{input: {usd: "\${IN}"}, output: 0}`, `rates: {usd: "\${USD}"}`)?.input, 2_625_000n, 'filled from variables')
})

t.test('what the file does not say of a well-known model is what is known of it', async t => {
  const models = load(`
providers: {p: {kind: openai, base_url: "https://x.example", rerank: units}}
models:
  p/o3: {price: {input: 1, output: 2}, tokenizer: o200k}
  p/mine: {price: {input: 1}, upstream: omni-moderation-latest}
  p/o1: {price: {input: 1, output: 2}, cap: max_tokens, surfaces: null}
  p/unheard-of: {price: {input: 1, output: 2}}
`).config.models
  t.match(models.get('p/o3'), { cap: 'max_completion_tokens', surfaces: ['chat'], tokenizer: 'o200k', provider: { rerank: 'units' } })
  t.strictSame(models.get('p/mine')?.surfaces, ['moderations'], "by the provider's own name; and no price of an output is asked for")
  t.match(models.get('p/o1'), { cap: 'max_tokens', surfaces: null }, 'what the file says counts')
  t.equal(models.get('p/unheard-of')?.cap, undefined)
})

t.test('anchors and merge keys carry settings from one entry to others', async t => {
  const { config } = load(`
x-cloud: &cloud {kind: openai, base_url: "https://x.example", max_connections: 7}
providers:
  a: {<<: *cloud}
  b: {<<: *cloud, max_connections: 8}
models: {a/m: {price: free}}
`)
  t.match(config.providers.get('a'), { base_url: 'https://x.example', max_connections: 7 })
  t.equal(config.providers.get('b')?.max_connections, 8)
})

t.test('warnings', async t => {
  const open = 'listen: 0.0.0.0:8080\n'
  t.strictSame(load(`${BASE}admin: 0.0.0.0:9091\n`).warnings, [
    'gateway.yaml:3:8: the page can be reached from other machines, and its token goes over the network as plain text',
  ])
  t.strictSame(load(`${BASE}admin: '[::1]:9091'\n`).warnings, [])
  t.strictSame(load(BASE + open).warnings, ['gateway.yaml:3:9: there are no keys: whoever reaches this address can use every model'])
  t.strictSame(load(`${BASE + open}plans: {p: }\nkeys: {k: {plan: p, secret: mgk_demo_local_only}}\n`).warnings, [
    'gateway.yaml:5:11: this secret is printed in the manual, and the gateway can be reached from other machines',
  ])
  t.strictSame(load(`${BASE}plans: {p: }\nkeys: {k: {plan: p, secret: hunter2}}\n`).warnings, [
    'gateway.yaml:4:29: the secret of keys.k is short enough to be guessed; `model-gateway keys new` makes a good one',
  ])
  t.strictSame(
    load(`${BASE}policies: [auth, ./rate.mjs]\nplans: {p: {requests_per_day: 1}}\nkeys: {k: {plan: p, secret: 0123456789abcdefg}}\n`)
      .warnings,
    ['gateway.yaml:4:12: the policy "rate" is not in policies, so nothing enforces these ceilings, unless another policy does'],
  )
})

t.test('files on the disk', async t => {
  const secret = '0123456789abcdefg'
  const dir = t.testdir({
    'gateway.yaml': `${BASE}plans: {p: }\nkeys: {k: {plan: p, secret: "\${file:s/open}"}, l: {plan: p, secret: "\${file:s/closed}"}}\n`,
    s: { open: `${secret}\n`, closed: `${secret}2` },
    'latin1.yaml': Buffer.from([0x61, 0x3a, 0xe9]),
  })
  const options = { env: {}, kinds: KINDS, cwd: dir }
  chmodSync(join(dir, 's/open'), 0o644)
  chmodSync(join(dir, 's/closed'), 0o640)
  const { config, warnings } = loadConfig('gateway.yaml', options)
  t.equal(config.keys.get('k')?.sha256, sha256Of(secret))
  t.strictSame(warnings, [`${dir}/s/open holds a secret and every user of this machine can read it: chmod o-r ${dir}/s/open`])
  t.throws(() => loadConfig('gone.yaml', options), { message: 'gone.yaml:1:1: cannot read it: there is no such file' })
  t.throws(() => loadConfig('latin1.yaml', options), { message: 'latin1.yaml:1:1: cannot read it: it is not UTF-8' })
  t.throws(() => loadConfig('../elsewhere.yaml', options), {
    message: `${join(dir, '../elsewhere.yaml')}:1:1: cannot read it: there is no such file`,
  })
})

t.test('what is no regular file is refused, but for a config that is read once', { skip: process.platform === 'win32' }, async t => {
  const dir = t.testdir({
    'gateway.yaml': `prices: p\n${BASE.replace('kind: sandbox', 'kind: sandbox, api_key: "$' + '{file:/dev/zero}"')}`,
  })
  execFileSync('mkfifo', [join(dir, 'p')])
  const why = 'it is no regular file, which could be read again at any time'
  t.throws(() => loadConfig('gateway.yaml', { env: {}, kinds: KINDS, cwd: dir }), {
    message: `gateway.yaml:1:9: prices: cannot read ${dir}/p: ${why}\ngateway.yaml:2:47: providers.sandbox.api_key: cannot read /dev/zero: ${why}`,
  })
  spawn('sh', ['-c', `echo '${BASE}' > p`], { cwd: dir })
  t.ok(loadConfig('p', { env: {}, kinds: KINDS, cwd: dir }).config.models.has('sandbox/echo'))
  truncateSync(join(dir, 'gateway.yaml'), 65 * 1024 * 1024)
  t.throws(() => readText(join(dir, 'gateway.yaml')), { message: 'it is larger than 64 MiB' })
  t.throws(() => readText(dir), { code: 'EISDIR' })
})

t.test('certificate and key must exist and belong together', async t => {
  const folder = join(ROOT, 'test/fixtures/tls')
  const readFile = (path: string) => (path.endsWith('gateway.yaml') ? yaml : readFileSync(path, 'utf8'))
  let yaml = `${BASE}tls: {cert: localhost.crt, key: localhost.key}\n`
  const options = { env: {}, kinds: KINDS, cwd: folder, readFile }
  const { config, files } = loadConfig('gateway.yaml', options)
  t.match(config.tls, { cert: join(folder, 'localhost.crt'), cert_pem: /BEGIN CERTIFICATE/, key_pem: /BEGIN PRIVATE KEY/ })
  t.strictSame(files, [join(folder, 'localhost.crt'), join(folder, 'localhost.key')])
  yaml = `${BASE}tls: {cert: localhost.crt, key: other.key}\n`
  t.throws(() => loadConfig('gateway.yaml', options), { message: 'gateway.yaml:3:33: tls.key: is not the key of the certificate' })
  yaml = `${BASE}tls: {cert: localhost.key, key: localhost.crt}\n`
  t.throws(() => loadConfig('gateway.yaml', options), {
    message:
      'gateway.yaml:3:13: tls.cert: is no certificate in PEM\ngateway.yaml:3:33: tls.key: is no private key in PEM without a passphrase',
  })
  yaml = `${BASE}tls: {cert: gone.crt, key: localhost.key}\n`
  t.throws(() => loadConfig('gateway.yaml', options), {
    message: `gateway.yaml:3:13: tls.cert: cannot read ${folder}/gone.crt: there is no such file`,
  })
})

t.test('authorities: of clients, and of a provider', async t => {
  const folder = join(ROOT, 'test/fixtures/tls')
  const readFile = (path: string) => {
    if (path.endsWith('gateway.yaml')) return yaml
    const text = (name: string) => readFileSync(join(folder, name), 'utf8')
    if (path.endsWith('two.crt')) return `# the first\n${text('clients.crt')}\n# the second\n${text('strangers.crt')}`
    if (path.endsWith('broken.crt')) return `${text('clients.crt')}${text('strangers.crt').replace('MII', 'MIX')}`
    return readFileSync(path, 'utf8')
  }
  let yaml = ''
  const options = { env: {}, kinds: KINDS, cwd: folder, readFile }
  const of = (clientCa: string, ca: string): string =>
    `providers: {c: {kind: openai, base_url: "https://a.example", ca: ${ca}}}\nmodels: {c/m: {price: free}}\ntls: {cert: localhost.crt, key: localhost.key, client_ca: ${clientCa}}\n`
  yaml = of('two.crt', 'clients.crt')
  const { config, files } = loadConfig('gateway.yaml', options)
  t.match(config.tls?.client_ca, { file: join(folder, 'two.crt'), pem: /# the second/ })
  t.match(config.providers.get('c')?.ca, { file: join(folder, 'clients.crt'), pem: /BEGIN CERTIFICATE/ })
  t.strictSame(new Set(files), new Set(['two.crt', 'clients.crt', 'localhost.crt', 'localhost.key'].map(name => join(folder, name))))
  for (const [name, wrong] of [
    ['broken.crt', 'holds what is no certificate in PEM'],
    ['client.key', 'holds no certificate in PEM'],
    ['gone.crt', `cannot read ${folder}/gone.crt: there is no such file`],
  ] as const) {
    yaml = of(name, name)
    const message = `gateway.yaml:1:66: providers.c.ca: ${wrong}\ngateway.yaml:3:59: tls.client_ca: ${wrong}`
    t.throws(() => loadConfig('gateway.yaml', options), { message })
  }
  yaml = of('two.crt', 'clients.crt').replace('https://a.example', 'http://localhost')
  t.throws(() => loadConfig('gateway.yaml', options), {
    message: 'gateway.yaml:1:65: providers.c.ca: is of no use: the provider is not reached by https://',
  })
})

t.test('a private key that every user of the machine can read is told', async t => {
  const folder = t.testdir({ 'gateway.yaml': `${BASE}tls: {cert: c, key: k}\n` })
  for (const [name, from, mode] of [
    ['c', 'localhost.crt', 0o644],
    ['k', 'localhost.key', 0o640],
  ] as const)
    writeFileSync(join(folder, name), readFileSync(join(ROOT, 'test/fixtures/tls', from)), { mode })
  const warnings = () => loadConfig('gateway.yaml', { env: {}, kinds: KINDS, cwd: folder }).warnings
  t.strictSame(warnings(), [])
  chmodSync(join(folder, 'k'), 0o644)
  t.strictSame(warnings(), [
    `gateway.yaml:3:21: ${join(folder, 'k')} holds a secret and every user of this machine can read it: chmod o-r ${join(folder, 'k')}`,
  ])
})

t.test('the shipped file and the examples load without a warning', async t => {
  const kinds = await loadKinds()
  const env = { OPENAI_API_KEY: 'sk-test', MISTRAL_API_KEY: 'test', APP_KEY: 'mgk_0123456789abcdef' }
  const readFile = (path: string) =>
    path.startsWith('/run/secrets/') ? `mgk_${path.split('/').at(-1)}_0123456789` : readFileSync(path, 'utf8')
  for (const file of [
    'gateway.yaml',
    'config/examples/openai.yaml',
    'config/examples/local.yaml',
    'config/examples/sidecar.yaml',
    'config/examples/catalog.yaml',
  ]) {
    const { config, warnings } = loadConfig(file, { env, kinds, cwd: ROOT, readFile })
    t.strictSame(warnings, [], file)
    t.ok(config.models.size > 0 && config.keys.size > 0, file)
    const modeline = readFileSync(join(ROOT, file), 'utf8').split('\n', 1)[0]
    t.match(modeline, /^# yaml-language-server: \$schema=\.\.?\/(config\/)?gateway\.schema\.json$/, file)
  }
})

t.test('ten thousand keys and a thousand models load in time', async t => {
  const keys = Array.from({ length: 10_000 }, (_, i) => `  app-${i}: {account: acme, plan: free, secret: mgk_0123456789abcdef${i}}\n`)
  const models = Array.from({ length: 1000 }, (_, i) => `  sandbox/m${i}: {price: {input: 20000, output: 60000}}\n`)
  const yaml = `providers: {sandbox: {kind: sandbox}}\nplans: {free: }\naccounts: {acme: }\nkeys:\n${keys.join('')}models:\n${models.join('')}`
  const start = process.cpuUsage()
  const { config } = load(yaml)
  const { user, system } = process.cpuUsage(start)
  t.equal(config.keys.size, 10_000)
  t.equal(config.models.size, 1000)
  t.comment(`${Math.round((user + system) / 1000)} ms of processor time`)
  t.ok(user + system < 10_000_000, 'not quadratic')
})
