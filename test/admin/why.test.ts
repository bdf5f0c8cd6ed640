import { join } from 'node:path'
import t, { type Test } from 'tap'
import { why } from '../../src/admin/why.js'
import { loadConfig } from '../../src/config/load.js'
import { CODES } from '../../src/errors.js'
import type { RecentClaim, RecentExchange } from '../../src/telemetry/recent.js'
import { loadKinds } from '../../src/upstream/kinds.js'

const YAML = `providers:
  up: {kind: openai, base_url: "https://secret-host.example/v1", api_key: sk-very-secret}
models:
  up/m: {price: {input: 1, output: 1}, max_output_tokens: 100}
policies: [auth, rate, {use: concurrency, with: {per_key: 3, per_plan: {p: 8}}}, budget, hold]
plans:
  p:
    requests_per_minute: 10
    tokens_per_minute: 1000
accounts: {acme: {opening_balance_rial: 100}}
keys:
  a:
    account: acme
    plan: p
    secret: mgk_a_secret_of_a
    budget: {daily_tokens: 5000, daily_rial: 600, monthly_rial: null}
    models: [up/*]
`
const kinds = await loadKinds()

function facts(t: Test, yaml = YAML) {
  const folder = t.testdir({ 'gateway.yaml': yaml })
  const { config, at } = loadConfig(join(folder, 'gateway.yaml'), { env: {}, kinds, cwd: folder })
  return { config, at }
}

const CLAIM: RecentClaim = {
  policy: 'rate',
  code: 'rate_limit_rpm',
  meter: 'requests',
  subject: 'key:a',
  window: 'minute',
  window_end: 60_000,
  amount: 1n,
  posted: 10n,
  held: 0n,
  ceiling: 10n,
  refused: true,
}

function refused(claim: Partial<RecentClaim>, code = claim.code ?? CLAIM.code): RecentExchange {
  const line = { code, key: 'a', plan: 'p', model: 'up/m', provider: 'up' }
  return { state: 'refused', claims: [{ ...CLAIM, ...claim }], line } as unknown as RecentExchange
}

const failed = (code: string | null) => ({ ...refused({}), claims: [], line: { ...refused({}).line, code } }) as RecentExchange

t.test("a plan's ceiling: the figures, and the line of gateway.yaml that holds it", async t => {
  t.same(why(refused({}), facts(t)), {
    title: 'Requests per minute: the ceiling is reached',
    text: ['Plan p allows key a 10 requests a minute: 10 used.'],
    figures: { unit: 'requests', ceiling: 10n, posted: 10n, held: 0n, asked: 1n, over: 1n },
    resets_at: 60_000,
    change: {
      at: 'gateway.yaml:8:26',
      lines: [
        { text: 'plans:', mark: false },
        { text: '  p:', mark: false },
        { text: '    requests_per_minute: 10', mark: true },
      ],
      note: '11 or more would have let it pass; null is no ceiling.',
    },
    command: null,
  })
})

t.test('a request that alone is larger than the ceiling: no wait is offered', async t => {
  const found = why(refused({ code: 'rate_limit_tpm', meter: 'tokens', amount: 32_776n, posted: 0n, ceiling: 1000n }), facts(t))
  t.equal(found?.title, 'Tokens per minute: it alone is larger than the ceiling')
  t.match(found?.text.join(' '), /no wait makes it fit/)
  t.equal(found?.resets_at, null)
  t.match(found?.change, { at: 'gateway.yaml:9:24', note: '32,776 or more would have let it pass; null is no ceiling.' })
})

t.test('what is only held by others says so', async t => {
  const found = why(refused({ posted: 2n, held: 8n }), facts(t))
  t.match(found?.text, ['Plan p allows key a 10 requests a minute: 2 used, 8 held by requests under way.', /may be room when they end/])
})

