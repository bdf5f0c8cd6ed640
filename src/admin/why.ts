import { stringify } from 'yaml'
import type { Config } from '../config/config.js'
import { formatDuration, formatSize } from '../config/durations.js'
import type { Path } from '../config/problems.js'
import type { RecentClaim, RecentExchange } from '../telemetry/recent.js'

/** Why an exchange was refused or failed, in words for an operator, and what would change it. */
export interface Why {
  readonly title: string
  readonly text: readonly string[]
  /** Of the ceiling that said no. Whole numbers of `unit`. */
  readonly figures: {
    readonly unit: string
    readonly ceiling: bigint
    readonly posted: bigint
    readonly held: bigint
    readonly asked: bigint
    /** How much it was too much. */
    readonly over: bigint
  } | null
  /** When the counter begins anew. Milliseconds since the epoch; `null`: it does not, or that is no use. */
  readonly resets_at: number | null
  readonly change: Change | null
  readonly command: string | null
}

/** The place in gateway.yaml, and what stands there now. Of secrets and addresses nothing is shown. */
export interface Change {
  /** `gateway.yaml:12:5` */
  readonly at: string
  readonly lines: readonly { readonly text: string; readonly mark: boolean }[]
  readonly note: string | null
}

export interface WhyFacts {
  /** The one that new requests run under. */
  readonly config: Config
  /** Where a path of it stands. */
  readonly at: (path: Path) => string
}

/** `null`: nothing was wrong with it. */
export function why(exchange: RecentExchange, facts: WhyFacts): Why | null {
  const { code } = exchange.line
  if (code === null) return null
  const claim = exchange.claims.find(({ refused }) => refused)
  if (claim !== undefined && claim.ceiling !== null) return ceilingReached(exchange, claim, claim.ceiling, facts)
  const known = OTHER.get(code)
  const none = { figures: null, resets_at: null, change: null, command: null }
  if (known === undefined) return { title: `Refused with ${code}`, text: ['A policy of your own said no; its log may say more.'], ...none }
  const { title, text, change, command = null } = known
  return { ...none, title, text: [text], change: change?.(exchange, facts) ?? null, command }
}

const NAMES: ReadonlyMap<string, string> = new Map([
  ['requests_per_minute', 'Requests per minute'],
  ['requests_per_hour', 'Requests per hour'],
  ['requests_per_day', 'Requests per day'],
  ['tokens_per_minute', 'Tokens per minute'],
  ['daily_tokens', 'Daily tokens'],
  ['daily_rial', 'Daily budget'],
  ['monthly_rial', 'Monthly cap'],
])
const PLAN: ReadonlyMap<string, string> = new Map([
  ['rate_limit_rpm', 'requests_per_minute'],
  ['rate_limit_rph', 'requests_per_hour'],
  ['rate_limit_rpd', 'requests_per_day'],
  ['rate_limit_tpm', 'tokens_per_minute'],
])
const BUDGET: ReadonlyMap<string, string> = new Map([
  ['key_daily_token_budget_reached', 'daily_tokens'],
  ['key_daily_budget_reached', 'daily_rial'],
  ['monthly_cap_reached', 'monthly_rial'],
])

const EACH: ReadonlyMap<string, string> = new Map([
  ['minute', ' a minute'],
  ['hour', ' an hour'],
  ['day', ' a day'],
  ['month', ' a month'],
])

function ceilingReached(exchange: RecentExchange, claim: RecentClaim, ceiling: bigint, facts: WhyFacts): Why {
  const { code, amount: asked, posted, held, subject } = claim
  const unit = claim.meter === 'rial' ? 'Rial' : claim.meter === 'in_flight' ? 'requests at one time' : claim.meter
  const wallet = code === 'insufficient_balance'
  const never = asked > ceiling && claim.window !== 'all'
  const waits = posted + asked <= ceiling
  const over = posted + held + asked - ceiling
  const name = PLAN.get(code) ?? BUDGET.get(code)
  const what = wallet
    ? `The wallet of ${subject.replace(':', ' ')}`
    : name === undefined
      ? `${words(unit)} of ${subject.replace(':', ' ')}`
      : (NAMES.get(name) ?? name)
  const text = [
    wallet
      ? `The most that it can cost is held before it is forwarded: ${grouped(asked)} Rial. ${grouped(max(0n, ceiling - posted - held))} are left.`
      : `${ceilingOf(exchange, claim)} ${grouped(ceiling)} ${unit}${EACH.get(claim.window) ?? ''}: ${grouped(posted)} used${held > 0n ? `, ${grouped(held)} held by requests under way` : ''}.`,
  ]
  if (never) text.push('It alone asks for more than the ceiling, and no wait makes it fit. A smaller max_tokens asks for less.')
  else if (waits) text.push('What requests under way hold is in the way: there may be room when they end.')
  return {
    title: wallet ? `${what} can not cover it` : never ? `${what}: it alone is larger than the ceiling` : `${what}: the ceiling is reached`,
    text,
    figures: { unit, ceiling, posted, held, asked, over },
    resets_at: never ? null : claim.window_end,
    change: changeOf(exchange, claim, posted + held + asked, facts),
    command: wallet ? `model-gateway wallet credit ${subject.slice('account:'.length)} ${over}` : null,
  }
}

