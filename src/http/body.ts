import { isAscii, isUtf8, transcode } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { Deadline } from '../deadline.js'
import { GatewayError } from '../errors.js'
import { isObject, type Json, type JsonObject } from '../json.js'
import { Pieces } from '../pieces.js'
import type { Room } from './room.js'

/** Levels of arrays and objects that a body may have. JSON.parse itself has no bound, and deeper bodies have killed providers. */
export const DEPTH_MAX = 128

/**
 * What a body may have between its values: commas, colons and opening brackets. Twelve million empty arrays fit into 32 MiB, and take JSON.parse
 * five seconds and 700 MB; so many take at most 0.5 s, or 1.2 s as the members of one object. 300,000 tokens of an embedding are a third of it.
 */
export const SIGNS_MAX = 1_000_000

const JSON_TYPE = /^\s*application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i

/** Refuses by its header, before anything is read, what is no JSON or says that it is larger than `bytesMax`. An absent type counts as JSON. */
export function checkBodyHeaders(request: IncomingMessage, bytesMax: number): void {
  const type = request.headers['content-type']
  if (type !== undefined && !JSON_TYPE.test(type)) {
    throw new GatewayError('unsupported_media_type', 'The content-type is not JSON. Send application/json.')
  }
  const encoding = request.headers['content-encoding']
  if (encoding !== undefined && encoding.trim().toLowerCase() !== 'identity') {
    throw new GatewayError('unsupported_media_type', 'A content-encoding is not supported here. Send the body as it is.')
  }
  if (Number(request.headers['content-length'] ?? 0) > bytesMax) throw tooLarge(bytesMax)
}

/** A body has to go on arriving: this many bytes in each `PACE_MS`, or it is held back on purpose. */
const PACE_BYTES = 1_000
const PACE_MS = 10_000

/** A body that is still coming, and who waits for it. */
interface Reading {
  readonly pieces: Pieces
  readonly resolve: (pieces: Pieces) => void
  readonly reject: (error: GatewayError) => void
}

/**
 * The whole body. What it takes of `room` stays taken until the caller gives it back; nothing of it where this throws: `request_too_large`
 * past `bytesMax`, `request_timeout` when it has not come within `timeoutMs` or as good as stands still, `overloaded` when there is no room,
 * `client_closed` when the client left.
 */
export function readBody(request: IncomingMessage, bytesMax: number, timeoutMs: number, room: Room): Promise<Pieces> {
  // Its error has been told already, to whoever listened then.
  if (request.destroyed) return Promise.reject(left())
  return new Promise((resolve, reject) => {
    // What listens until the request is gone, which a stream may delay for long, shall not hold on to its body: neither does it to the promise.
    let reading: Reading | null = { pieces: new Pieces(), resolve, reject }
    let size = 0
    let sizeBefore = 0
    const begun = performance.now()
    const step = (now: number): void => deadline.move(Math.min(now + PACE_MS, begun + timeoutMs), now)
    const onTime = (): void => {
      const now = performance.now()
      if (now >= begun + timeoutMs) fail(tooSlow(`The body did not arrive within ${timeoutMs / 1000} s. Send it faster.`))
      else if (size - sizeBefore < PACE_BYTES) fail(tooSlow(`Of the body, not even ${PACE_BYTES} bytes came within ${PACE_MS / 1000} s.`))
      else {
        sizeBefore = size
        step(now)
      }
    }
    const fail = (error: GatewayError): void => {
      const failed = end()
      if (failed === null) return
      request.removeListener('data', onData)
      request.removeListener('end', onEnd)
      room.give(size)
      failed.reject(error)
    }
    const end = (): Reading | null => {
      const ended = reading
      reading = null
      deadline.clear()
      return ended
    }
    const onData = (chunk: Buffer): void => {
      if (reading === null) return
      if (size + chunk.length > bytesMax) fail(tooLarge(bytesMax))
      else if (!room.take(chunk.length, size)) fail(full())
      else {
        size += chunk.length
        reading.pieces.take(chunk)
      }
    }
    const onEnd = (): void => {
      const whole = end()
      if (whole !== null) whole.resolve(whole.pieces)
    }
    const onError = (): void => fail(left())
    const deadline = new Deadline(onTime)
    step(begun)
    request.on('data', onData)
    request.on('end', onEnd)
    // Stays until the request is gone: a stream that errors without a listener would end the process.
    request.on('error', onError)
  })
}

function tooSlow(message: string): GatewayError {
  return new GatewayError('request_timeout', message, { headers: { connection: 'close' } })
}

function full(): GatewayError {
  return new GatewayError('overloaded', 'The bodies of other requests take all the room there is. Try again.', {
    headers: { connection: 'close' },
  })
}

function left(): GatewayError {
  return new GatewayError('client_closed', 'The client left before its body was whole.')
}

