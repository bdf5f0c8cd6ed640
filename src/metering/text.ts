import { scan } from './scan.js'
import { type Family, LETTERS, type Rates, ratesOf } from './tokenizers.js'

/**
 * The estimated tokens of several texts together: the margin for chance counts once. Texts that follow one another are not one word. Slightly
 * too many on average; a non-negative integer, never more than the bytes in UTF-8; in time linear in the texts, whatever they hold.
 */
export class TextSum {
  readonly family: Family
  readonly #rates: Rates | undefined
  #hundredths = 0
  /** Code units: a text has no fewer bytes. Where there are no rates, bytes. */
  #units = 0
  /** Texts that come to so much that it may matter how many more bytes they have. */
  readonly #dense: string[] = []

  constructor(family: Family) {
    this.family = family
    this.#rates = ratesOf(family)
  }

  add(text: string): void {
    if (this.#rates === undefined) {
      this.#units += Buffer.byteLength(text)
      return
    }
    const hundredths = scan(text, this.#rates.features, LETTERS)
    this.#hundredths += hundredths
    this.#units += text.length
    if (hundredths > 50 * text.length) this.#dense.push(text)
  }

  get tokens(): number {
    if (this.#rates === undefined) return this.#units
    const { margin, spread } = this.#rates
    const mean = this.#hundredths / 100
    const tokens = Math.round(mean * (1 + margin) + spread * Math.sqrt(mean))
    // To count bytes takes half as long as the scan.
    if (tokens <= this.#units) return tokens
    return Math.min(
      tokens,
      this.#dense.reduce((bytes, text) => bytes + Buffer.byteLength(text) - text.length, this.#units),
    )
  }
}
