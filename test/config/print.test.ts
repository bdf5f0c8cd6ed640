import t from 'tap'
import { sha256Of } from '../../src/config/keys.js'
import { loadConfig } from '../../src/config/load.js'
import { effective } from '../../src/config/print.js'

const free = { type: 'object' }
const kinds = new Map([['openai', { baseUrl: 'https://api.example/v1', surfaces: ['chat'], options: free, modelOptions: free }]])

const YAML = `
admin: "[::1]:9091"
admin_token: "\${TOKEN}"
timezone: UTC
x-hook: &hook \${HOOK}
x-more: &more {other: "\${ORG}"}
policies: [auth, rate, budget, hold, {use: ./x.mjs, with: {max: 5, url: *hook, <<: *more, deep: [{token: literal-token}]}}]
rates: {usd: 1000000}
providers:
  p: {kind: openai, api_key: "\${API_KEY}", options: {region: eu, org: "\${ORG}"}}
models:
  p/m: {price: {input: {usd: 2.50}, output: 12345678901}, options: {password: literal-password, seed: 1}}
  p/f: {price: free}
aliases: {a: p/m}
plans: {free: {requests_per_minute: 10, models: [a]}}
accounts: {acme: {opening_balance_rial: 9007199254740991}}
keys:
  k: {plan: free, account: acme, secret: "\${KEY}", expires: 2027-01-01}
drain_timeout: 90s
`
const SECRETS = {
  API_KEY: 'sk-the-key-of-the-provider',
  KEY: 'mgk_the_secret_of_the_client',
  HOOK: 'https://hook.example/?t=the-secret-of-the-hook',
  ORG: 'the-org',
  TOKEN: 'the-token-of-the-page',
}

t.test('the config as it counts, without a secret', async t => {
  const { config, template } = loadConfig('/etc/gw/gateway.yaml', { env: SECRETS, kinds, readFile: () => YAML })
  const text = effective(config, template)
  for (const secret of [...Object.values(SECRETS), sha256Of(SECRETS.KEY), 'literal-token', 'literal-password'])
    t.notOk(text.includes(secret), secret)
  t.equal(
    text,
    `listen: 127.0.0.1:8080
ops: 127.0.0.1:9090
admin: "[::1]:9091"
admin_token: (hidden)
timezone: UTC
month: gregorian
ledger:
  path: /etc/gw/data/ledger.db
  durability: power
  create: true
policies:
  - auth
  - rate
  - budget
  - hold
  - use: ./x.mjs
    with:
      max: 5
      url: \${HOOK}
      deep:
        - token: (hidden)
      other: \${ORG}
providers:
  p:
    kind: openai
    max_connections: 256
    keep_connections: key
    queue: 1000
    retry_unknown: false
    usage_stream: option
    cap: max_tokens
    on_disconnect: abort
    usage: normal
    base_url: https://api.example/v1
    api_key: (hidden)
    timeout:
      connect: 5s
      first_byte: 1m
      idle: 1m
      total: 10m
    queue_timeout: 10s
    health:
      failures: 5
      ejection: 1s
    options:
      region: eu
      org: \${ORG}
models:
  p/m:
    upstream: m
    max_output_tokens: null
    default_max_tokens: 2048
    context: null
    tokenizer: null
    estimate: calibrated
    parameters: null
    surfaces: null
    attempts: 3
    fallback: []
    price:
      input: 2500000
      cached_input: 2500000
      output: 12345678901
      request: 0
    created: 2025-01-01
    options:
      password: (hidden)
      seed: 1
  p/f:
    upstream: f
    max_output_tokens: null
    default_max_tokens: 2048
    context: null
    tokenizer: null
    estimate: calibrated
    parameters: null
    surfaces: null
    attempts: 3
    fallback: []
    price: free
    created: 2025-01-01
aliases:
  a: p/m
plans:
  free:
    requests_per_minute: 10
    requests_per_hour: null
    requests_per_day: null
    tokens_per_minute: null
    models:
      - a
accounts:
  acme:
    opening_balance_rial: 9007199254740991
keys:
  k:
    account: acme
    budget:
      daily_tokens: null
      daily_rial: null
      monthly_rial: null
    models: null
    disabled: false
    plan: free
    sha256: ${sha256Of(SECRETS.KEY).slice(0, 8)}…
    expires: 2027-01-01T00:00:00.000Z
limits:
  body: 32MiB
  connections: 10000
timeout:
  request: 1m
  write: 1m
workers: 1
drain_timeout: 1m30s
log:
  level: info
  format: auto
`,
  )
})

t.test('what cannot hide behind its path is hidden without the file as well', async t => {
  const { config } = loadConfig('/etc/gw/gateway.yaml', { env: SECRETS, kinds, readFile: () => YAML })
  const text = effective(config)
  for (const secret of [SECRETS.API_KEY, SECRETS.KEY, sha256Of(SECRETS.KEY)]) t.notOk(text.includes(secret))
})
