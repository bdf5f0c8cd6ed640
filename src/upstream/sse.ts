import type { SseEvent } from './providers/provider.js'

/** The most bytes that one event may have; a longer one is no event but an attack, or a fault. */
export const EVENT_BYTES_MAX = 16 * 1024 * 1024

const LF = 0x0a
const CR = 0x0d

/**
 * Cuts a provider's bytes into server-sent events (WHATWG HTML §9.2), wherever the network has cut them: any line ending, a byte order
 * mark at the start, several `data` lines (joined by a line feed), comments. `id` and `retry` mean nothing here and are dropped.
 */
export class SseParser {
  #rest: Buffer[] = []
  #restBytes = 0
  #start = true
  #data: string | null = null
  #event: string | undefined
  #bytes = 0

  /** Events that these bytes complete, and the comments between them as `comment` calls, in order. Throws RangeError past EVENT_BYTES_MAX. */
  push(chunk: Buffer, event: (event: SseEvent) => void, comment: (text: string) => void): void {
    let bytes = this.#join(chunk)
    if (bytes === null) return
    if (this.#start) {
      this.#start = false
      if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) bytes = bytes.subarray(3)
    }
    let from = 0
    while (from < bytes.length) {
      const end = endOfLine(bytes, from)
      if (end === -1) break
      // A CR at the very end may be half of a CRLF: wait for what follows.
      if (bytes[end] === CR && end + 1 === bytes.length) break
      this.#line(bytes, from, end, event, comment)
      from = end + (bytes[end] === CR && bytes[end + 1] === LF ? 2 : 1)
    }
    if (from < bytes.length) this.#keep(from === 0 ? bytes : bytes.subarray(from))
  }

  /** The bytes are at their end: an event that lacks only its blank line still counts (providers forget it). */
  end(event: (event: SseEvent) => void): void {
    if (this.#rest.length > 0) {
      const rest = Buffer.concat(this.#rest, this.#restBytes)
      this.#rest = []
      this.#line(rest, 0, rest[rest.length - 1] === CR ? rest.length - 1 : rest.length, event, () => {})
    }
    this.#dispatch(event)
  }

  /** What was kept and the new bytes, once they hold a line's end; joining them at every chunk would cost the square of a long line. */
  #join(chunk: Buffer): Buffer | null {
    if (this.#rest.length === 0 && !this.#start) return chunk
    const last = this.#rest[this.#rest.length - 1]
    const whole = chunk.indexOf(LF) !== -1 || chunk.indexOf(CR) !== -1 || last?.[last.length - 1] === CR
    if (!whole) {
      this.#keep(chunk)
      return null
    }
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([...this.#rest, chunk], this.#restBytes + chunk.length)
    this.#rest = []
    this.#restBytes = 0
    return bytes
  }

  #keep(bytes: Buffer): void {
    this.#rest.push(bytes)
    this.#restBytes += bytes.length
    this.#bound(this.#bytes + this.#restBytes)
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
      const value = bytes.toString('utf8', bytes[from + 5] === 0x20 ? from + 6 : from + 5, end)
      this.#data = this.#data === null ? value : `${this.#data}\n${value}`
      this.#bytes += end - from
      this.#bound(this.#bytes)
      return
    }
    const line = bytes.toString('utf8', from, end)
    if (line === 'data') this.#data = this.#data === null ? '' : `${this.#data}\n`
    else if (line.startsWith('event:')) this.#event = line.slice(line[6] === ' ' ? 7 : 6)
  }

  #dispatch(event: (event: SseEvent) => void): void {
    const data = this.#data
    const name = this.#event
    this.#data = null
    this.#event = undefined
    this.#bytes = 0
    if (data !== null && data !== '') event(name === undefined ? { data } : { event: name, data })
  }
}

/** The first LF or CR at or after `from`; -1 where there is none. */
function endOfLine(bytes: Buffer, from: number): number {
  const lf = bytes.indexOf(LF, from)
  const limit = lf === -1 ? bytes.length : lf
  // Looking for a CR only as far as the LF keeps this linear.
  const cr = limit > from ? bytes.subarray(from, limit).indexOf(CR) : -1
  return cr !== -1 ? from + cr : lf
}
