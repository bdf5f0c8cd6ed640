import { validateHeaderName, validateHeaderValue } from 'node:http'

/** What says where a message ends, how it is coded, and which exchange it belongs to, is nobody's to say but the gateway's. */
const OURS: ReadonlySet<string> = new Set([
  'accept-encoding',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'host',
  'keep-alive',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'x-request-id',
])

/**
 * Throws where a header field that a policy brings along could not be sent: its name is no token or one of the gateway's own, or its value is
 * no text of Latin-1 without control characters (RFC 9110, 5.5).
 */
export function checkField(name: string, value: unknown): void {
  validateHeaderName(name)
  if (OURS.has(name.toLowerCase())) throw new TypeError(`The header field ${name} is set by the gateway`)
  if (typeof value !== 'string')
    throw new TypeError(`The header field ${name} has to be a text, got ${value === null ? 'null' : typeof value}`)
  validateHeaderValue(name, value)
}
