import type { IncomingMessage } from 'node:http'
import { GatewayError } from '../errors.js'

/** The most fields that a request's header may have. */
export const HEADER_FIELDS_MAX = 128

/** One `/`, then printable ASCII: no `http://host/`, no `//host`, no `*`, no fragment. */
const TARGET = /^\/(?!\/)[\x21\x22\x24-\x7e]*$/
const HOST = /^[\w.~%:[\]-]*$/
/** Fields of which two would let one request pass as another's, since proxies differ in which they believe. */
const ONCE: ReadonlyMap<string, number> = new Map(
  ['host', 'authorization', 'content-type', 'content-length', 'transfer-encoding', 'expect'].map((name, i) => [name, 1 << i]),
)

/**
 * What Node's parser lets through and a gateway must not: whatever a proxy before it may read in another way. `null`: nothing is wrong. The
 * connection has to end with the refusal, since nobody knows where the next request begins.
 */
export function objection(request: IncomingMessage): GatewayError | null {
  const { rawHeaders, headers, httpVersion, method, url } = request
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return bad('This is not HTTP/1.1.')
  if (rawHeaders.length > 2 * HEADER_FIELDS_MAX) {
    return new GatewayError('headers_too_large', `The header of the request has more than ${HEADER_FIELDS_MAX} fields.`)
  }
  if (!TARGET.test(url ?? '')) return bad('The target of the request must be a path that begins with one slash.')
  const twice = repeated(rawHeaders)
  if (twice !== null) return bad(`The header has ${twice} twice. Send it once.`)
  if (headers.host === undefined ? httpVersion === '1.1' : !HOST.test(headers.host)) {
    return bad('The header has no Host, or one that is no host. Send one.')
  }
  const transfer = headers['transfer-encoding']
  if (transfer !== undefined) {
    // Node takes `gzip, chunked` and undoes the chunks alone.
    if (transfer.toLowerCase() !== 'chunked') return bad('The only transfer-encoding that is supported here is chunked.')
    if (httpVersion === '1.0') return bad('HTTP/1.0 has no transfer-encoding. Send a content-length, or HTTP/1.1.')
  }
  // Java's client offers h2c with every first request: who does not take it up answers as if it had not been said (RFC 9110, 7.8).
  const { upgrade } = headers
  if (upgrade !== undefined && upgrade.toLowerCase() !== 'h2c')
    return bad('There is nothing to upgrade to here. Send the request without it.')
  const hasBody = transfer !== undefined || Number(headers['content-length'] ?? 0) > 0
  if (hasBody && (method === 'GET' || method === 'HEAD')) return bad(`${method} takes no body.`)
  return null
}

function repeated(rawHeaders: readonly string[]): string | null {
  let seen = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] as string).toLowerCase()
    const bit = ONCE.get(name)
    if (bit === undefined) continue
    if ((seen & bit) !== 0) return name
    seen |= bit
  }
  return null
}

function bad(message: string): GatewayError {
  return new GatewayError('invalid_request', message)
}
