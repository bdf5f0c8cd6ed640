/** What is larger is read and translated on a thread, so that no other request waits for it. Bytes. */
export const INLINE_BYTES_MAX = 128 * 1024
const PIECE_BYTES = 256 * 1024

/**
 * Bytes that come in bit by bit. Many of them are kept in pieces of shared memory: to hand them to a thread copies nothing, and no large
 * block is ever made at once, which would hold up the event loop.
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

  /** The bytes in their order. Where there are `many`, in shared memory. */
  get list(): readonly Uint8Array[] {
    if (!this.#shared || this.#room === 0) return this.#list
    const last = this.#list.at(-1) as Uint8Array
    return [...this.#list.slice(0, -1), last.subarray(0, last.length - this.#room)]
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

/** The bytes of `list` in one; a copy where there are several. */
export function joined(list: readonly Uint8Array[]): Buffer {
  const [first] = list
  if (list.length !== 1 || first === undefined) return Buffer.concat(list)
  return Buffer.from(first.buffer, first.byteOffset, first.byteLength)
}
