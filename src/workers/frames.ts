import type { Duplex } from 'node:stream'

/** What a frame holds. Operations and answers are JSON, lines are the text of the log, words and orders are of `v8.serialize`. */
export const FRAME = { operations: 1, answers: 2, lines: 3, word: 4, order: 5 } as const

/** Length of what follows it, and the kind. */
const HEADER_BYTES = 5

/**
 * Messages over a stream of bytes, each in one piece: a header of 32 bits of length (of the payload) and 8 of kind, then the payload. A payload that is
 * received is only good until `receive` returns.
 */
export class Frames {
  readonly #stream: Duplex
  readonly #receive: (kind: number, payload: Buffer) => void
  /** Of a frame that is not whole yet. */
  #parts: Buffer[] = []
  #bytes = 0

  constructor(stream: Duplex, receive: (kind: number, payload: Buffer) => void) {
    this.#stream = stream
    this.#receive = receive
    stream.on('data', (chunk: Buffer) => this.#take(chunk))
  }

  /** `done` is called when the system has taken it. */
  text(kind: number, text: string, done?: () => void): void {
    const bytes = Buffer.byteLength(text)
    const frame = Buffer.allocUnsafe(HEADER_BYTES + bytes)
    frame.write(text, HEADER_BYTES)
    this.#send(kind, frame, done)
  }

  bytes(kind: number, payload: Uint8Array): void {
    const frame = Buffer.allocUnsafe(HEADER_BYTES + payload.length)
    frame.set(payload, HEADER_BYTES)
    this.#send(kind, frame)
  }

  #send(kind: number, frame: Buffer, done?: () => void): void {
    frame.writeUInt32LE(frame.length - HEADER_BYTES, 0)
    frame[4] = kind
    this.#stream.write(frame, done)
  }

  #take(chunk: Buffer): void {
    let whole = chunk
    if (this.#parts.length > 0) {
      this.#parts.push(chunk)
      this.#bytes += chunk.length
      if (this.#bytes < needed(this.#parts[0] as Buffer)) return
      whole = Buffer.concat(this.#parts, this.#bytes)
      this.#parts = []
    }
    let at = 0
    for (;;) {
      const rest = whole.length - at
      if (rest < HEADER_BYTES) break
      const end = at + HEADER_BYTES + whole.readUInt32LE(at)
      if (end > whole.length) break
      this.#receive(whole[at + 4] as number, whole.subarray(at + HEADER_BYTES, end))
      at = end
    }
    if (at === whole.length) return
    const rest = whole.subarray(at)
    this.#parts = [rest]
    this.#bytes = rest.length
  }
}

/** Bytes of the frame that begins so; where not even its length is there, one more than there are. */
function needed(start: Buffer): number {
  return start.length < HEADER_BYTES ? start.length + 1 : HEADER_BYTES + start.readUInt32LE(0)
}
