import { FEATURES, scan } from './scan.js'
import { type Family, LETTERS, ratesOf } from './tokenizers.js'

/**
 * Estimates how many tokens a text is for a family of tokenizers; slightly too many on average. A non-negative integer, never more than the
 * text's bytes in UTF-8, in time linear in the text whatever it holds. For a text that comes in pieces use `TextCounter`: pieces that are
 * estimated one by one add up to more.
 */
export function textTokens(text: string, family: Family): number {
  const tally = new Tally()
  tally.add(text)
  return tally.tokens(family)
}

/** Tokens of a prompt as the surfaces beside chat take it. Tokens that the client made itself count as they are. */
export function promptTokens(
  input: string | readonly string[] | readonly number[] | readonly (readonly number[])[],
  family: Family,
): number {
  if (typeof input === 'string') return textTokens(input, family)
  let tokens = 0
  for (const item of input) tokens += typeof item === 'number' ? 1 : typeof item === 'string' ? textTokens(item, family) : item.length
  return tokens
}

/**
 * So many UTF-16 code units of a text are looked at (some 40 ms). What is beyond counts a token for two bytes, twice what most texts have:
 * more than four million characters fill any model's context anyway, and one large request must not hold up the others.
 */
const LOOKED_AT = 4 * 1024 * 1024

/** Several texts estimated as one: the margin for chance counts once. */
export class Tally {
  readonly #counts = new Int32Array(FEATURES)
  #bytes = 0
  #length = 0
  #beyond = 0

  add(text: string): void {
    const room = LOOKED_AT - this.#length
    this.#length += Math.min(room, text.length)
    if (text.length <= room) {
      this.#bytes += scan(text, this.#counts, LETTERS)
      return
    }
    if (room > 0) this.#bytes += scan(text.slice(0, room), this.#counts, LETTERS)
    this.#beyond += Buffer.byteLength(text.slice(room))
  }

  copy(): Tally {
    const twin = new Tally()
    twin.#counts.set(this.#counts)
    twin.#bytes = this.#bytes
    twin.#length = this.#length
    twin.#beyond = this.#beyond
    return twin
  }

  /** UTF-8. */
  get bytes(): number {
    return this.#bytes + this.#beyond
  }

  tokens(family: Family): number {
    const rates = ratesOf(family)
    if (rates === undefined) return this.bytes
    let mean = 0
    for (let i = 0; i < FEATURES; i++) {
      const count = this.#counts[i] as number
      if (count > 0) mean += count * (rates.tokens[i] as number)
    }
    const looked = Math.ceil(mean * (1 + rates.margin) + rates.spread * Math.sqrt(mean) - 0.5)
    return Math.min(this.#bytes, looked) + Math.ceil(this.#beyond / 2)
  }
}

/** Pieces are scanned in blocks of about so many characters, so that words cut by a stream's chunks are whole again. */
const BLOCK = 4096

/** Estimates a text that comes in pieces. Holds at most some kilobytes of it. */
export class TextCounter {
  readonly #tally = new Tally()
  readonly #family: Family
  #pending = ''

  constructor(family: Family) {
    this.#family = family
  }

  add(piece: string): void {
    this.#pending += piece
    if (this.#pending.length < BLOCK) return
    const cut = this.#pending.lastIndexOf(' ')
    const end = cut > BLOCK / 2 ? cut : this.#pending.length
    this.#tally.add(this.#pending.slice(0, end))
    this.#pending = this.#pending.slice(end)
  }

  /** So far; asking more than once changes nothing. */
  get tokens(): number {
    const all = this.#tally.copy()
    all.add(this.#pending)
    return all.tokens(this.#family)
  }
}
