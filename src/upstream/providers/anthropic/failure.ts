import { isObject } from '../../../json.js'
import type { Failure } from '../provider.js'

/** The HTTP status that each type of error stands for: inside a stream there is no other. */
const STATUS: ReadonlyMap<unknown, number> = new Map([
  ['invalid_request_error', 400],
  ['authentication_error', 401],
  ['billing_error', 402],
  ['permission_error', 403],
  ['not_found_error', 404],
  ['request_too_large', 413],
  ['rate_limit_error', 429],
  ['api_error', 500],
  ['timeout_error', 504],
  ['overloaded_error', 529],
])

const TOO_LONG = /prompt is too long|exceeds? (the )?context (limit|window)/i

/** An operator's empty purse is reported as the client's mistake. */
const NO_CREDIT = /credit balance is too low/i

/** Reads `{"type": "error", "error": {"type", "message", "details"}}`. */
export function failureOf(status: number, body: unknown): Failure {
  const error = isObject(body) && isObject(body.error) ? body.error : {}
  const message = typeof error.message === 'string' ? error.message : ''
  const meant = NO_CREDIT.test(message) ? 402 : STATUS.get(error.type)
  const code = TOO_LONG.test(message) ? 'context_length_exceeded' : isObject(error.details) ? error.details.error_code : undefined
  return {
    ...(meant === undefined || meant === status ? {} : { status: meant }),
    ...(typeof code === 'string' ? { code } : {}),
    ...(message === '' ? {} : { message }),
  }
}
