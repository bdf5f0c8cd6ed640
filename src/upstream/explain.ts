import type { ProviderSettings } from '../config/config.js'
import { GatewayError, isGatewayError } from '../errors.js'
import { readFailure, SECRET_MIN, scrub } from './failure.js'
import { type Failure, type Provider, ProviderFailure } from './providers/provider.js'
import { refusalOf, retryAfter } from './refusal.js'
import { refusalBody } from './refusal-body.js'
import { ErrorEvent } from './stream.js'
import { TargetFailure, UNKNOWN } from './trouble.js'

/** The head of an answer that failed, and whose it is. */
export interface Failed {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly provider: Provider
  readonly settings: ProviderSettings
  /** Does the request have this field? */
  readonly asks: (field: string) => boolean
  /** Wall clock, for a `retry-after` that is a date. */
  readonly now: () => number
}

/** What an answer that is no success says, by what has come of its body. */
export function refused(bytes: Buffer, failed: Failed): GatewayError {
  const { status, headers, now } = failed
  const failure = read(status, refusalBody(bytes, headers['content-encoding']), failed)
  const wait = failure.retryAfter ?? retryAfter(headers, now())
  return refusal({ ...failure, status: failure.status ?? status, ...(wait === undefined ? {} : { retryAfter: wait }) }, failed)
}

/** What a failure inside an answer means. */
export function explained(error: unknown, failed: Failed): GatewayError {
  if (isGatewayError(error)) return error
  const { status } = failed
  const failure = error instanceof ErrorEvent ? read(status, error.body, failed) : error instanceof ProviderFailure ? error.failure : {}
  if (failure.torn === true && unframed(failed)) return broke(error, failed)
  if (failure.status !== undefined && failure.status >= 400) return refusal({ ...failure, status: failure.status }, failed)
  const message =
    error instanceof ProviderFailure
      ? scrubbed(error.message, failed)
      : error instanceof ErrorEvent
        ? 'The provider reported an error under a status of success.'
        : 'The provider answered with something that cannot be read.'
  const trouble = { against: 'faint', passing: false } as const
  // A provider's own words reach no log unscrubbed.
  const cause = error instanceof ProviderFailure ? undefined : error
  return new TargetFailure('upstream_invalid_response', message, trouble, { retryable: true, cause })
}

/** The error event of a stream that had begun. */
export function interrupted(error: unknown, failed: Failed): GatewayError {
  const why = explained(error, failed)
  if (why.origin !== 'upstream' || why.code === 'upstream_timeout') return why
  const known = error instanceof ErrorEvent || error instanceof ProviderFailure
  const message = known && why.code !== 'upstream_invalid_response' ? why.message : 'The provider broke off before the answer was whole.'
  return new GatewayError('upstream_error', message, { cause: why })
}

/** The connection ended before the answer did: it may have run. */
export function broke(cause: unknown, { settings }: Pick<Failed, 'settings'>): GatewayError {
  const retryable = settings.retry_unknown
  return new TargetFailure('upstream_error', 'The connection to the provider broke.', UNKNOWN, { retryable, cause })
}

/** The body ends with its connection: nothing says that it has come whole. */
export function unframed({ status, headers }: Pick<Failed, 'status' | 'headers'>): boolean {
  const { 'content-length': length, 'transfer-encoding': chunked } = headers
  return length === undefined && chunked === undefined && status !== 204
}

function read(status: number, body: unknown, { provider }: Failed): Failure {
  try {
    return provider.failure?.(status, body) ?? readFailure(status, body)
  } catch {
    // What a kind can not read, though it should: nothing was said.
    return {}
  }
}

function refusal(failure: Failure & { readonly status: number }, failed: Failed): GatewayError {
  const { message, code, param, ...rest } = failure
  const told = {
    ...rest,
    ...(message === undefined ? {} : { message: scrubbed(message, failed) }),
    ...(code === undefined || showsKey(code, failed) ? {} : { code }),
    ...(param === undefined || showsKey(param, failed) ? {} : { param }),
  }
  return refusalOf(told, failed.asks)
}

/** A code and a parameter are single words: they are passed on as they are, or not at all. */
function showsKey(word: string, { settings: { api_key: key } }: Failed): boolean {
  return key !== null && key.length >= SECRET_MIN && word.includes(key)
}

/** The provider's words as a client, or the log, may see them: all of them pass here. */
function scrubbed(message: string, { settings: { api_key: key } }: Failed): string {
  return scrub(message, key === null ? [] : [key])
}
