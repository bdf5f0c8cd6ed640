import { checkField } from './field.js'

/** Who is to blame: labels metrics and chooses the log level. */
export type Origin = 'client' | 'policy' | 'upstream' | 'gateway'

/** The figures of a refusal by a counter. Amounts are Rial, tokens or requests, as the ceiling is. */
export interface ErrorDetails {
  readonly ceiling: number | null
  readonly posted: number
  readonly held: number
  readonly asked: number
  /** ISO 8601 with offset; `null` where nothing resets by itself. */
  readonly resets_at: string | null
  /** True when the request alone can never fit: waiting is no use, asking for less is. */
  readonly permanent: boolean
}

export interface ErrorOptions {
  /** For a code that is not in the table: its status. */
  readonly status?: number
  readonly type?: string
  /** The request's field that is to blame, as a path: `messages[2].role`. */
  readonly param?: string | null
  /** Whole seconds ≥ 1. */
  readonly retryAfter?: number
  /** `x-should-retry`: sent only where it is set. */
  readonly shouldRetry?: boolean
  readonly details?: ErrorDetails
  readonly origin?: Origin
  /** Another target may be tried: nothing of this request has run. */
  readonly retryable?: boolean
  readonly cause?: unknown
  /** Further header fields of the answer. */
  readonly headers?: Readonly<Record<string, string>>
}

interface Row {
  readonly status: number
  readonly type: string
  readonly origin: Origin
  readonly shouldRetry?: boolean
}

const row = (status: number, type: string, origin: Origin, shouldRetry?: boolean): Row =>
  shouldRetry === undefined ? { status, type, origin } : { status, type, origin, shouldRetry }

/** Every code that the gateway itself can answer with. */
export const CODES: ReadonlyMap<string, Row> = new Map([
  ['invalid_json', row(400, 'invalid_request_error', 'client')],
  ['invalid_request', row(400, 'invalid_request_error', 'client')],
  ['unsupported_surface', row(400, 'invalid_request_error', 'client')],
  ['upstream_rejected', row(400, 'invalid_request_error', 'upstream')],
  ['missing_api_key', row(401, 'authentication_error', 'client')],
  ['invalid_api_key', row(401, 'authentication_error', 'client')],
  ['insufficient_balance', row(402, 'insufficient_quota', 'policy')],
  ['monthly_cap_reached', row(402, 'insufficient_quota', 'policy')],
  ['model_not_allowed', row(403, 'permission_error', 'policy')],
  ['model_not_found', row(404, 'invalid_request_error', 'client')],
  ['not_found', row(404, 'invalid_request_error', 'client')],
  ['method_not_allowed', row(405, 'invalid_request_error', 'client')],
  ['request_timeout', row(408, 'invalid_request_error', 'client', true)],
  ['request_too_large', row(413, 'invalid_request_error', 'client')],
  ['unsupported_media_type', row(415, 'invalid_request_error', 'client', false)],
  ['expectation_failed', row(417, 'invalid_request_error', 'client')],
  ['rate_limit_rpm', row(429, 'rate_limit_error', 'policy')],
  ['rate_limit_rph', row(429, 'rate_limit_error', 'policy')],
  ['rate_limit_rpd', row(429, 'rate_limit_error', 'policy')],
  ['rate_limit_tpm', row(429, 'rate_limit_error', 'policy')],
  ['too_many_concurrent', row(429, 'rate_limit_error', 'policy')],
  ['key_daily_token_budget_reached', row(429, 'insufficient_quota', 'policy', false)],
  ['key_daily_budget_reached', row(429, 'insufficient_quota', 'policy', false)],
  ['upstream_rate_limited', row(429, 'upstream_error', 'upstream')],
  ['headers_too_large', row(431, 'invalid_request_error', 'client')],
  ['client_closed', row(499, 'client_closed', 'client')],
  ['internal_error', row(500, 'server_error', 'gateway', false)],
  ['upstream_error', row(502, 'upstream_error', 'upstream')],
  ['upstream_auth_failed', row(502, 'upstream_error', 'upstream', false)],
  ['upstream_unavailable', row(502, 'upstream_error', 'upstream')],
  ['upstream_invalid_response', row(502, 'upstream_error', 'upstream')],
  ['overloaded', row(503, 'service_unavailable', 'gateway')],
  ['draining', row(503, 'service_unavailable', 'gateway')],
  ['ledger_unavailable', row(503, 'service_unavailable', 'gateway')],
  ['upstream_timeout', row(504, 'upstream_error', 'upstream', false)],
])

const BRAND = Symbol.for('model-gateway.error')

/** An error that a client may see: its code, its words and its figures. All else that is thrown is a bug. */
export class GatewayError extends Error {
  readonly [BRAND] = true
  readonly code: string
  readonly status: number
  readonly type: string
  readonly param: string | null
  readonly retryAfter: number | undefined
  readonly shouldRetry: boolean | undefined
  readonly details: ErrorDetails | undefined
  readonly origin: Origin
  readonly retryable: boolean
  readonly headers: Readonly<Record<string, string>> | undefined

  constructor(code: string, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'GatewayError'
    const known = CODES.get(code)
    this.code = code
    this.status = options.status ?? known?.status ?? 403
    this.type = options.type ?? known?.type ?? typeOf(this.status)
    this.param = options.param ?? null
    this.retryAfter = options.retryAfter ?? (this.status === 503 || this.status === 429 ? 1 : undefined)
    this.shouldRetry = options.shouldRetry ?? known?.shouldRetry
    this.details = options.details
    this.origin = options.origin ?? known?.origin ?? 'policy'
    this.retryable = options.retryable ?? false
    this.headers = options.headers
  }
}

function typeOf(status: number): string {
  if (status === 429) return 'rate_limit_error'
  if (status >= 500) return 'server_error'
  return status === 403 ? 'permission_error' : 'invalid_request_error'
}

/** True for our own class and for a copy of it that another package brought along. */
export function isGatewayError(value: unknown): value is GatewayError {
  return typeof value === 'object' && value !== null && (value as { [BRAND]?: unknown })[BRAND] === true
}

/** The body of every error answer, as JSON text. */
export function errorBody(error: GatewayError, requestId: string): string {
  return JSON.stringify({
    error: {
      message: error.message,
      type: error.type,
      param: error.param,
      code: error.code,
      ...(error.details === undefined ? {} : { details: error.details }),
    },
    request_id: requestId,
  })
}

/**
 * What is answered for a throw: a GatewayError, if it can be written. Anything else is a fault, the `cause` of what is answered, and nothing of
 * it reaches the client.
 */
export function asGatewayError(value: unknown): GatewayError {
  let cause = value
  if (isGatewayError(value)) {
    cause = unsendable(value)
    if (cause === null) return value
  }
  return new GatewayError('internal_error', 'The gateway met an error of its own. Quote the request id to its operator.', { cause })
}

/** Why no answer can be made of an error; policies make their own. */
function unsendable({ code, status, headers, details, param }: GatewayError): unknown {
  if (!Number.isInteger(status) || status < 400 || status > 599)
    return new RangeError(`The status of the error ${code} has to be a whole number from 400 to 599, got ${status}`)
  try {
    for (const name in headers) checkField(name, headers[name])
    if (details !== undefined || param !== null) JSON.stringify([details, param])
    return null
  } catch (fault) {
    return fault
  }
}
