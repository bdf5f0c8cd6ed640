import { GatewayError } from './errors.js'
import type { Asked } from './exchange.js'
import { AMOUNT_MAX } from './ledger/cells.js'
import type { Admission, Claim } from './ledger/ledger.js'

type Refused = Extract<Admission, { admitted: false }>

interface Words {
  /** What is full, of whom. */
  readonly what: (exchange: Asked, subject: string) => string
  readonly unit: string
  /** What to change to make room. */
  readonly remedy: string
}

const WORDS: ReadonlyMap<string, Words> = new Map([
  ['rate_limit_rpm', plan('Requests per minute', 'requests', 'requests_per_minute')],
  ['rate_limit_rph', plan('Requests per hour', 'requests', 'requests_per_hour')],
  ['rate_limit_rpd', plan('Requests per day', 'requests', 'requests_per_day')],
  ['rate_limit_tpm', plan('Tokens per minute', 'tokens', 'tokens_per_minute')],
  ['key_daily_token_budget_reached', key('Daily tokens', 'tokens', 'daily_tokens')],
  ['key_daily_budget_reached', key('Daily budget', 'Rial', 'daily_rial')],
  ['monthly_cap_reached', key('Monthly cap', 'Rial', 'monthly_rial')],
  ['too_many_concurrent', { what: concurrent, unit: 'requests at one time', remedy: 'raise the ceiling of the policy concurrency' }],
  ['insufficient_balance', { what: ({ key }) => `Wallet of account ${key.account}`, unit: 'Rial', remedy: 'credit the account' }],
])

function plan(name: string, unit: string, ceiling: string): Words {
  return { what: ({ key }) => `${name} of key ${key.name}`, unit, remedy: `raise ${ceiling} of its plan` }
}

function concurrent(_: Asked, subject: string): string {
  return `Requests at one time of ${subject.replace(':', ' ')}`
}

function key(name: string, unit: string, ceiling: string): Words {
  return { what: ({ key }) => `${name} of key ${key.name}`, unit, remedy: `raise budget.${ceiling}` }
}

/** Waiting longer than this inside a client's retry loop helps nobody. Seconds. */
const PATIENCE_S = 60

/** The ledger's no, as the client gets it: the figures, when there is room again, and what to do. `iso` writes a moment in the configured zone. */
export function refusal({ refused, reading }: Refused, exchange: Asked, now: number, iso: (ms: number) => string): GatewayError {
  const { code, amount, counter } = refused
  const ceiling = reading.ceiling ?? 0n
  const words = WORDS.get(code) ?? { what: () => `Ceiling ${code}`, unit: counter.meter, remedy: 'raise it' }
  const end = counter.window.end
  const resets = Number.isFinite(end)
  // A wallet can be credited at any time.
  const permanent = amount > ceiling && (counter.window.kind !== 'all' || refused.ends === 'released')
  const onlyHeld = reading.posted + amount <= ceiling
  const wait = Math.max(1, Math.ceil((end - now) / 1000))
  const figures = `ceiling ${ceiling}, used ${reading.posted}, held ${reading.pending}, this request needs up to ${amount} ${words.unit}`
  const status = WORDS.has(code) ? undefined : 429
  const paymentRequired = code === 'insufficient_balance' || code === 'monthly_cap_reached'
  const retryAfter = paymentRequired ? (onlyHeld && reading.pending > 0n ? 1 : undefined) : resets ? wait : 1
  return new GatewayError(
    code,
    `${words.what(exchange, counter.subject)} reached: ${figures}. ${advice(refused, permanent, words.remedy, iso)}`,
    {
      ...(status === undefined ? {} : { status }),
      ...(retryAfter === undefined ? {} : { retryAfter }),
      ...(!paymentRequired && (permanent || (retryAfter ?? 0) > PATIENCE_S) ? { shouldRetry: false } : {}),
      details: {
        ceiling: Number(ceiling),
        posted: Number(reading.posted),
        held: Number(reading.pending),
        asked: Number(amount),
        resets_at: resets ? iso(end) : null,
        permanent,
      },
    },
  )
}

function advice({ ends, counter: { meter, window } }: Claim, permanent: boolean, remedy: string, iso: (ms: number) => string): string {
  if (ends === 'released' && !permanent) return `Wait until one has ended, or ${remedy}.`
  // What a request uses of other meters is not the client's to choose.
  const less = meter === 'tokens' || meter === 'rial' ? 'ask for less (a smaller max_tokens), or ' : ''
  if (permanent) return `It can never fit: ${less}${remedy}.`
  if (Number.isFinite(window.end)) return `There is room again at ${iso(window.end)}, or ${remedy}.`
  const all = `${less}${remedy}.`
  return `${all.charAt(0).toUpperCase()}${all.slice(1)}`
}

/** No wallet can hold as much, and no counter count it. */
export function beyondLedger(rial: bigint): GatewayError {
  return new GatewayError(
    'invalid_request',
    `This request may cost ${rial} Rial, more than can be held for one (${AMOUNT_MAX}). Ask for less (a smaller max_tokens), or tell the operator: the price of its model may be wrong.`,
  )
}
