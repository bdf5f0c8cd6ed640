import { CODES, GatewayError } from '../errors.js'
import type { Failure } from './providers/provider.js'
import { TargetFailure, type Trouble } from './trouble.js'

/** Of a 429: our money is at its end, which waiting does not mend. Not looked for in messages: Google says «quota» and «billing» of rates, too. */
const BILLING = /insufficient_quota|exceeded_current_quota|billing|insufficient_balance|credit/i

/** The longest wait that is passed on: a month. Seconds. */
const WAIT_MAX_S = 31 * 86_400

/**
 * What a provider's failure means to the client. The client's own faults are passed on in the provider's words; a refusal of the gateway's
 * credentials or credit is the operator's matter and never the client's; all else is the provider's.
 *
 * `sentFields` are those of the request, for `param`.
 */
export function refusalOf(failure: Failure & { readonly status: number }, sentFields: (name: string) => boolean): GatewayError {
  const { status } = failure
  if (status === 401 || status === 402 || status === 403 || (status === 429 && BILLING.test(`${failure.code} ${failure.type}`))) {
    return new TargetFailure(
      'upstream_auth_failed',
      'The provider refuses the credentials or the account of this gateway. Tell its operator.',
      LASTING,
      { retryable: true },
    )
  }
  if (status === 429) {
    const retryAfter = Math.min(WAIT_MAX_S, Math.max(1, Math.ceil(failure.retryAfter ?? 1)))
    const trouble = { ...waiting(failure), against: 'limit' } as const
    return new TargetFailure('upstream_rate_limited', `The provider is at its rate limit. Try again in ${retryAfter} s.`, trouble, {
      retryAfter,
      retryable: true,
      ...(retryAfter > 60 ? { shouldRetry: false } : {}),
    })
  }
  if (status === 400 || status === 413 || status === 422) {
    return new GatewayError(codeOf(failure), failure.message ?? 'The provider refuses this request.', {
      status: status === 413 ? 413 : 400,
      type: 'invalid_request_error',
      origin: 'upstream',
      param: failure.param !== undefined && sentFields(fieldOf(failure.param)) ? failure.param : null,
    })
  }
  if (status === 404) {
    return new TargetFailure(
      'upstream_error',
      'The provider does not know this model, though the gateway does. Tell its operator.',
      LASTING,
      {
        shouldRetry: false,
        retryable: true,
      },
    )
  }
  if (status >= 300 && status < 400) {
    return new TargetFailure(
      'upstream_error',
      'The provider answered with a redirect, which is never followed. Tell the operator.',
      LASTING,
      {
        retryable: true,
      },
    )
  }
  const trouble: Trouble = BUSY.has(status)
    ? { ...waiting(failure), against: 'firm' }
    : { against: status === 502 || status === 504 ? 'firm' : 'faint', passing: false }
  return new TargetFailure('upstream_error', `The provider failed with status ${status}.`, trouble, { retryable: true })
}

/** Only an operator can mend it, and each request tells anew what is to mend: the target is passed over, but not silenced. */
const LASTING: Trouble = { against: 'faint', passing: false }
/** Answers that say: not now. A plain 500 says nothing: some servers give it for a request that they do not like. */
const BUSY: ReadonlySet<number> = new Set([503, 529])

function waiting({ retryAfter }: Failure): { readonly passing: true; readonly waitS?: number } {
  return { passing: true, ...(retryAfter === undefined ? {} : { waitS: retryAfter }) }
}

/** The provider's own word, unless it is one of the gateway's: `draining` would close the client's connection, `insufficient_balance` speak of its wallet. */
function codeOf({ code }: Failure): string {
  return code === undefined || CODES.has(code) ? 'upstream_rejected' : code
}

/** The request's field that a path leads into: `messages` of `messages[2].role`. */
function fieldOf(path: string): string {
  return /^[^.[]*/.exec(path)?.[0] ?? ''
}

/** Seconds that a provider asks to be left alone: `retry-after` in seconds or as a date, `retry-after-ms`; the longest, where there are several. */
export function retryAfter(headers: Readonly<Record<string, string | string[] | undefined>>, now: number): number | undefined {
  return (
    longest(headers['retry-after-ms'], value => Number(value) / 1000) ?? longest(headers['retry-after'], value => secondsOf(value, now))
  )
}

function longest(values: string | string[] | undefined, read: (value: string) => number): number | undefined {
  const waits = [values ?? []].flat().map(value => (value === '' ? Number.NaN : read(value)))
  const meant = waits.filter(seconds => Number.isFinite(seconds) && seconds >= 0)
  return meant.length === 0 ? undefined : Math.max(...meant)
}

function secondsOf(value: string, now: number): number {
  const seconds = Number(value)
  return Number.isNaN(seconds) ? Math.max(0, (Date.parse(value) - now) / 1000) : seconds
}
