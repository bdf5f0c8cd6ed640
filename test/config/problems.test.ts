import t from 'tap'
import { sha256Of } from '../../src/config/keys.js'
import { ConfigError, type Path, showPath } from '../../src/config/problems.js'
import { BASE, load, problems } from './loading.js'

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
    [
      'two documents',
      `---\n${BASE}---\nlisten: 1\n`,
      ['4:1: YAML: a second document begins here: the config is one, without a line of --- inside'],
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
      'one address thrice',
      `${BASE}ops: 127.0.0.1:9091\nadmin: 127.0.0.1:9091\n`,
      ['4:8: admin: is the address of ops too; the page has one of its own'],
    ],
    ['a short token', `${BASE}admin_token: short\n`, ['3:14: admin_token: must have at least 16 characters']],
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
    ['alias that is nearly its own name', `${BASE}aliases: {fast: fas}\n`, ['3:17: aliases.fast: there is no model or alias "fas"']],
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
    ...['sk-x\\n', 'sk\\r\\n-x', ' sk-x', 'sk-x ', 'sk-\\u00e9', 'sk-\\u200b', 'sk\\t-x', 'sk\\0'].map(
      (key): [string, string, string[]] => [
        `key that fits in no header: ${key}`,
        provider(`kind: sandbox, api_key: "${key}"`),
        [
          '2:31: providers.p.api_key: must be one line of visible ASCII characters, without a line break or spaces at its ends (`printf %s` writes none where `echo` does)',
        ],
      ],
    ),
    ['key of two words', provider('kind: sandbox, api_key: "sk x"'), []],
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
      'rate in hex, that two amounts are converted at',
      model('price: {input: {usd: 1}, output: {usd: 2}}', 'rates: {usd: 0x10}\n'),
      ['4:14: rates.usd: must be written as a decimal number, such as 2.50'],
    ],
    [
      'amount below 0, and none',
      model('price: {input: {usd: -1}, output: {}}', 'rates: {usd: 5}\n'),
      ['3:36: models.sandbox/m.price.input.usd: must be at least 0', '3:49: models.sandbox/m.price.output: must have at least one entry'],
    ],
    ['a list for a price', model('price: [1]'), ['3:22: models.sandbox/m.price: must be `free`, or a map with `input` and `output`']],
    [
      'a rate that is no number',
      model('price: {input: {usd: 2}, output: 0}', 'rates: {usd: abc}\n'),
      ['4:14: rates.usd: must be a number, not text'],
    ],
    [
      'a markup that is no number',
      model('price: {input: {usd: 2}, output: 0}', 'rates: {usd: 5}\nmarkup: abc\n'),
      ['5:9: markup: must be a number, not text'],
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
    [
      'targets',
      model('price: free, targets: [{provider: sandbx}, {}, {provider: c}, {provider: c, weight: 1}, {provider: c, upstream: x, wait: 1}]'),
      [
        '3:49: models.sandbox/m.targets[0].provider: there is no provider "sandbx" (did you mean "sandbox"?)',
        '3:58: models.sandbox/m.targets[1]: "provider" is missing',
        '3:77: models.sandbox/m.targets[3]: is c/m, which stands in the list already',
        '3:130: models.sandbox/m.targets[4].wait: unknown key (known here: provider, upstream, weight, price, options)',
      ],
    ],
    [
      'target that can not help, target without a price for its output',
      model('price: free, surfaces: [rerank], targets: [{provider: c}, {provider: sandbox, price: {output: 1}}]'),
      [
        '3:69: models.sandbox/m.targets[0].provider: its kind "claude" answers none of rerank',
        '3:100: models.sandbox/m.targets[1].price: "input" is missing (0 where it costs nothing)',
      ],
    ],
    [
      'weights of nothing',
      model('price: free, targets: [{provider: c, weight: 0}]'),
      ['3:37: models.sandbox/m.targets: every weight is 0: one of them must come first'],
    ],
    ['no targets', model('price: free, targets: []'), ['3:37: models.sandbox/m.targets: must have at least one entry']],
    [
      'surface that no target has',
      model('price: free, surfaces: [chat, rerank], targets: [{provider: c}]'),
      ['3:45: models.sandbox/m.surfaces[1]: its targets have no rerank (they have chat)'],
    ],
    [
      'options of a kind that has none',
      model('price: free, targets: [{provider: c, options: {pace: 3}}]'),
      ['3:61: models.sandbox/m.targets[0].options: the kind "claude" has no such settings'],
    ],
    ['health', provider('kind: sandbox, health: on'), ['2:30: providers.p.health: must be `off`, or a map with `failures` and `ejection`']],
    ['ejection', provider('kind: sandbox, health: {ejection: 0s}'), ['2:41: providers.p.health.ejection: must be longer than 0']],
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
    'gateway.yaml:6:1: colour: unknown key (known here: listen, ops, admin, admin_token, timezone, month, ledger, policies, rates, markup, catalog, prices, providers, models, aliases, plans, accounts, keys, limits, timeout, workers, drain_timeout, tls, log)',
  ])
})

