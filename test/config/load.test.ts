import { chmodSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { KindInfo } from '../../src/config/config.js'
import { sha256Of } from '../../src/config/keys.js'
import { type LoadOptions, loadConfig } from '../../src/config/load.js'
import { ConfigError } from '../../src/config/problems.js'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const SURFACES = ['chat', 'completions', 'rerank', 'moderations', 'embeddings']
const KINDS: ReadonlyMap<string, KindInfo> = new Map<string, KindInfo>([
  [
    'sandbox',
    {
      baseUrl: '',
      surfaces: SURFACES,
      modelOptions: { type: 'object', additionalProperties: false, properties: { pace: { type: 'integer', default: 5 } } },
    },
  ],
  ['openai', { surfaces: SURFACES }],
  [
    'claude',
    {
      baseUrl: 'https://claude.example/v1',
      surfaces: ['chat'],
      defaults: { cap: 'max_completion_tokens', usage_stream: 'always', usage: 'strict' },
      options: { type: 'object', required: ['region'], additionalProperties: false, properties: { region: { type: 'string' } } },
    },
  ],
])

/** The smallest config that loads; a test adds sections to it. */
const BASE = `providers: {sandbox: {kind: sandbox}}
models: {sandbox/echo: {price: free}}
`

function load(yaml: string, options: Partial<LoadOptions> & { files?: Record<string, string> } = {}) {
  const { files = {}, ...rest } = options
  const readFile = (path: string) => {
    const text = path === '/etc/gw/gateway.yaml' ? yaml : files[path]
    if (text === undefined) throw Object.assign(new Error(`ENOENT: ${path}`), { code: 'ENOENT' })
    return text
  }
  return loadConfig('gateway.yaml', { env: {}, kinds: KINDS, cwd: '/etc/gw', readFile, ...rest })
}

function problems(yaml: string, options: Parameters<typeof load>[1] = {}): string[] {
  try {
    load(yaml, options)
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split('\n')
    throw error
  }
  return []
}

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
    parameters: null,
    surfaces: null,
    fallback: [],
    created: 1_735_689_600,
    options: { pace: 5 },
  }
  t.strictSame(config, {
    file: '/etc/gw/gateway.yaml',
    listen: { host: '127.0.0.1', port: 8080 },
    ops: { host: '127.0.0.1', port: 9090 },
    timezone: 'Asia/Tehran',
    month: 'gregorian',
    ledger: { path: '/etc/gw/data/ledger.db', durability: 'power', create: true },
    policies: ['auth', 'rate', 'budget', 'hold'].map(use => ({ use, with: undefined, at: 'gateway.yaml:1:1' })),
    providers: new Map([['sandbox', provider]]),
    models: new Map([['sandbox/echo', model]]),
    aliases: new Map(),
    plans: new Map(),
    accounts: new Map(),
    keys: new Map(),
    limits: { body: 33_554_432, connections: 10_000 },
    timeout: { request: 60_000, write: 60_000 },
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
ledger: {path: ':memory:', durability: process, create: false}
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
  t.strictSame(config.ledger, { path: ':memory:', durability: 'process', create: false })
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

t.test('each thing that can be wrong is said where it stands', async t => {
  const rows: [string, string, string[]][] = [
    ['empty file', '# nothing\n', ['1:1: the file is empty']],
    ['no map', '- a\n', ['1:1: must be a map of the sections of gateway.yaml, not a list']],
    ['syntax', `${BASE}listen: "127\n`, ['4:1: YAML: missing closing "quote']],
    [
      'variable inside { }',
      `providers: {a: {kind: \${K}}}\n`,
      ['1:24: YAML: unexpected flow-map-start at node end (inside { } and [ ], put $' + '{…} in quotes)'],
    ],
    [
      'no more than the first error of what it breaks',
      `providers: {a: {kind: x\${K}}}\nmodels:\n  b: c\n`,
      ['1:25: YAML: unexpected flow-map-start at node end (inside { } and [ ], put $' + '{…} in quotes)'],
    ],
    ['tag', `${BASE}month: !persian x\n`, ['3:8: YAML: unresolved tag: !persian']],
    ['unknown anchor', `${BASE}plans: *p\n`, ['3:8: plans: there is no anchor &p before this']],
    ['anchor within itself', `${BASE}x-a: &a [*a]\n`, ['3:10: x-a[0]: there is no anchor &a before this']],
    ['sections missing', 'listen: 127.0.0.1:1\n', ['1:1: "providers" is missing', '1:1: "models" is missing']],
    ['no models', 'providers: {sandbox: {kind: sandbox}}\nmodels:\n', ['2:1: models: there is no model in it: nothing could be called']],
    ['unknown key', `${BASE}ledgr: {}\n`, ['3:1: ledgr: unknown key (did you mean "ledger"?)']],
    ['repeated key', `${BASE}month: persian\nmonth: gregorian\n`, ['4:1: month: stands here twice: which one counts?']],
    ['__proto__', `${BASE}plans: {__proto__: {}}\n`, ['3:9: plans.__proto__: this name is not allowed']],
    ['merge of no map', `${BASE}plans: {<<: 3}\n`, ['3:13: plans.<<: << takes a map, or a list of maps']],
    ['address', `${BASE}listen: ":8080"\n`, ['3:9: listen: must be an address of the form host:port, such as 127.0.0.1:8080']],
    ['port', `${BASE}listen: localhost:70000\n`, ['3:9: listen: the port must be at most 65535']],
    [
      'one address twice',
      `${BASE}ops: 127.0.0.1:8080\n`,
      ['3:6: ops: is the address of listen too; metrics and probes have one of their own'],
    ],
    [
      'zone',
      `${BASE}timezone: Asia/Teheran\n`,
      ['3:11: timezone: is no time zone that is known here; an example is Asia/Tehran (did you mean "Asia/Tehran"?)'],
    ],
    ['enum', `${BASE}month: persain\n`, ['3:8: month: must be gregorian or persian (did you mean "persian"?)']],
    [
      'duration without unit',
      `${BASE}drain_timeout: 25\n`,
      ['3:16: drain_timeout: must be a duration with its unit, such as 250ms, 5s, 10m, 1h or 1h30m, not a number'],
    ],
    ['duration of nothing', `${BASE}timeout: {write: 0s}\n`, ['3:18: timeout.write: must be longer than 0']],
    ['duration beyond timers', `${BASE}timeout: {write: 400d}\n`, ['3:18: timeout.write: must be at most 24d']],
    ['size', `${BASE}limits: {body: 32mb}\n`, ['3:16: limits.body: must be a size such as 32MiB, 1MB or 4096']],
    ['size too large', `${BASE}limits: {body: 2GiB}\n`, ['3:16: limits.body: must be from 1B to 1GiB']],
    ['policy twice', `${BASE}policies: [auth, {use: auth}]\n`, ['3:18: policies[1]: "auth" stands in the list twice']],
    ['policy without use', `${BASE}policies: [{with: {}}]\n`, ['3:12: policies[0]: "use" is missing']],
    ['rate', `${BASE}rates: {usd: -1}\n`, ['3:14: rates.usd: must be more than 0']],
    [
      'alias to nothing',
      `${BASE}aliases: {a: sandbox/ecko}\n`,
      ['3:14: aliases.a: there is no model or alias "sandbox/ecko" (did you mean "sandbox/echo"?)'],
    ],
    [
      'alias that is a model',
      `${BASE}aliases: {sandbox/echo: sandbox/echo}\n`,
      ['3:11: aliases.sandbox/echo: is the identifier of a model too (models.sandbox/echo): which one counts?'],
    ],
    [
      'circle of aliases',
      `${BASE}aliases: {a: b, b: c, c: b}\n`,
      ['3:20: aliases.b: leads back to itself: b → c → b', '3:26: aliases.c: leads back to itself: c → b → c'],
    ],
    [
      'account of a key',
      `${BASE}plans: {p: }\nkeys: {k: {plan: p, account: acme, secret: 0123456789abcdefg}}\n`,
      ['4:30: keys.k.account: there is no account "acme"'],
    ],
    [
      'plan of a key',
      `${BASE}plans: {free: }\nkeys: {k: {plan: fre, secret: 0123456789abcdefg}}\n`,
      ['4:18: keys.k.plan: there is no plan "fre" (did you mean "free"?)'],
    ],
    ['key without secret', `${BASE}plans: {p: }\nkeys: {k: {plan: p}}\n`, ['4:11: keys.k: must have "secret" or "sha256"']],
    ['empty secret', `${BASE}plans: {p: }\nkeys: {k: {plan: p, secret: ""}}\n`, ['4:29: keys.k.secret: must not be empty']],
    [
      'secret with a space',
      `${BASE}plans: {p: }\nkeys: {k: {plan: p, secret: a b}}\n`,
      ['4:29: keys.k.secret: must be a secret of visible ASCII characters, without spaces'],
    ],
    [
      'secret that is a number',
      `${BASE}plans: {p: }\nkeys: {k: {plan: p, secret: 12345}}\n`,
      ['4:29: keys.k.secret: must be a secret of visible ASCII characters, without spaces, not a number (put it in quotes)'],
    ],
    [
      'hash',
      `${BASE}plans: {p: }\nkeys: {k: {plan: p, sha256: abc}}\n`,
      ['4:29: keys.k.sha256: must be the SHA-256 of the secret, 64 hex digits'],
    ],
    [
      'one secret twice, once as its hash',
      `${BASE}plans: {p: }\nkeys:\n  k: {plan: p, secret: 0123456789abcdefg}\n  l: {plan: p, sha256: ${sha256Of('0123456789abcdefg')}}\n`,
      ['6:24: keys.l.sha256: the same secret as keys.k'],
    ],
    [
      'reserved name',
      `${BASE}plans: {p: }\nkeys: {anonymous: {plan: p, secret: 0123456789abcdefg}}\n`,
      ['4:8: keys.anonymous: this name is what callers without a key are counted under'],
    ],
    [
      'day',
      `${BASE}plans: {p: }\nkeys: {k: {plan: p, secret: 0123456789abcdefg, expires: 2027-02-30}}\n`,
      ['4:57: keys.k.expires: no calendar has this moment'],
    ],
    [
      'model lists',
      `${BASE}plans: {p: {models: [sandbox/*, "*", sandbox/ech, open/*, "sandbox/e*"]}}\n`,
      [
        '3:38: plans.p.models[2]: there is no model or alias "sandbox/ech" (did you mean "sandbox/echo"?)',
        '3:51: plans.p.models[3]: there is no provider "open"',
        '3:59: plans.p.models[4]: a pattern is <provider>/* or *, nothing else',
      ],
    ],
    [
      'ceiling',
      `${BASE}plans: {p: {requests_per_day: 1.5}}\n`,
      ['3:31: plans.p.requests_per_day: must be a whole number, or null for none, not a fraction'],
    ],
    [
      'ceiling beyond exactness',
      `${BASE}plans: {p: {requests_per_day: 9007199254740993}}\n`,
      ['3:31: plans.p.requests_per_day: must be at most 9007199254740991'],
    ],
    [
      'nothing enforces a plan',
      `${BASE}policies: [auth]\nplans: {p: {requests_per_day: 1}}\nkeys: {k: {plan: p, secret: 0123456789abcdefg}}\n`,
      ['4:12: plans.p: the policy "rate" is not in policies, so nothing enforces these ceilings'],
    ],
    [
      'nobody could use a key',
      `${BASE}policies: []\nplans: {p: }\nkeys: {k: {plan: p, secret: 0123456789abcdefg}}\n`,
      ['3:11: policies: the policy "auth" is not in policies, so nobody could use a key'],
    ],
  ]
  for (const [name, yaml, expected] of rows)
    t.strictSame(
      problems(yaml),
      expected.map(line => `gateway.yaml:${line}`),
      name,
    )
})

t.test('each thing that can be wrong with providers and models', async t => {
  const provider = (fields: string) => `providers:\n  p: {${fields}}\nmodels: {p/m: {price: free}}\n`
  const model = (fields: string, rest = '') =>
    `providers: {sandbox: {kind: sandbox}, c: {kind: claude, options: {region: eu}}}\nmodels:\n  sandbox/m: {${fields}}\n${rest}`
  const rows: [string, string, string[]][] = [
    ['kind', provider('kind: opnai'), ['2:13: providers.p.kind: there is no kind "opnai" (did you mean "openai"?)']],
    ['no address', provider('kind: openai'), ['2:6: providers.p: "base_url" is missing: the kind "openai" has no address of its own']],
    [
      'no URL',
      provider('kind: openai, base_url: api.openai.com'),
      ['2:31: providers.p.base_url: must be an address that begins with https:// (or http:// on this machine)'],
    ],
    [
      'not encrypted',
      provider('kind: openai, base_url: "http://vllm:8000"'),
      [
        '2:31: providers.p.base_url: must be https://, or on this machine; `insecure: true` beside it allows prompts and the key to travel unencrypted',
      ],
    ],
    [
      'no machine of that name',
      provider('kind: openai, base_url: "http://127.0.0.1.evil.example"'),
      [
        '2:31: providers.p.base_url: must be https://, or on this machine; `insecure: true` beside it allows prompts and the key to travel unencrypted',
      ],
    ],
    ['insecure on purpose', provider('kind: openai, base_url: "http://vllm:8000", insecure: true'), []],
    ['loopback', provider('kind: openai, base_url: "http://[::1]:8000/v1"'), []],
    [
      'credentials in it',
      provider('kind: openai, base_url: "https://u:p@x.example"'),
      ['2:31: providers.p.base_url: must hold no credentials: put them into api_key'],
    ],
    [
      'query',
      provider('kind: openai, base_url: "https://x.example/?"'),
      ['2:31: providers.p.base_url: must end with its path: no ? and no #'],
    ],
    ['empty key', provider('kind: sandbox, api_key: ""'), ['2:31: providers.p.api_key: must not be empty']],
    [
      'options of a kind',
      provider('kind: claude, options: {regoin: eu}'),
      ['2:30: providers.p.options: "region" is missing', '2:31: providers.p.options.regoin: unknown key (did you mean "region"?)'],
    ],
    [
      'options of a kind that has none',
      provider('kind: sandbox, options: {a: 1}'),
      ['2:31: providers.p.options: the kind "sandbox" has no such settings'],
    ],
    [
      'options of a model',
      model('price: free, options: {pase: 1}'),
      ['3:38: models.sandbox/m.options.pase: unknown key (did you mean "pace"?)'],
    ],
    ['no price', model('context: 5'), ['3:14: models.sandbox/m: "price" is missing']],
    ['empty price', model('price: '), ['3:15: models.sandbox/m.price: must be `free`, or a map with `input` and `output`']],
    [
      'price of nothing',
      model('price: {}'),
      [
        '3:22: models.sandbox/m.price: must have at least one entry',
        '3:22: models.sandbox/m.price: "input" is missing (0 where it costs nothing)',
        '3:22: models.sandbox/m.price: "output" is missing (0 where it costs nothing; or give `surfaces` that generate no text)',
      ],
    ],
    [
      'fraction of a Rial',
      model('price: {input: 2.5, output: 1}'),
      ['3:30: models.sandbox/m.price.input: must be a whole number of Rial, or an amount in another currency such as {usd: 2.50}'],
    ],
    [
      'half a price',
      model('price: {input: 2}'),
      ['3:22: models.sandbox/m.price: "output" is missing (0 where it costs nothing; or give `surfaces` that generate no text)'],
    ],
    ['half a price is whole for what generates nothing', model('price: {input: 2}, surfaces: [rerank, embeddings]'), []],
    ['per request', model('price: {request: 2}'), []],
    ['negative price', model('price: {input: -2, output: 1}'), ['3:30: models.sandbox/m.price.input: must be at least 0']],
    [
      'no rates',
      model('price: {input: {usd: 2}, output: 0}'),
      ['3:31: models.sandbox/m.price.input.usd: there is no rate for "usd": rates: {usd: 1050000} would be one for usd'],
    ],
    [
      'no such rate',
      model('price: {input: {uds: 2}, output: 0}', 'rates: {usd: 5}\n'),
      ['3:31: models.sandbox/m.price.input.uds: there is no rate for "uds" (did you mean "usd"?)'],
    ],
    [
      'two currencies',
      model('price: {input: {usd: 2, eur: 1}, output: 0}', 'rates: {usd: 5, eur: 5}\n'),
      ['3:30: models.sandbox/m.price.input: must have at most one entry'],
    ],
    [
      'more than money',
      model('price: {input: {usd: 9e15}, output: 0}', 'rates: {usd: 5}\n'),
      ['3:36: models.sandbox/m.price.input.usd: comes to 45000000000000000 Rial; the most is 9007199254740991'],
    ],
    [
      'not decimal',
      model('price: {input: {usd: 0x10}, output: 0}', 'rates: {usd: 5}\n'),
      ['3:36: models.sandbox/m.price.input.usd: must be written as a decimal number, such as 2.50'],
    ],
    [
      'markup of nothing',
      model('price: {input: 2, output: 0, markup: 1.1}'),
      ['3:44: models.sandbox/m.price.markup: changes nothing: no amount here is in another currency'],
    ],
    [
      'caps',
      model('price: free, max_output_tokens: 4, default_max_tokens: 5'),
      ['3:70: models.sandbox/m.default_max_tokens: must not be above max_output_tokens, which is 4'],
    ],
    [
      'context',
      model('price: free, max_output_tokens: 4, context: 3'),
      ['3:47: models.sandbox/m.max_output_tokens: must not be above context, which is 3'],
    ],
    [
      'no identifier',
      `providers: {s: {kind: sandbox}}\nmodels: {echo: {price: free}}\n`,
      ['2:10: models.echo: the name must be an identifier of the form <provider>/<model>, without spaces'],
    ],
    [
      'no provider',
      `providers: {sandbox: {kind: sandbox}}\nmodels: {sanbox/m: {price: free}}\n`,
      ['2:10: models.sanbox/m: there is no provider "sanbox" (did you mean "sandbox"?)'],
    ],
    [
      'surface',
      model('price: free, surfaces: [chats]'),
      ['3:39: models.sandbox/m.surfaces[0]: must be chat, completions, rerank, moderations or embeddings (did you mean "chat"?)'],
    ],
    [
      'surface that the kind has not',
      model('price: free', '  c/m: {price: free, surfaces: [chat, rerank]}\n'),
      ['4:39: models.c/m.surfaces[1]: the kind "claude" has no rerank (it has chat)'],
    ],
    [
      'fallback',
      model('price: free, fallback: [sandbox/m, sandbox/n, a, a]', 'aliases: {a: sandbox/z}\n'),
      [
        '3:39: models.sandbox/m.fallback[0]: is the model itself',
        '3:50: models.sandbox/m.fallback[1]: there is no model or alias "sandbox/n" (did you mean "sandbox/m"?)',
        '3:64: models.sandbox/m.fallback[3]: stands in the list twice',
        '4:14: aliases.a: there is no model or alias "sandbox/z" (did you mean "sandbox/m"?)',
      ],
    ],
    [
      'fallback twice by two names',
      model('price: free, fallback: [c/m, a]', '  c/m: {price: free}\naliases: {a: c/m}\n'),
      ['3:44: models.sandbox/m.fallback[1]: is c/m, which stands in the list already'],
    ],
    ['each the fallback of the other', model('price: free, fallback: [c/m]', '  c/m: {price: free, fallback: [sandbox/m]}\n'), []],
    [
      'fallback that can not help',
      model('price: free, surfaces: [rerank], fallback: [c/m]', '  c/m: {price: free}\n'),
      ['3:58: models.sandbox/m.fallback: c/m answers none of rerank'],
    ],
    ['created', model('price: free, created: 2025-02-29'), ['3:37: models.sandbox/m.created: no calendar has this day']],
  ]
  for (const [name, yaml, expected] of rows)
    t.strictSame(
      problems(yaml),
      expected.map(line => `gateway.yaml:${line}`),
      name,
    )
})

t.test('all problems at once, in the order of the file', async t => {
  const found = problems(`listen: 8080
policies: [auth, auth]
providers: {s: {kind: sandbx}}
models: {s/m: {}}
keys: {k: {plan: gone, secret: "\${NO_SUCH}"}}
colour: blue
`)
  t.strictSame(found, [
    'gateway.yaml:1:9: listen: must be an address of the form host:port, such as 127.0.0.1:8080, not a number',
    'gateway.yaml:2:18: policies[1]: "auth" stands in the list twice',
    'gateway.yaml:3:23: providers.s.kind: there is no kind "sandbx" (did you mean "sandbox"?)',
    'gateway.yaml:4:15: models.s/m: "price" is missing',
    'gateway.yaml:5:18: keys.k.plan: there is no plan "gone"',
    'gateway.yaml:5:32: keys.k.secret: the environment has no variable NO_SUCH',
    'gateway.yaml:6:1: colour: unknown key (known here: listen, ops, timezone, month, ledger, policies, rates, markup, providers, models, aliases, plans, accounts, keys, limits, timeout, drain_timeout, tls, log)',
  ])
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
  t.strictSame(loaded.files, ['/etc/gw/secrets/b', '/run/c'])
  t.equal(loaded.templates.get('keys.c.secret'), `\${file:/run/c}`)
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
  t.equal(price(`{input: {usd: "\${IN}"}, output: 0}`, `rates: {usd: "\${USD}"}`)?.input, 2_625_000n, 'filled from variables')
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

t.test('the shipped file and the examples load without a warning', async t => {
  const env = { OPENAI_API_KEY: 'sk-test', APP_KEY: 'mgk_0123456789abcdef' }
  const readFile = (path: string) =>
    path.startsWith('/run/secrets/') ? `mgk_${path.split('/').at(-1)}_0123456789` : readFileSync(path, 'utf8')
  for (const file of ['gateway.yaml', 'config/examples/openai.yaml', 'config/examples/local.yaml', 'config/examples/sidecar.yaml']) {
    const { config, warnings } = loadConfig(file, { env, kinds: KINDS, cwd: ROOT, readFile })
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
