import { CLASSES, DIGIT, LETTERS as PLACES, SIGN, SIGNS, UPPER } from './characters.js'
import { DIGITS, FEATURES, LATIN, LENGTHS, PUNCT_ALONE, PUNCT_PREFIX, RARITIES } from './features.js'

/*
 * Features of Latin words, and of pieces of one unit, which are looked up as a whole.
 */

/** How ordinary letters are. */
export interface Letters {
  /** How likely a tokenizer cuts in the middle of three Latin letters, by `(first * 32 + second) * 32 + third`, 0 being a word's edge: tenths of a token, plus NONE; at most 15. */
  readonly triples: Uint8Array
  /** By UTF-16 code unit: 1 where few texts of its script use it, 2 where hardly any does, else 0. */
  readonly rare: Uint8Array
}

/** A triple that makes no cut. */
export const NONE = 3

/** To be added to the features of a word: it has no space before it, is in capitals. */
export const ALONE = LENGTHS * RARITIES
export const CAPITALS = 2 * ALONE

/** Rarity of a word whose triples come to `cuts`: by hundredths of a token per letter. */
export function rarityOf(cuts: number, length: number): number {
  const each = Math.floor((10 * (cuts - NONE * (length + 1))) / length)
  let rarity = 0
  while (rarity < RARITIES - 1 && each >= (RARER_FROM[rarity] as number)) rarity++
  return rarity
}

const RARER_FROM = Uint8Array.of(2, 5, 9, 14, 20, 28, 38, 50, 68)

/** By `length << 8 | cuts`: a word's place among those of its form. */
export const CELLS = cells()

/** As `rarityOf` has it: rarer from so many cuts on. */
function cells(): Uint8Array {
  const table = new Uint8Array((LENGTHS + 1) << 8)
  for (let length = 1; length <= LENGTHS; length++) {
    const start = length << 8
    table.fill((length - 1) * RARITIES, start, start + 256)
    for (const [rarity, tenths] of RARER_FROM.entries()) {
      const from = Math.ceil((tenths * length) / 10) + NONE * (length + 1)
      table.fill((length - 1) * RARITIES + rarity + 1, start + Math.min(from, 256), start + 256)
    }
  }
  return table
}

/** Stands for two features: a digit, and the space before it. */
export const SPACED_DIGIT = FEATURES
/** Of how a single unit stands: added up, the second factor of a place in `singles`. */
export const LETTER_BEHIND = 1
export const SPACE_BEFORE = 2

/** Features of single letters, digits and signs, by `unit * 4 + how it stands`. Units beyond these are none. */
export function fillSingles(singles: Uint16Array, { triples }: Letters): void {
  for (let unit = 0; unit < PLACES.length; unit++) {
    const kind = CLASSES[unit] as number
    if (kind > UPPER && kind !== SIGN && kind !== DIGIT) continue
    for (let stands = 0; stands < 4; stands++) {
      const spaced = (stands & SPACE_BEFORE) !== 0
      if (kind <= UPPER) {
        const place = PLACES[unit] as number
        const cuts = (triples[place] as number) + (triples[place << 5] as number)
        singles[unit * 4 + stands] = LATIN + (spaced ? 0 : ALONE) + (CELLS[(1 << 8) | cuts] as number)
      } else if (kind === SIGN) {
        singles[unit * 4 + stands] = (!spaced && (stands & LETTER_BEHIND) !== 0 ? PUNCT_PREFIX : PUNCT_ALONE) + (SIGNS[unit] as number)
      } else singles[unit * 4 + stands] = spaced ? SPACED_DIGIT : DIGITS + 2
    }
  }
}
export const SINGLES = PLACES.length * 4
