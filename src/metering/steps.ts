import { BLANK, BREAK, DIGIT, MARKS, SCRIPT_CLASS, SIGN, SYMBOLS, TABULATOR, UPPER } from './characters.js'

/*
 * What begins at a code unit, by its class and that of the unit behind it: so much decides how the scan goes on (scan.ts). Most pieces of
 * code, JSON and logs are one unit long, and are told apart here, at one look.
 */

/** A piece of one unit, no letter behind it: a letter, a digit or a sign. One more: a letter behind it. */
const SINGLE = 0
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
export const STEPS = steps()

/** By class: 1 where a line break behind it is cheap, since vocabularies have the two as one. */
export const BREAKS_JOIN = Uint8Array.from({ length: CLASSES }, (_, kind) => (kind === SIGN || (kind >= SYMBOLS && kind < MARKS) ? 1 : 0))

export function isLetter(kind: number): boolean {
  return kind <= UPPER || kind >= SCRIPT_CLASS
}

function steps(): Uint8Array {
  const table = new Uint8Array(CLASSES * CLASSES).fill(OTHER)
  const rows = (from: number, to: number, step: (next: number) => number): void => {
    const row = Uint8Array.from({ length: CLASSES }, (_, next) => step(next))
    for (let kind = from; kind <= to; kind++) table.set(row, kind * CLASSES)
  }
  const single = (next: number): number => (isLetter(next) ? SINGLE + 1 : SINGLE)
  const joined = (next: number): number => single(next) + (next <= UPPER || next === DIGIT || next === SIGN ? JOINED : 0)
  rows(0, UPPER - 1, next => (next < UPPER ? WORD : joined(next)))
  rows(UPPER, UPPER, next => (next <= UPPER ? WORD : joined(next)))
  rows(DIGIT, DIGIT, next => (next === DIGIT ? NUMBER : joined(next)))
  rows(SIGN, SIGN, next => (next === SIGN ? SIGNS : single(next)))
  rows(BLANK, BLANK, next => (next === BLANK || next === BREAK || next === TABULATOR ? BLANKS : SPACED))
  rows(BREAK, BREAK, () => BREAKS)
  rows(TABULATOR, TABULATOR, () => TABULATORS)
  rows(SCRIPT_CLASS, CLASSES - 1, () => LETTERS_OF_SCRIPT)
  return table
}