function ceilingOf({ line }: RecentExchange, { code, subject }: RecentClaim): string {
  if (PLAN.has(code)) return `Plan ${line.plan} allows key ${line.key}`
  return BUDGET.has(code) ? `The budget of key ${line.key} allows` : `${words(subject.replace(':', ' '))} may have`
}

/** The line that holds the ceiling, and what it would have to be. */
function changeOf({ line }: RecentExchange, claim: RecentClaim, need: bigint, facts: WhyFacts): Change | null {
  const { config } = facts
  const plan = PLAN.get(claim.code)
  const budget = BUDGET.get(claim.code)
  const note = (now: unknown): string =>
    typeof now === 'bigint' && now !== claim.ceiling
      ? `It was ${grouped(claim.ceiling ?? 0n)} then.`
      : now === null
        ? 'The ceiling is gone since.'
        : `${grouped(need)} or more would have let it pass; null is no ceiling.`
  if (plan !== undefined && line.plan !== null) {
    const value = field(config.plans.get(line.plan), plan)
    return value === undefined ? null : changed(facts, ['plans', line.plan, plan], value, note(value))
  }
  if (budget !== undefined && line.key !== null) {
    const value = field(config.keys.get(line.key)?.budget, budget)
    return value === undefined ? null : changed(facts, ['keys', line.key, 'budget', budget], value, note(value))
  }
  if (claim.code === 'too_many_concurrent') {
    const index = config.policies.findIndex(({ use }) => use === 'concurrency')
    if (index < 0) return null
    const [kind, name = ''] = claim.subject.split(':')
    const settings = kind === 'key' ? { per_key: claim.ceiling } : { per_plan: { [name]: claim.ceiling } }
    const below = kind === 'key' ? ['with', 'per_key'] : ['with', 'per_plan', name]
    const lines = yaml({ policies: [{ use: 'concurrency', with: settings }] }, `${below.at(-1)}:`)
    return { at: facts.at(['policies', index, ...below]), lines, note: null }
  }
  return null
}

function field(from: object | undefined, name: string): unknown {
  return from === undefined ? undefined : (from as Readonly<Record<string, unknown>>)[name]
}

interface Other {
  readonly title: string
  readonly text: string
  readonly change?: (exchange: RecentExchange, facts: WhyFacts) => Change | null
  readonly command?: string
}

const CLIENT = 'The request itself is wrong. Its answer told the client which field, and what is expected there.'

/** Errors that are no ceiling's. */
const OTHER: ReadonlyMap<string, Other> = new Map<string, Other>([
  ['invalid_json', { title: 'Its body is no JSON', text: CLIENT }],
  ['invalid_request', { title: 'Its body is not what this endpoint takes', text: CLIENT }],
  [
    'unsupported_surface',
    { title: 'This model does not answer here', text: 'The model has other surfaces; its card at /v1/models/{id} lists them.' },
  ],
  ['missing_api_key', { title: 'It came without a key', text: 'Clients send the header Authorization: Bearer <key>.', change: keys }],
  [
    'invalid_api_key',
    {
      title: 'Its key is not known here',
      text: 'No key of gateway.yaml has this secret, or the one that has it is disabled or has expired. Clients are told the same for all three.',
      change: keys,
      command: 'model-gateway keys list',
    },
  ],
  [
    'model_not_found',
    {
      title: 'There is no model of this name',
      text: 'Only what stands in models, aliases or the catalog can be called.',
      change: (_, facts) => place(facts, ['models']),
    },
  ],
  [
    'model_not_allowed',
    { title: 'This key may not use this model', text: 'Its own list of models, or that of its plan, does not name it.', change: allowed },
  ],
  ['not_found', { title: 'There is nothing at this path', text: 'The client called a path that no endpoint has.' }],
  ['method_not_allowed', { title: 'Wrong method', text: 'The path exists, but not with this method.' }],
  ['unsupported_media_type', { title: 'Its body is encoded', text: 'Bodies come as they are, without a Content-Encoding.' }],
  ['expectation_failed', { title: 'It expects what can not be', text: 'The header Expect may say 100-continue, and nothing else.' }],
  ['headers_too_large', { title: 'Its header is too large', text: 'A header has at most 16 KiB, and 128 fields.' }],
  [
    'request_too_large',
    {
      title: 'Its body is too large',
      text: 'Bodies have a limit.',
      change: (_, facts) => changed(facts, ['limits', 'body'], formatSize(facts.config.limits.body), null),
    },
  ],
  [
    'request_timeout',
    {
      title: 'It did not arrive in time',
      text: 'The client began to send its body, and did not finish.',
      change: (_, facts) => changed(facts, ['timeout', 'request'], formatDuration(facts.config.timeout.request), null),
    },
  ],
  [
    'client_closed',
    { title: 'The client left', text: 'It closed its connection before the answer was whole. What had come by then was charged.' },
  ],
  [
    'upstream_rejected',
    {
      title: 'The provider found fault with the request',
      text: "The provider's own words were passed on to the client; they are not kept here.",
    },
  ],
  [
    'upstream_error',
    {
      title: 'The provider failed',
      text: 'It answered with an error of its own, or broke off. The attempts below say which target did.',
      change: fallback,
    },
  ],
  [
    'upstream_auth_failed',
    {
      title: "The provider refused the gateway's own key",
      text: 'The client can do nothing about it: the api_key of the provider is wrong, has expired or is out of credit.',
      change: (exchange, facts) => provider(exchange, facts, 'api_key'),
    },
  ],
  [
    'upstream_unavailable',
    {
      title: 'The provider could not be reached',
      text: 'No connection came about, or it was cut before there was an answer.',
      change: (exchange, facts) => provider(exchange, facts, 'base_url') ?? fallback(exchange, facts),
    },
  ],
  [
    'upstream_invalid_response',
    {
      title: 'The provider answered what is no answer',
      text: 'Its bytes were not what its wire has, or there was nothing in them.',
      change: fallback,
    },
  ],
  [
    'upstream_rate_limited',
    {
      title: 'The provider is at its rate limit',
      text: 'Every target of the model answered 429. Another target or a fallback takes over where there is one.',
      change: fallback,
    },
  ],
  [
    'upstream_timeout',
    { title: 'The provider took too long', text: 'It may have worked all the same: a second try may cost twice.', change: timeouts },
  ],
  [
    'overloaded',
    {
      title: 'There was no room for it',
      text: 'Too many requests waited for the provider, their bodies took all the room there is, or every target is being left alone after failures.',
      change: connections,
    },
  ],
  ['draining', { title: 'The gateway was stopping', text: 'It let what was under way end, and took nothing new.' }],
  [
    'ledger_unavailable',
    {
      title: 'The ledger could not be written',
      text: 'Nothing is admitted until the gateway is started anew. Its log says what was wrong.',
    },
  ],
  ['internal_error', { title: 'The gateway met a fault of its own', text: 'Its log has the stack under this request id.' }],
])

