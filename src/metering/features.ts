/*
 * The features that a text is counted by (scan.ts), each with its number. Rates (rates.ts) are by these numbers: who changes them measures
 * the rates again.
 */

export const LATIN = 0 // kind (4) × length (16) × rarity (10)
export const LENGTHS = 16
export const RARITIES = 10
export const LATIN_MORE = LATIN + 4 * LENGTHS * RARITIES // letters past the 16th, by rarity
export const SCRIPT = LATIN_MORE + RARITIES // script × (spaced (2) × length (12) + letters past the 12th)
export const SCRIPT_LENGTHS = 12
export const SCRIPT_SIZE = 2 * SCRIPT_LENGTHS + 1
export const SCRIPTS = [
  'greek',
  'cyrillic',
  'hebrew',
  'arabic',
  'devanagari',
  'bengali',
  'tamil',
  'gurmukhi',
  'armenian',
  'georgian',
  'thai',
  'hangul',
  'hiragana',
  'katakana',
  'han',
  'other',
  'gujarati',
  'oriya',
  'telugu',
  'kannada',
  'malayalam',
  'sinhala',
  'ethiopic',
  'khmer',
  'burmese',
  'tibetan',
] as const
export const RARE = SCRIPT + SCRIPTS.length * SCRIPT_SIZE // letters that few texts of their script use, by script
export const RARER = RARE + SCRIPTS.length // and those that hardly any does
export const MARK = RARER + SCRIPTS.length // combining marks: Latin, Hebrew, Arabic
export const DIGITS = MARK + 3 // groups of three, a rest of two, a rest of one, groups after a space
export const NATIVE_DIGITS = DIGITS + 4 // of other scripts: digits, groups
export const PUNCT_PREFIX = NATIVE_DIGITS + 2 // one sign between a non-letter and a letter, by sign (32)
export const PUNCT_ALONE = PUNCT_PREFIX + 32 // one sign elsewhere, by sign
export const PUNCT_RUN = PUNCT_ALONE + 32 // runs by length 2 … 8
export const PUNCT_IN_RUN = PUNCT_RUN + 7 // signs in runs, by sign; past the 8th, all together
export const PUNCT_MORE = PUNCT_IN_RUN + 32
export const REPEAT = PUNCT_MORE + 1 // a sign that draws lines 4+, 8+, 16+, 32+ times, each further 64; any other sign, by times
export const SPACE = REPEAT + 6 // runs of spaces: of 2-3, 4-7, 8-15, 16-63, each further 64; one at the end
export const TAB = SPACE + 6 // runs, tabs past the first
export const LINE = TAB + 2 // one line break after punctuation, after anything else, two or more, each further four
export const SYMBOL = LINE + 4 // by block (16): first of a run, further ones
export const OPAQUE = SYMBOL + 32 // runs that look like base64 (runs, characters), and like hex
export const FEATURES = OPAQUE + 4