function tooLarge(bytesMax: number): GatewayError {
  return new GatewayError('request_too_large', `The body is larger than ${bytesMax} bytes. Send less, or raise limits.body.`, {
    headers: { connection: 'close' },
  })
}

/** The JSON object that the bytes are, a byte order mark before it or not. Throws `invalid_json`, and `invalid_request` for a number beyond all that there are. */
export function parseBody(bytes: Uint8Array): JsonObject {
  if (bytes.length === 0) throw new GatewayError('invalid_json', 'The body is empty. Send a JSON object.')
  const vast = checkBytes(bytes, null)
  const marked = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0
  const body = parseObject(decoded(Buffer.from(bytes.buffer, bytes.byteOffset + marked, bytes.byteLength - marked)))
  if (vast) checkFinite(body)
  return body
}

/** Where a string's quotes are. */
export interface Quoted {
  readonly from: number
  readonly to: number
}

/** Strings of so many bytes are long. */
const LONG_BYTES = 8192

/**
 * Throws `invalid_json` where the bytes are no UTF-8 or nested too deep, `request_too_large` where they hold too many values. Adds to `long` where
 * the long strings are, those of broken JSON among them. True where a number has an exponent or very many digits: `checkFinite` has to look at
 * what was parsed.
 */
export function checkBytes(bytes: Uint8Array, long: Quoted[] | null): boolean {
  if (!isUtf8(bytes)) throw new GatewayError('invalid_json', 'The body is not valid UTF-8.')
  return scan(bytes, long)
}

/** The JSON object that the text is; throws `invalid_json`. */
export function parseObject(text: string): JsonObject {
  const body = parseJson(text)
  if (!isObject(body)) throw new GatewayError('invalid_json', 'The body is not a JSON object.')
  return body
}

/** Throws `invalid_request` for the first field with a number beyond all that there are: 1e400 is valid JSON, and would be forwarded as null. */
export function checkFinite(body: JsonObject): void {
  const field = Object.keys(body).find(name => !hasFinite(body[name]))
  if (field === undefined) return
  const param = field.length > 100 ? `${field.slice(0, 100)}…` : field
  throw new GatewayError('invalid_request', `${param} must be of finite numbers: one is too large.`, { param })
}

function hasFinite(value: Json | undefined): boolean {
  if (typeof value === 'number') return Number.isFinite(value)
  return typeof value !== 'object' || value === null || Object.values(value).every(hasFinite)
}

/** The value that the text is; throws `invalid_json`. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The parser's own words quote the body, which must reach no log.
    throw new GatewayError('invalid_json', 'The body is not valid JSON.')
  }
}

/** Bytes below which it is quicker to decode in one step. */
const SHORT = 4096

/** Valid UTF-8 as text. For other scripts than Latin the way over UTF-16 takes a fifth of the time: 1 ms a MiB, not 5. */
export function decoded(bytes: Buffer): string {
  return bytes.length < SHORT || isAscii(bytes) ? bytes.toString('utf8') : transcode(bytes, 'utf8', 'utf16le').toString('utf16le')
}

const QUOTE = 0x22
const BACKSLASH = 0x5c

/** The largest number that there is has one digit more. */
const DIGITS_MAX = 308

/** As `checkBytes` has it. One pass over the bytes; strings are skipped. */
function scan(bytes: Uint8Array, long: Quoted[] | null): boolean {
  let depth = 0
  let signs = 0
  let vast = false
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] as number
    if (byte === QUOTE) {
      const from = i
      i = endOfString(bytes, from)
      if (long !== null && i - from > LONG_BYTES && i < bytes.length) long.push({ from, to: i })
    } else if (byte === 0x2c || byte === 0x3a) {
      signs++
    } else if (byte === 0x7b || byte === 0x5b) {
      signs++
      if (++depth > DEPTH_MAX) throw new GatewayError('invalid_json', `The body is nested deeper than ${DEPTH_MAX} levels.`)
    } else if (byte === 0x7d || byte === 0x5d) {
      depth--
    } else if (isDigit(byte)) {
      const from = i
      while (isDigit(bytes[i + 1])) i++
      // `e` or `E`
      if (i - from >= DIGITS_MAX || ((bytes[i + 1] ?? 0) | 0x20) === 0x65) vast = true
    }
  }
  if (signs > SIGNS_MAX) {
    throw new GatewayError(
      'request_too_large',
      `The body has more than ${SIGNS_MAX} commas, colons and brackets outside its strings. Send less at once.`,
    )
  }
  return vast
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39
}

/** Where the string that opens at `start` closes; the end of the bytes when it never does. */
function endOfString(bytes: Uint8Array, start: number): number {
  for (let end = bytes.indexOf(QUOTE, start + 1); end !== -1; end = bytes.indexOf(QUOTE, end + 1)) {
    let back = end - 1
    while (bytes[back] === BACKSLASH) back--
    if ((end - back) % 2 === 1) return end
  }
  return bytes.length
}
