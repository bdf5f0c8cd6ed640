import type { Key } from '../src/config/config.js'
import type { GatewayError } from '../src/errors.js'
import { keyRequests, keyTokens } from '../src/ledger/counters.js'
import type { Claim, Counter, Reading } from '../src/ledger/ledger.js'
import type { HeaderFields, Host, Policy, PolicyFactory } from '../src/policy.js'

/*
 * rate: the plan's speed. Requests per minute, hour and day, and tokens per minute, of the key. Counts under a ceiling of none, too, so that
 * GET /v1/key can show it. Tells the state of the windows in `x-ratelimit-*`. Takes no options.
 */

const REQUEST_WINDOWS = [
  { kind: 'minute', ceiling: 'requests_per_minute', code: 'rate_limit_rpm' },
  { kind: 'hour', ceiling: 'requests_per_hour', code: 'rate_limit_rph' },
  { kind: 'day', ceiling: 'requests_per_day', code: 'rate_limit_rpd' },
] as const

export default ((_options, host): Policy => ({
  name: 'rate',
  admit({ key, at, estimate }) {
    const claims: Claim[] = []
    for (const { kind, ceiling, code } of REQUEST_WINDOWS) {
      claims.push({
        counter: keyRequests(key.name, host.window(kind, at)),
        amount: 1n,
        ceiling: key.plan[ceiling],
        code,
        ends: 'counted',
      })
    }
    claims.push({
      counter: keyTokens(key.name, host.window('minute', at)),
      amount: BigInt(estimate.input + estimate.output),
      ceiling: key.plan.tokens_per_minute,
      code: 'rate_limit_tpm',
    })
    return claims
  },
  respond(exchange, error) {
    // A page that is not metered has no window. A stranger has no ceilings, and is told nothing.
    if (exchange.method !== 'POST') return undefined
    const counters = watched(exchange.key, exchange.at, host)
    if (counters.length === 0) return undefined
    const found: Reading[] = []
    for (const { counter } of counters) {
      for (const reading of exchange.readings) {
        if (!same(reading.counter, counter)) continue
        found.push(reading)
        break
      }
    }
    if (found.length === counters.length) return fields(counters, found, host.now(), error)
    return host.read(counters.map(({ counter }) => counter)).then(readings => fields(counters, readings, host.now(), error))
  },
})) satisfies PolicyFactory

interface Watched {
  readonly counter: Counter
  readonly ceiling: bigint
  readonly code: string
}

/** The counters that have a ceiling, the shorter windows first, tokens last. */
function watched(key: Key, at: number, host: Host): Watched[] {
  const counters: Watched[] = []
  for (const { kind, ceiling, code } of REQUEST_WINDOWS) {
    const most = key.plan[ceiling]
    if (most !== null) counters.push({ counter: keyRequests(key.name, host.window(kind, at)), ceiling: most, code })
  }
  const tokens = key.plan.tokens_per_minute
  if (tokens !== null) counters.push({ counter: keyTokens(key.name, host.window('minute', at)), ceiling: tokens, code: 'rate_limit_tpm' })
  return counters
}

function same(a: Counter, b: Counter): boolean {
  return a.meter === b.meter && a.window.kind === b.window.kind && a.window.start === b.window.start && a.subject === b.subject
}

/** Of the request windows, the one nearest to its end of quota is told: after a refusal, the one that refused. Seconds count from now: an answer may have taken long. */
function fields(counters: readonly Watched[], readings: readonly Reading[], now: number, error: GatewayError | undefined): HeaderFields {
  const told: Record<string, string> = {}
  let nearest: { watched: Watched; left: bigint } | undefined
  const refusing = counters.some(({ code }) => code === error?.code && code !== 'rate_limit_tpm')
  for (let i = 0; i < counters.length; i++) {
    const watched = counters[i] as Watched
    const { posted, pending } = readings[i] as Reading
    const left = watched.ceiling - posted - pending
    if (watched.code === 'rate_limit_tpm') tell(told, 'tokens', watched, left, now)
    else if (refusing ? watched.code === error?.code : nearest === undefined || left < nearest.left) nearest = { watched, left }
  }
  if (nearest !== undefined) tell(told, 'requests', nearest.watched, nearest.left, now)
  return told
}

const NAMES = {
  requests: ['x-ratelimit-limit-requests', 'x-ratelimit-remaining-requests', 'x-ratelimit-reset-requests'],
  tokens: ['x-ratelimit-limit-tokens', 'x-ratelimit-remaining-tokens', 'x-ratelimit-reset-tokens'],
} as const

function tell(told: Record<string, string>, of: 'requests' | 'tokens', { ceiling, counter }: Watched, left: bigint, now: number): void {
  const [limit, remaining, reset] = NAMES[of]
  told[limit] = String(ceiling)
  told[remaining] = String(left > 0n ? left : 0n)
  told[reset] = String(Math.max(1, Math.ceil((counter.window.end - now) / 1000)))
}
