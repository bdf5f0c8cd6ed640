import type { IncomingHttpHeaders } from 'node:http'
import type { GatewayError } from '../errors.js'
import type { HeaderFields } from '../policy.js'

/** Of a provider's answer, these pass: they speak of the model's work and not of our account there. */
const PASSED_DOWN: readonly string[] = ['openai-processing-ms', 'openai-version', 'openai-model']

/** Printable ASCII of at most 128 characters; anything else counts as absent. */
export function clientRequestId(headers: IncomingHttpHeaders): string | null {
  const id = headers['x-request-id']
  return typeof id === 'string' && /^[\x21-\x7e]{1,128}$/.test(id) ? id : null
}

/** The one field of a client's header that a provider sees, so it is no longer than the 512 characters that W3C Trace Context asks for. */
export function clientTracestate(headers: IncomingHttpHeaders): string | undefined {
  const state = headers.tracestate
  return typeof state === 'string' && /^[\x20-\x7e]{1,512}$/.test(state) ? state : undefined
}

/** Header fields of the provider's answer that the client may see. */
export function passedDown(
  upstream: Readonly<Record<string, string | string[] | undefined>>,
  requestIdHeader: string,
): Record<string, string> {
  const fields: Record<string, string> = {}
  for (const name of PASSED_DOWN) {
    const value = upstream[name]
    if (typeof value === 'string') fields[name] = value
  }
  const id = upstreamRequestId(upstream, requestIdHeader)
  if (id !== null) fields['x-upstream-request-id'] = id
  return fields
}

export function upstreamRequestId(upstream: Readonly<Record<string, string | string[] | undefined>>, name: string): string | null {
  const id = upstream[name]
  return typeof id === 'string' && /^[\x21-\x7e]{1,256}$/.test(id) ? id : null
}

/** Each field as one text, however often it came. */
export function joinedFields(headers: Readonly<Record<string, string | string[] | undefined>>): HeaderFields {
  const fields: Record<string, string> = {}
  for (const name in headers) {
    const value = headers[name]
    if (typeof value === 'string') fields[name] = value
    else if (value !== undefined) fields[name] = value.join(', ')
  }
  return fields
}

/** Header fields that an error brings along. */
export function errorFields(error: GatewayError): HeaderFields {
  const fields: Record<string, string> = { ...error.headers }
  if (error.retryAfter !== undefined) fields['retry-after'] = String(error.retryAfter)
  if (error.shouldRetry !== undefined) fields['x-should-retry'] = String(error.shouldRetry)
  if (error.status === 401) fields['www-authenticate'] = 'Bearer'
  if (error.code === 'draining') fields.connection = 'close'
  return fields
}