t.test('whatever stands in the place of anything, each problem is told with its place, and no other error comes', async t => {
  const whole = {
    listen: '127.0.0.1:1',
    ops: '127.0.0.1:2',
    admin: '127.0.0.1:3',
    admin_token: '0123456789abcdef',
    timezone: 'UTC',
    month: 'persian',
    ledger: { path: 'l.db', durability: 'power', create: true, retention: '30d' },
    policies: ['auth', 'rate', 'hold', { use: 'budget', with: { a: 1 } }],
    rates: { usd: 100 },
    markup: 1.1,
    catalog: ['openai'],
    prices: { 'o/gpt-4o': { input: { usd: 1 }, output: { usd: 2 }, markup: 1.2 } },
    providers: {
      sandbox: { kind: 'sandbox', timeout: { total: '1m' }, health: { failures: 2 } },
      o: { kind: 'openai', base_url: 'https://o.example/v1', api_key: 'k', ca: 'ca.pem', proxy: 'environment' },
      c: { kind: 'claude', options: { region: 'eu' } },
    },
    models: {
      'sandbox/a': {
        price: { input: { usd: 2.5 }, cached_input: 1, output: { usd: 3 }, request: 4 },
        parameters: ['temperature'],
        surfaces: ['chat'],
        targets: [{ provider: 'o', price: { input: 1, output: 2 }, options: {} }, { provider: 'sandbox' }],
        fallback: ['b'],
        tokenizer: 'llama',
        created: '2025-01-01',
        options: { pace: 3 },
      },
      'sandbox/b': { price: 'free' },
    },
    aliases: { b: 'sandbox/b' },
    plans: { free: { requests_per_minute: 1, models: ['b'] } },
    accounts: { acme: { opening_balance_rial: 1 } },
    keys: {
      k: { plan: 'free', account: 'acme', secret: 'secret', budget: { daily_rial: 1 }, models: ['sandbox/*'], expires: '2030-01-01' },
    },
    limits: { body: '1MiB' },
    timeout: { request: '1s' },
    workers: 'auto',
    drain_timeout: '1s',
    tls: { cert: 'cert.pem', key: 'key.pem', client_ca: 'ca.pem' },
    log: { level: 'info' },
  }
  const broken = [null, true, -1, 1e300, '', 'a/b', '$' + '{NO_SUCH}', [], [null], {}, { x: null }, { usd: -1 }]
  let told = 0
  const unplaced: string[] = []
  for (const path of pathsOf(whole)) {
    for (const value of broken) {
      const yaml = JSON.stringify(replaced(whole, path, value))
      try {
        load(yaml, { env: { HTTPS_PROXY: 'http://proxy.example:1' } })
      } catch (error) {
        const placed =
          error instanceof ConfigError && error.problems.every(({ line, col, message }) => line > 0 && col > 0 && message !== '')
        if (!placed) unplaced.push(`${showPath(path)}: ${JSON.stringify(value)}: ${String(error)}`)
        told++
      }
    }
  }
  t.strictSame(unplaced, [])
  t.ok(told > 1000)
})

/** The way to each value, those of maps and lists included. */
function pathsOf(value: unknown, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [path]
  const entries = Object.entries(value).map(([name, below]) => pathsOf(below, [...path, Array.isArray(value) ? Number(name) : name]))
  return [...(path.length === 0 ? [] : [path]), ...entries.flat()]
}

function replaced(value: unknown, [step, ...rest]: Path, by: unknown): unknown {
  if (step === undefined) return by
  if (Array.isArray(value)) return value.map((item, index) => (index === step ? replaced(item, rest, by) : item))
  const map = value as Readonly<Record<string, unknown>>
  return { ...map, [step]: replaced(map[step], rest, by) }
}
