import t, { type Test } from 'tap'
import { type Answer, gateway, inspect, metric, yaml } from '../support/gateway.js'
import { gate, provider } from '../support/provider.js'
import { wallClock } from '../support/wall-clock.js'

/*
 * No ceiling is ever crossed by admission: each of the eight, by 60 requests at once on a key with room for exactly 7 of them.
 */

const ROOM = 7
const AT_ONCE = 60
/** What the scripted provider reports, and what that costs at the prices below. */
const ACTUAL = { requests: 1, tokens: 11, rial: 9 + 2 * 2 }
const BODY = { model: 'up/m', messages: [{ role: 'user', content: 'How high is the sky?' }], max_tokens: 20 }

interface Ceiling {
  readonly name: string
  readonly code: string
  readonly status: number
  readonly type: string
  readonly meter: keyof typeof ACTUAL
  /** In /v1/key. */
  readonly limit: string
  readonly usage: string
  readonly remaining: string
  readonly resets: string | null
  /** What is said in `x-ratelimit-*`. */
  readonly told: 'requests' | 'tokens' | null
  readonly yaml: (ceiling: number) => { plan?: string; budget?: string; balance?: number }
}

const row = (
  name: string,
  code: string,
  [status, type]: readonly [number, string],
  meter: Ceiling['meter'],
  [limit, usage, remaining = usage]: readonly [string, string, string?],
  resets: string | null,
  told: Ceiling['told'],
  yaml: Ceiling['yaml'],
): Ceiling => ({ name, code, status, type, meter, limit, usage, remaining, resets, told, yaml })

const RATE = [429, 'rate_limit_error'] as const
const BUDGET = [429, 'insufficient_quota'] as const
const MONEY = [402, 'insufficient_quota'] as const
const plan = (name: string) => (ceiling: number) => ({ plan: `{${name}: ${ceiling}}` })
const budget = (name: string) => (ceiling: number) => ({ budget: `{${name}: ${ceiling}}` })
const MINUTE = '2026-11-21T12:15:00+03:30'
const HOUR = '2026-11-21T13:00:00+03:30'
const DAY = '2026-11-22T00:00:00+03:30'
const MONTH = '2026-12-01T00:00:00+03:30'

const CEILINGS: readonly Ceiling[] = [
  row(
    'rpm',
    'rate_limit_rpm',
    RATE,
    'requests',
    ['requests_per_minute', 'requests_this_minute'],
    MINUTE,
    'requests',
    plan('requests_per_minute'),
  ),
  row('rph', 'rate_limit_rph', RATE, 'requests', ['requests_per_hour', 'requests_this_hour'], HOUR, 'requests', plan('requests_per_hour')),
  row('rpd', 'rate_limit_rpd', RATE, 'requests', ['requests_per_day', 'requests_today'], DAY, 'requests', plan('requests_per_day')),
  row('tpm', 'rate_limit_tpm', RATE, 'tokens', ['tokens_per_minute', 'tokens_this_minute'], MINUTE, 'tokens', plan('tokens_per_minute')),
  row(
    'day-tokens',
    'key_daily_token_budget_reached',
    BUDGET,
    'tokens',
    ['daily_token_budget', 'tokens_today'],
    DAY,
    null,
    budget('daily_tokens'),
  ),
  row(
    'day-rial',
    'key_daily_budget_reached',
    BUDGET,
    'rial',
    ['daily_budget_rial', 'spend_today_rial', 'budget_today_rial'],
    DAY,
    null,
    budget('daily_rial'),
  ),
  row(
    'month-rial',
    'monthly_cap_reached',
    MONEY,
    'rial',
    ['monthly_budget_rial', 'spend_mtd_rial', 'budget_rial'],
    MONTH,
    null,
    budget('monthly_rial'),
  ),
  row('wallet', 'insufficient_balance', MONEY, 'rial', ['', ''], null, null, balance => ({ balance })),
]

const secret = (name: string): string => `mgk_secret_of_${name.replace('-', '_')}`
const auth = (name: string): Record<string, string> => ({ authorization: `Bearer ${secret(name)}` })