function keys(_: RecentExchange, facts: WhyFacts): Change | null {
  return place(facts, ['keys'])
}

function allowed({ line }: RecentExchange, facts: WhyFacts): Change | null {
  const key = line.key === null ? undefined : facts.config.keys.get(line.key)
  if (key === undefined) return null
  if (key.models !== null) return changed(facts, ['keys', key.name, 'models'], key.models, null)
  return key.plan.models === null ? null : changed(facts, ['plans', key.plan.name, 'models'], key.plan.models, null)
}

function fallback({ line }: RecentExchange, facts: WhyFacts): Change | null {
  const model = line.model === null ? undefined : facts.config.models.get(line.model)
  return model === undefined
    ? null
    : changed(facts, ['models', model.id, 'fallback'], model.fallback, 'A model that is tried when this one fails.')
}

function provider({ line }: RecentExchange, facts: WhyFacts, setting: string): Change | null {
  const known = line.provider === null ? undefined : facts.config.providers.get(line.provider)
  if (known === undefined || known.base_url === '') return null
  const path = ['providers', known.name, setting]
  return { at: facts.at(path), lines: yaml(nested(path, '…'), `${setting}:`), note: null }
}

function timeouts({ line }: RecentExchange, facts: WhyFacts): Change | null {
  const known = line.provider === null ? undefined : facts.config.providers.get(line.provider)
  if (known === undefined) return null
  const { connect, first_byte, idle, total } = known.timeout
  const shown = Object.fromEntries(Object.entries({ connect, first_byte, idle, total }).map(([name, ms]) => [name, formatDuration(ms)]))
  return changed(facts, ['providers', known.name, 'timeout'], shown, null)
}

function connections({ line }: RecentExchange, facts: WhyFacts): Change | null {
  const known = line.provider === null ? undefined : facts.config.providers.get(line.provider)
  return known === undefined ? null : changed(facts, ['providers', known.name, 'max_connections'], known.max_connections, null)
}

/** A section as a whole: where it stands, and no word of what is in it. */
function place(facts: WhyFacts, path: Path): Change {
  const name = String(path.at(-1))
  return { at: facts.at(path), lines: [{ text: `${name}:`, mark: true }], note: null }
}

function changed(facts: WhyFacts, path: Path, value: unknown, note: string | null): Change {
  return { at: facts.at(path), lines: yaml(nested(path, value), `${path.at(-1)}:`), note }
}

function nested(path: Path, value: unknown): unknown {
  return path.reduceRight<unknown>((below, name) => ({ [name]: below }), value)
}

/** The lines of a value as YAML; from the first that begins with `from` on they are the ones to change. */
function yaml(value: unknown, from: string): Change['lines'] {
  const lines = stringify(value, { lineWidth: 0, flowCollectionPadding: false }).trimEnd().split('\n')
  const first = lines.findLastIndex(line =>
    line
      .trimStart()
      .replace(/^["']|["'](?=:)/g, '')
      .startsWith(from),
  )
  return lines.map((text, i) => ({ text, mark: i >= first }))
}

function words(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

function grouped(amount: bigint): string {
  return String(amount).replace(/\B(?=(\d{3})+$)/g, ',')
}

function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}
