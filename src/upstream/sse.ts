import type { SseEvent } from './providers/provider.js'

/** The most bytes that one event may have; a longer one is no event but an attack, or a fault. */
export const EVENT_BYTES_MAX = 16 * 1024 * 1024

const LF = 0x0a
const CR = 0x0d
const NOTHING = Buffer.alloc(0)

/**
 * Cuts a provider's bytes into server-sent events (WHATWG HTML §9.2), wherever the network has cut them: every line ending, a byte order
 * mark at the start, several `data` lines (joined by a line feed), comments. `id` and `retry` mean nothing here and are dropped.
 */
export class SseParser {
  /** The beginning of a line whose end has not come: one buffer, since a piece of one byte may keep a read of 64 KiB. */
  #rest: Buffer = NOTHING
  #restBytes = 0
  #start = true
  #afterCr = false
  #data: string | null = null
  #event: string | undefined
  #bytes = 0

  /** Events that these bytes complete, and the comments between them as `comment` calls, in order. Throws RangeError past EVENT_BYTES_MAX. */
  push(chunk: Buffer, event: (event: SseEvent) => void, comment: (text: string) => void): void {
    const bytes = this.#join(this.#withoutHalf(chunk))
    if (bytes === null) return
    let from = this.#start ? afterMark(bytes) : 0
    this.#start = false
    // Each is looked for only once it has been passed: that keeps this linear whatever the line endings are.
    let lf = bytes.indexOf(LF, from)
    let cr = bytes.indexOf(CR, from)
    while (lf !== -1 || cr !== -1) {
      const end = cr === -1 || (lf !== -1 && lf < cr) ? lf : cr
      this.#line(bytes, from, end, event, comment)
      from = end + (end === cr && lf === cr + 1 ? 2 : 1)
      if (end === cr && from === bytes.length && lf !== from - 1) this.#afterCr = true
      if (lf !== -1 && lf < from) lf = bytes.indexOf(LF, from)
      if (cr !== -1 && cr < from) cr = bytes.indexOf(CR, from)
    }
    if (from < bytes.length) this.#keep(from === 0 ? bytes : bytes.subarray(from))
  }

  /** The bytes are at their end: an event that lacks only its blank line still counts (providers forget it). */
  end(event: (event: SseEvent) => void): void {
    if (this.#restBytes > 0) {
      const rest = this.#takeRest(NOTHING)
      this.#line(rest, this.#start ? afterMark(rest) : 0, rest.length, event, () => {})
    }
    this.#dispatch(event)
  }

  /** A CR ends its line at once, wherever the network has cut; the LF that may follow it belongs to it. */
  #withoutHalf(chunk: Buffer): Buffer {
    if (!this.#afterCr || chunk.length === 0) return chunk
    this.#afterCr = false
    return chunk[0] === LF ? chunk.subarray(1) : chunk
  }

  /** What was kept and the new bytes, once they hold a line's end. */
  #join(chunk: Buffer): Buffer | null {
    if (chunk.length === 0) return null
    if (this.#restBytes === 0 && !this.#start) return chunk
    if (chunk.indexOf(LF) === -1 && chunk.indexOf(CR) === -1) {
      this.#keep(chunk)
      return null
    }
    return this.#restBytes === 0 ? chunk : this.#takeRest(chunk)
  }

  #takeRest(chunk: Buffer): Buffer {
    const bytes = Buffer.concat([this.#rest.subarray(0, this.#restBytes), chunk], this.#restBytes + chunk.length)
    this.#rest = NOTHING
    this.#restBytes = 0
    return bytes
  }

  #keep(bytes: Buffer): void {
    const length = this.#restBytes + bytes.length
    this.#bound(this.#bytes + length)
    if (this.#restBytes === 0) {
      this.#rest = bytes
      this.#restBytes = length
      return
    }
    if (length > this.#rest.length) {
      // Twice the room each time: whatever the pieces, what is copied in all stays in proportion to the line.
      const larger = Buffer.allocUnsafe(Math.max(length, 2 * this.#rest.length))
      this.#rest.copy(larger, 0, 0, this.#restBytes)
      this.#rest = larger
    }
    bytes.copy(this.#rest, this.#restBytes)
    this.#restBytes = length
  }

  #bound(bytes: number): void {
    if (bytes > EVENT_BYTES_MAX) throw new RangeError(`An event of over ${EVENT_BYTES_MAX} bytes.`)
  }

  #line(bytes: Buffer, from: number, end: number, event: (event: SseEvent) => void, comment: (text: string) => void): void {
    if (from === end) {
      this.#dispatch(event)
      return
    }
    const first = bytes[from]
    if (first === 0x3a) {
      comment(bytes.toString('utf8', from + 1, end))
      return
    }
    // `data:` in by far the most lines
    if (first === 0x64 && bytes[from + 1] === 0x61 && bytes[from + 2] === 0x74 && bytes[from + 3] === 0x61 && bytes[from + 4] === 0x3a) {
      this.#append(bytes.toString('utf8', bytes[from + 5] === 0x20 ? from + 6 : from + 5, end), end - from)
      return
    }
    const line = bytes.toString('utf8', from, end)
    if (line === 'data') this.#append('', end - from)
    else if (line === 'event') this.#event = ''
    else if (line.startsWith('event:')) this.#event = line.slice(line[6] === ' ' ? 7 : 6)
  }

  #append(value: string, bytes: number): void {
    this.#data = this.#data === null ? value : `${this.#data}\n${value}`
    this.#bytes += bytes
    this.#bound(this.#bytes)
  }

  #dispatch(event: (event: SseEvent) => void): void {
    const data = this.#data
    const name = this.#event
    this.#data = null
    this.#event = undefined
    this.#bytes = 0
    if (data !== null && data !== '') event(name === undefined || name === '' ? { data } : { event: name, data })
  }
}

/** Where the bytes begin behind a byte order mark. */
function afterMark(bytes: Buffer): number {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0
}