/** One key for each ceiling, with a plan and a wallet of its own, and two that show what one request asks for. */
function config(url: string, asked: Record<Ceiling['meter'], number> | null): string {
  const probes = [
    { name: 'probe-tokens', plan: '{tokens_per_minute: 1}' },
    { name: 'probe-rial', budget: '{daily_rial: 1}' },
  ]
  // One request less one unit is left over, so that an admission that rounds or compares wrongly shows.
  const measured =
    asked === null ? [] : CEILINGS.map(one => ({ name: one.name, ...one.yaml(ROOM * asked[one.meter] + asked[one.meter] - 1) }))
  const keys: { name: string; plan?: string; budget?: string; balance?: number }[] = [...probes, ...measured]
  const lines = (of: (key: (typeof keys)[number]) => string): string => keys.map(key => `  ${key.name}: ${of(key)}`).join('\n')
  return `
ledger: {path: data/ledger.db, durability: process}
providers:
  up: {kind: openai, base_url: "${url}", api_key: sk-upstream-secret, insecure: true}
models:
  up/m: {price: {input: 1000000, output: 2000000}, max_output_tokens: 4096, default_max_tokens: 100, estimate: bound}
plans:
${lines(key => key.plan ?? '{}')}
accounts:
${lines(key => `{opening_balance_rial: ${key.balance ?? 1_000_000_000}}`)}
keys:
${lines(key => `{account: ${key.name}, plan: ${key.name}, secret: ${secret(key.name)}, budget: ${key.budget ?? '{}'}}`)}
`
}

t.test('60 requests at once on a key with room for 7: 7 reach the provider, 53 are refused, and nothing stays pending', async t => {
  const clock = wallClock(t, '2026-11-21T08:44:05Z')
  await clock.stop('2026-11-21T08:44:05Z')
  const up = await provider(t)
  const running = await gateway(t, config(up.url, null), { env: clock.env })
  const probe = async (name: string): Promise<number> =>
    (await running.post('/v1/chat/completions', BODY, auth(name))).json.error.details.asked
  const asked = { requests: 1, tokens: await probe('probe-tokens'), rial: await probe('probe-rial') }
  await running.reload(config(up.url, asked))

  for (const ceiling of CEILINGS) {
    await t.test(ceiling.code, async t => {
      const { name, meter } = ceiling
      const each = asked[meter]
      const most = ROOM * each + each - 1
      const keyStatus = async () => (await running.get('/v1/key', auth(name))).json
      const doors = gate()
      up.script = doors.script
      up.seen.length = 0
      const refused: Answer[] = []
      let told!: () => void
      const allTold = new Promise<void>(resolve => {
        told = resolve
      })
      const from = clock.now()
      const all = Array.from({ length: AT_ONCE }, async () => {
        const answer = await running.post('/v1/chat/completions', BODY, auth(name))
        if (answer.status !== 200 && refused.push(answer) === AT_ONCE - ROOM) told()
        return answer
      })
      await allTold
      const until = clock.now()
      while (up.seen.length < ROOM) await new Promise(resolve => setTimeout(resolve, 10))
      t.equal(up.seen.length, ROOM, 'requests that the provider saw while all were waiting')

      const status = await keyStatus()
      t.equal(held(status, ceiling), ROOM * each, 'held while they are under way')
      t.equal(used(status, ceiling), 0)

      doors.open()
      const answers = await Promise.all(all)
      const whole = answers.filter(answer => answer.status === 200)
      t.equal(whole.length, ROOM)
      t.equal(refused.length, AT_ONCE - ROOM)
      t.equal(up.seen.length, ROOM, 'a refused request reached the provider')
      for (const answer of refused) checkRefusal(t, answer, ceiling, { each, most, from, until })
      if (ceiling.told === 'requests') {
        const left = whole.map(answer => Number(answer.headers.get('x-ratelimit-remaining-requests')))
        t.same(left.sort(), [0, 1, 2, 3, 4, 5, 6], 'each admission tells what is left after it')
      }
      if (ceiling.told === 'tokens') {
        const left = whole.map(answer => Number(answer.headers.get('x-ratelimit-remaining-tokens'))).sort((a, b) => a - b)
        t.same(
          left,
          Array.from({ length: ROOM }, (_, i) => most - (ROOM - i) * each),
        )
      }

      const after = await keyStatus()
      t.equal(held(after, ceiling), 0, 'nothing is pending afterwards')
      t.equal(used(after, ceiling), ROOM * ACTUAL[meter])
      if (name !== 'wallet') {
        t.equal(after.limits[ceiling.limit], most)
        t.equal(after.usage[ceiling.usage] + after.remaining[ceiling.remaining], most, 'usage and remaining make the limit')
      }
      t.same(
        [after.usage.requests_today, after.usage.tokens_today, after.usage.spend_today_rial, after.usage.spend_mtd_rial],
        [ROOM, ROOM * ACTUAL.tokens, ROOM * ACTUAL.rial, ROOM * ACTUAL.rial],
        'the refused are counted nowhere',
      )
      t.equal(await metric(running, 'model_gateway_holds_open'), 0)
      t.equal(await metric(running, 'model_gateway_held_rial'), 0)
    })
  }

  await running.stop()
  await inspect(running.folder, async ledger => {
    t.same(await ledger.verify(), [], 'counters and records agree')
    t.same(await ledger.open(), [])
    const records = await ledger.records({})
    t.equal(records.length, CEILINGS.length * ROOM, 'a refused request leaves no record')
    t.ok(records.every(record => record.state === 'settled' && record.cost_rial === BigInt(ACTUAL.rial)))
  })
})

