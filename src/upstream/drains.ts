/** Answers that are read to their end though their client has left; beyond this many at once, the connection is closed instead. */
const DRAINS_MAX = 64

/** Bounds how many answers are read for their usage alone. */
export class Drains {
  #count = 0

  /** Is there room for one more? It is given back when `until` is over. */
  take(until: Promise<unknown>): boolean {
    if (this.#count >= DRAINS_MAX) return false
    this.#count++
    const back = (): void => {
      this.#count--
    }
    until.then(back, back)
    return true
  }
}
