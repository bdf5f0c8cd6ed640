import { isObject, type Json, type JsonObject } from '../json.js'
import type { Failure } from './providers/provider.js'

/** google.rpc.Code: what each status stands for in HTTP. */
const STATUS: ReadonlyMap<unknown, number> = new Map([
  ['INVALID_ARGUMENT', 400],
  ['FAILED_PRECONDITION', 400],
  ['OUT_OF_RANGE', 400],
  ['UNAUTHENTICATED', 401],
  ['PERMISSION_DENIED', 403],
  ['NOT_FOUND', 404],
  ['ABORTED', 409],
  ['RESOURCE_EXHAUSTED', 429],
  ['CANCELLED', 499],
  ['INTERNAL', 500],
  ['UNKNOWN', 500],
  ['UNIMPLEMENTED', 501],
  ['UNAVAILABLE', 503],
  ['DEADLINE_EXCEEDED', 504],
])

const TOO_LONG = /input token count.*exceeds the maximum number of tokens/i

/** What Google says of a failure, on each of its wires: `{"error": {"code", "message", "status", "details"}}`, or a list whose first element that is. */
export function googleFailure(status: number, body: unknown): Failure {
  const first = Array.isArray(body) ? body[0] : body
  const error = isObject(first) && isObject(first.error) ? first.error : {}
  const details = Array.isArray(error.details) ? (error.details as readonly Json[]).filter(isObject) : []
  const message = typeof error.message === 'string' ? error.message : ''
  const meant = meaning(error, details)
  const retryAfter = details.map(detail => seconds(detail.retryDelay)).find(delay => delay !== null)
  return {
    ...(meant === undefined || meant === status ? {} : { status: meant }),
    ...(TOO_LONG.test(message) ? { code: 'context_length_exceeded' } : {}),
    ...(message === '' ? {} : { message }),
    ...(retryAfter === undefined || retryAfter === null ? {} : { retryAfter }),
  }
}

function meaning(error: JsonObject, details: readonly JsonObject[]): number | undefined {
  // A key that is not valid is called an invalid argument, as if the client had sent it.
  if (details.some(detail => detail.reason === 'API_KEY_INVALID')) return 401
  const code = typeof error.code === 'number' && error.code >= 400 && error.code < 600 ? error.code : undefined
  return STATUS.get(error.status) ?? code
}

/** A protobuf duration, `34s` or `0.52s`, in whole seconds. */
function seconds(duration: Json | undefined): number | null {
  const match = typeof duration === 'string' ? /^(\d+(?:\.\d+)?)s$/.exec(duration) : null
  return match === null ? null : Math.max(1, Math.ceil(Number(match[1])))
}