/** Of what a key is told of itself. */
interface KeyStatus {
  readonly usage: Readonly<Record<string, number>>
  readonly wallet: { readonly held_rial: number }
}

function held(status: KeyStatus, { name, usage }: Ceiling): number | undefined {
  return name === 'wallet' ? status.wallet.held_rial : status.usage[`held_${usage}`]
}

function used(status: KeyStatus, { name, usage }: Ceiling): number | undefined {
  return name === 'wallet' ? status.usage.spend_mtd_rial : status.usage[usage]
}

interface Figures {
  readonly each: number
  readonly most: number
  readonly from: number
  readonly until: number
}

/** Status, code, type, figures and headers of one refusal while 7 requests are held. */
function checkRefusal(t: Test, answer: Answer, ceiling: Ceiling, { each, most, from, until }: Figures): void {
  const { status, headers, json } = answer
  const { message, ...error } = json.error
  const details = { ceiling: most, posted: 0, held: ROOM * each, asked: each, resets_at: ceiling.resets, permanent: false }
  t.same({ status, ...error }, { status: ceiling.status, type: ceiling.type, param: null, code: ceiling.code, details })
  t.ok(message.includes(`ceiling ${most}, used 0, held ${ROOM * each}`) && message.includes(String(each)), message)
  t.equal(json.request_id, headers.get('x-request-id'))
  const wait = Number(headers.get('retry-after'))
  if (ceiling.status === 402) {
    t.equal(wait, 1, 'only open holds stand in the way')
    t.equal(headers.get('x-should-retry'), null)
  } else {
    const end = Date.parse(ceiling.resets as string)
    t.ok(wait >= Math.ceil((end - until) / 1000) && wait <= Math.ceil((end - from) / 1000), `retry-after ${wait}`)
    t.equal(headers.get('x-should-retry'), ceiling.type === 'insufficient_quota' || wait > 60 ? 'false' : null)
  }
  const told = ceiling.told
  for (const of of ['requests', 'tokens'] as const) {
    if (told !== of) {
      t.equal(headers.get(`x-ratelimit-limit-${of}`), null)
      continue
    }
    t.equal(headers.get(`x-ratelimit-limit-${of}`), String(most))
    t.equal(headers.get(`x-ratelimit-remaining-${of}`), String(of === 'requests' ? 0 : each - 1))
    t.ok(Math.abs(Number(headers.get(`x-ratelimit-reset-${of}`)) - wait) <= 1)
  }
}

t.test('what costs more than a ledger can hold is refused, and nothing is held or forwarded', async t => {
  const up = await provider(t)
  const running = await gateway(t, yaml(up.url).replace('{input: 1000000,', '{request: 9007199254740991, input: 1000000,'))
  const body = { model: 'up/m', messages: [{ role: 'user', content: 'Hello' }] }
  t.match(await running.post('/v1/chat/completions', body), {
    status: 400,
    json: {
      error: {
        code: 'invalid_request',
        message: /^This request may cost 900719925474\d{4} Rial, more than can be held for one \(9007199254740991\)\./,
      },
    },
  })
  t.equal(up.seen.length, 0)
  t.equal(await running.stop(), 0)
  await inspect(running.folder, async ledger => {
    t.strictSame(await ledger.open(), [])
    t.strictSame(await ledger.verify(), [])
  })
})
