import { FEATURES } from './features.js'
import { scan } from './scan.js'
import { type Family, LETTERS, ratesOf } from './tokenizers.js'

/**
 * The estimated tokens of several texts together: the margin for chance counts once. Texts that follow one another are not one word. Slightly
 * too many on average; a non-negative integer, never more than the bytes in UTF-8; in time linear in the texts, whatever they hold.
 */
export class TextSum {
  readonly #counts = new Int32Array(FEATURES)
  #bytes = 0

  add(text: string): void {
    this.#bytes += scan(text, this.#counts, LETTERS)
  }

  tokens(family: Family): number {
    const rates = ratesOf(family)
    if (rates === undefined) return this.#bytes
    let mean = 0
    for (let i = 0; i < FEATURES; i++) {
      const count = this.#counts[i] as number
      if (count > 0) mean += count * (rates.tokens[i] as number)
    }
    return Math.min(this.#bytes, Math.round(mean * (1 + rates.margin) + rates.spread * Math.sqrt(mean)))
  }
}
