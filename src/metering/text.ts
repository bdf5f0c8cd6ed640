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
  #bytes = 0

  constructor(family: Family) {
    this.family = family
    this.#rates = ratesOf(family)
  }

  add(text: string): void {
    if (this.#rates === undefined) {
      this.#bytes += Buffer.byteLength(text)
      return
    }
    const hundredths = scan(text, this.#rates.features, LETTERS)
    this.#hundredths += hundredths
    // A text has no fewer bytes than code units. Where the estimate is far below these, how many more there are does not matter.
    this.#bytes += hundredths > 50 * text.length ? Buffer.byteLength(text) : text.length
  }

  get tokens(): number {
    if (this.#rates === undefined) return this.#bytes
    const { margin, spread } = this.#rates
    const mean = this.#hundredths / 100
    return Math.min(this.#bytes, Math.round(mean * (1 + margin) + spread * Math.sqrt(mean)))
  }
}
