/** So many pieces are put together at once: fewer would take more time, and more keep more of what they were cut from. */
const PIECES = 4

/**
 * A text that is added to bit by bit, and kept until it is taken. Where JavaScript adds to a string, each piece stays alive with whatever it was cut from or
 * put together of, which can be twenty times as much as it says; here pieces become one text, four at a time.
 */
export class FlatText {
  readonly #pieces: string[] = []
  #text = ''
  #length = 0

  /** Code units. */
  get length(): number {
    return this.#length
  }

  add(piece: string): void {
    if (piece === '') return
    this.#length += piece.length
    if (this.#pieces.push(piece) === PIECES) this.#join()
  }

  /** All of it; then it is empty. */
  take(): string {
    this.#join()
    const text = this.#text
    this.#text = ''
    this.#length = 0
    return text
  }

  #join(): void {
    this.#text += this.#pieces.join('')
    this.#pieces.length = 0
  }
}
