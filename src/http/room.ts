/** What the bodies of all requests under way may have together, in bytes. One that does not fit in is answered 503, and the others go on. */
export const BODIES_BYTES_MAX = 512 * 1024 * 1024

/** Memory that is shared out. Whoever takes of it gives back as much, once. */
export class Room {
  #taken = 0

  constructor(readonly bytesMax = BODIES_BYTES_MAX) {}

  /** False: there is not that much left, and nothing was taken. One who is alone gets whatever it asks for. */
  take(bytes: number, own: number): boolean {
    if (this.#taken + bytes > this.bytesMax && this.#taken > own) return false
    this.#taken += bytes
    return true
  }

  give(bytes: number): void {
    this.#taken -= bytes
  }
}
