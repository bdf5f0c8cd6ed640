import { BLANK, BREAK, DIGIT, MARKS, SCRIPT_CLASS, SIGN, SYMBOLS, TABULATOR, UPPER } from './characters.js'

/*
 * What begins at a code unit, by its class and that of the unit behind it: so much decides how the scan goes on (scan.ts). Most pieces of
 * code, JSON and logs are one unit long, and are told apart here, at one look.
 */

/** A piece of one unit, no letter behind it: a letter, a digit or a sign. One more: a letter behind it. */
export const SINGLE = 0
/** To be added to it: the letter or digit may be the first of encoded bytes. */
export const JOINED = 2
export const SINGLE_MOST = 3
export const WORD = 4
/** One blank that goes with what stands behind it. */
export const SPACED = 5
export const BLANKS = 6
export const LETTERS_OF_SCRIPT = 7
export const SIGNS = 8
export const NUMBER = 9
export const BREAKS = 10
export const TABULATORS = 11
export const OTHER = 12

const CLASSES = 128
/** By `class << 7 | class of the unit behind`. */
export const STEPS = new Uint8Array(CLASSES * CLASSES).map((_, pair) => stepOf(pair >> 7, pair & 127))

/** By class: 1 where a line break behind it is cheap, since vocabularies have the two as one. */
export const BREAKS_JOIN = Uint8Array.from({ length: CLASSES }, (_, kind) => (kind === SIGN || (kind >= SYMBOLS && kind < MARKS) ? 1 : 0))

export function isLetter(kind: number): boolean {
  return kind <= UPPER || kind >= SCRIPT_CLASS
}

function stepOf(kind: number, next: number): number {
  const single = isLetter(next) ? SINGLE + 1 : SINGLE
  const joined = next <= UPPER || next === DIGIT || next === SIGN ? JOINED : 0
  if (kind < UPPER) return next < UPPER ? WORD : single + joined
  if (kind === UPPER) return next <= UPPER ? WORD : single + joined
  if (kind >= SCRIPT_CLASS) return LETTERS_OF_SCRIPT
  switch (kind) {
    case DIGIT:
      return next === DIGIT ? NUMBER : single + joined
    case SIGN:
      return next === SIGN ? SIGNS : single
    case BLANK:
      return next === BLANK || next === BREAK || next === TABULATOR ? BLANKS : SPACED
    case BREAK:
      return BREAKS
    case TABULATOR:
      return TABULATORS
    default:
      return OTHER
  }
}
