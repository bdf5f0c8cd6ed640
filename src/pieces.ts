/** What is larger is read and translated on a thread, so that no other request waits for it. Bytes. */
export const INLINE_BYTES_MAX = 128 * 1024
const PIECE_BYTES = 256 * 1024
/** What comes in smaller bits is put together. */
const OWN_BYTES_MIN = 16 * 1024

/**
 * Bytes that come in bit by bit. Many of them are kept in pieces of shared memory, or in the memory that they came in: to hand them to a
 * thread copies nothing, and no large block is ever made at once, which would hold up the event loop.
 */
export class Pieces {
  #list: Uint8Array[] = []
  #length = 0
  #shared = false
  /** What the last piece has room for. */
  #room = 0

  static of(bytes: Uint8Array): Pieces {
    const pieces = new Pieces()
    pieces.add(bytes)
    return pieces
  }

  get length(): number {
    return this.#length
  }

  /** More than `INLINE_BYTES_MAX`: a thread's work. */
  get many(): boolean {
    return this.#shared
  }

  /** The bytes in their order. Where there are `many`, those that were added are in shared memory. */
  get list(): readonly Uint8Array[] {
    if (!this.#shared || this.#room === 0) return this.#list
    return [...this.#list.slice(0, -1), this.#last()]
  }

  /** As `add`, of bytes that nobody else will look at: where they have memory of their own, it is kept. */
  take(bytes: Uint8Array): void {
    if (!this.#shared || bytes.length < OWN_BYTES_MIN || bytes.length !== bytes.buffer.byteLength) this.add(bytes)
    else {
      if (this.#room > 0) this.#list.push(this.#last(this.#list.pop()))
      this.#room = 0
      this.#length += bytes.length
      this.#list.push(bytes)
    }
  }

  /** The memory that was taken, to change hands with `list`: then there is nothing here until `giveBack`. */
  get owned(): ArrayBuffer[] {
    if (!this.#shared) return []
    return this.#list.map(({ buffer }) => buffer).filter(buffer => buffer instanceof ArrayBuffer)
  }

  /** The same bytes as they were handed over. */
  giveBack(list: readonly Uint8Array[]): void {
    this.#list = [...list]
    this.#room = 0
  }

  add(bytes: Uint8Array): void {
    this.#length += bytes.length
    if (this.#shared) this.#copy(bytes)
    else {
      this.#list.push(bytes)
      if (this.#length > INLINE_BYTES_MAX) this.#share()
    }
  }

  /** All in one: a copy where there are several. */
  joined(): Buffer {
    return joined(this.list)
  }

  #last(piece = this.#list.at(-1) as Uint8Array): Uint8Array {
    return piece.subarray(0, piece.length - this.#room)
  }

  #share(): void {
    const before = this.#list
    this.#list = []
    this.#shared = true
    for (const bytes of before) this.#copy(bytes)
  }

  #copy(bytes: Uint8Array): void {
    let at = 0
    while (at < bytes.length) {
      if (this.#room === 0) {
        this.#list.push(new Uint8Array(new SharedArrayBuffer(PIECE_BYTES)))
        this.#room = PIECE_BYTES
      }
      const size = Math.min(this.#room, bytes.length - at)
      ;(this.#list.at(-1) as Uint8Array).set(bytes.subarray(at, at + size), PIECE_BYTES - this.#room)
      this.#room -= size
      at += size
    }
  }
}

/** The bytes of `list` one behind the other, in memory that other threads see, too. */
export function sharedBytes(list: readonly Uint8Array[]): Buffer {
  return filled(Buffer.from(new SharedArrayBuffer(lengthOf(list))), list)
}

/** The bytes of `list`, written into `target` from its beginning. */
export function filled(target: Buffer, list: readonly Uint8Array[]): Buffer {
  let at = 0
  for (const bytes of list) {
    target.set(bytes, at)
    at += bytes.length
  }
  return target.subarray(0, at)
}

export function lengthOf(list: readonly Uint8Array[]): number {
  return list.reduce((sum, { length }) => sum + length, 0)
}

/** The bytes of `list` in one; a copy where there are several. */
export function joined(list: readonly Uint8Array[]): Buffer {
  const [first] = list
  if (list.length !== 1 || first === undefined) return Buffer.concat(list)
  return Buffer.from(first.buffer, first.byteOffset, first.byteLength)
}