t.test("a key's budget; a ceiling that is another one by now, or none", async t => {
  const budget = {
    code: 'key_daily_budget_reached',
    meter: 'rial',
    window: 'day',
    amount: 400n,
    posted: 300n,
    ceiling: 600n,
    policy: 'budget',
  }
  t.match(why(refused(budget), facts(t)), {
    title: 'Daily budget: the ceiling is reached',
    change: { at: 'gateway.yaml:16:46', note: '700 or more would have let it pass; null is no ceiling.' },
  })
  t.equal(why(refused({ ...budget, ceiling: 500n }), facts(t))?.change?.note, 'It was 500 then.')
  const month = { ...budget, code: 'monthly_cap_reached', window: 'month' }
  t.equal(why(refused(month), facts(t))?.change?.note, 'The ceiling is gone since.')
  t.equal(why(refused(budget), facts(t, YAML.replaceAll('  a:\n', '  b:\n')))?.change, null, 'a key that is no more')
})

t.test('a wallet: the command that fills it, with what is missing', async t => {
  const wallet = {
    code: 'insufficient_balance',
    meter: 'rial',
    subject: 'account:acme',
    window: 'all',
    window_end: null,
    amount: 1500n,
    posted: 40n,
    held: 10n,
    ceiling: 100n,
  }
  t.same(why(refused(wallet), facts(t)), {
    title: 'The wallet of account acme can not cover it',
    text: ['The most that it can cost is held before it is forwarded: 1,500 Rial. 50 are left.'],
    figures: { unit: 'Rial', ceiling: 100n, posted: 40n, held: 10n, asked: 1500n, over: 1450n },
    resets_at: null,
    change: null,
    command: 'model-gateway wallet credit acme 1450',
  })
})

t.test('requests at one time: the place in the list of policies', async t => {
  const many = { code: 'too_many_concurrent', meter: 'in_flight', window: 'all', window_end: null, posted: 0n, held: 3n, ceiling: 3n }
  const found = why(refused(many), facts(t))
  t.equal(found?.change?.at, 'gateway.yaml:5:59')
  t.same(
    found?.change?.lines.filter(({ mark }) => mark).map(({ text }) => text.trim()),
    ['per_key: 3'],
  )
  t.equal(why(refused({ ...many, subject: 'plan:p', ceiling: 8n, held: 8n }), facts(t))?.change?.at, 'gateway.yaml:5:76')
})

t.test('every code has words of its own, and a policy of others is named as such', async t => {
  const all = facts(t)
  const titles = new Set<string>()
  const ceilings = new Set(
    [...CODES.keys()].filter(code => /rate_limit_r|rate_limit_t|key_daily|monthly_cap|insufficient|too_many/.test(code)),
  )
  for (const code of CODES.keys()) {
    if (ceilings.has(code)) continue
    const found = why(failed(code), all)
    t.notMatch(found?.title, /Refused with/, code)
    t.notOk(titles.has(found?.title ?? ''), code)
    titles.add(found?.title ?? '')
  }
  t.equal(why(failed('closed_at_night'), all)?.title, 'Refused with closed_at_night')
  t.equal(why(failed(null), all), null)
})

t.test('the place is there for other codes, too; of secrets and addresses nothing is', async t => {
  const all = facts(t)
  t.match(why(failed('model_not_allowed'), all)?.change, {
    at: 'gateway.yaml:17:13',
    lines: [{}, {}, { text: '    models:', mark: true }, { mark: true }],
  })
  t.match(why(failed('request_too_large'), all)?.change?.lines.at(-1), { text: /body: 32MiB/, mark: true })
  t.match(
    why(failed('upstream_timeout'), all)?.change?.lines.some(({ text }) => /first_byte: /.test(text)),
    true,
  )
  t.match(why(failed('upstream_auth_failed'), all)?.change, {
    at: /^gateway.yaml:2:/,
    lines: [{}, {}, { text: '    api_key: …', mark: true }],
  })
  for (const code of CODES.keys()) {
    const said = JSON.stringify(why(failed(code), all), (_, value) => (typeof value === 'bigint' ? String(value) : value))
    t.notMatch(said, /secret-host|sk-very|mgk_/, code)
  }
})
