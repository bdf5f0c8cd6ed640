import type { IncomingMessage, ServerResponse } from 'node:http'
import type { HeaderFields } from '../policy.js'

/** How long a client may go on sending a body that nobody wants, after its answer has been written. Milliseconds. */
const LINGER_MS = 1_000
/** A body that is at most this large is read to its end and dropped, so that the connection stays usable. */
const DROPPED_BYTES_MAX = 64 * 1024

/** For a connection that may be a stranger's, as it has had nothing but answers that take no key, to be idle between requests. Milliseconds. */
export const STRANGER_IDLE_MS = 5_000
const STRANGER_IDLE = `timeout=${STRANGER_IDLE_MS / 1000}`

/** Whether an answer of this status is given only to who has shown a key: what it asks for was answered, failed or is over its ceilings. */
export function takesKey(status: number): boolean {
  return status < 400 || status === 402 || status === 403 || status === 429 || status >= 500
}

/** Sends a whole JSON answer; does nothing when the client has left. Where another one has begun, nobody is left waiting for its end. */
export function sendJson(
  response: ServerResponse,
  status: number,
  requestId: string,
  fields: HeaderFields,
  body: string | Uint8Array,
  writeTimeoutMs: number,
): void {
  if (response.headersSent || response.destroyed) {
    if (!response.writableEnded) response.destroy()
    return
  }
  const head = ['content-type', 'application/json', 'content-length', String(Buffer.byteLength(body)), 'x-request-id', requestId]
  for (const name in fields) head.push(name, fields[name] as string)
  const { req } = response
  if (req.complete || isSmall(req)) {
    // Node would announce the time of the others, and a pool would send its next request into a connection that closes.
    if (!takesKey(status) && response.shouldKeepAlive && fields.connection === undefined) head.push('keep-alive', STRANGER_IDLE)
    response.writeHead(status, head)
    endWithin(response, body, writeTimeoutMs)
    return
  }
  // To close while the client still sends would reset the connection, and the answer with it.
  if (fields.connection === undefined) head.push('connection', 'close')
  response.writeHead(status, head)
  response.write(body)
  const end = (): void => {
    clearTimeout(timer)
    response.end()
  }
  const timer = setTimeout(end, LINGER_MS)
  req.once('end', end).once('error', end).resume()
}

function isSmall({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) <= DROPPED_BYTES_MAX
}

/** Asks for the body of who waits to be asked. HTTP/1.0 knows neither that nor the answer (RFC 9110 §10.1.1). */
export function sendContinue({ headers, httpVersion }: IncomingMessage, response: ServerResponse): void {
  if (headers.expect !== undefined && httpVersion !== '1.0') response.writeContinue()
}

/** Ends an answer; a client that does not take the rest within `timeoutMs` is cut off. */
export function endWithin(response: ServerResponse, text: string | Uint8Array, timeoutMs: number): void {
  response.end(text)
  if (response.writableLength === 0) return
  const timer = setTimeout(() => response.destroy(), timeoutMs)
  response.once('close', () => clearTimeout(timer))
}

/** Sends the head of an event stream: never buffered by what lies between, never compressed. */
export function sendStreamHead(response: ServerResponse, requestId: string, fields: HeaderFields): void {
  const head = [
    'content-type',
    'text/event-stream; charset=utf-8',
    'cache-control',
    'no-cache',
    'x-accel-buffering',
    'no',
    'x-request-id',
    requestId,
  ]
  for (const name in fields) head.push(name, fields[name] as string)
  response.writeHead(200, head)
}
