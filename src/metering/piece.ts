import { CLASSES } from './characters.js'
import { isLetter } from './steps.js'

/*
 * The piece of a text that is under the scan: how it gets there, and what stands at each of its places. Written as scan.ts says.
 */

const classes = CLASSES

/** So many code units are looked at in one go. */
const PIECE = 32_768
/** So far before the end of a piece a space is looked for, to cut there. */
const CUT = 256
/** Shorter pieces are copied unit by unit, since a call out of JavaScript costs more. */
const COPIED = 96

/**
 * The piece under the scan, and a line break behind it that ends every run: reads from here need no test for the end, nor for how the string is
 * stored, which halves the time. It holds the start of an earlier text until the next one comes. Tables are read by it at one step, as below: the
 * compiler takes in only so many calls.
 */
export const UNITS = new Uint16Array(PIECE + 2)
const units = UNITS
const unitBytes = Buffer.from(UNITS.buffer)

export const unitAt = (at: number): number => units[at] as number
export const classAt = (at: number): number => classes[units[at] as number] as number

/** Puts one piece of the text after the other under the scan, and calls `scan` with how many units it has. */
export function eachPiece(text: string, scan: (length: number) => void): void {
  if (text.length <= PIECE) scan(put(text))
  else {
    for (let start = 0, end = 0; start < text.length; start = end) {
      end = start + PIECE < text.length ? cutBefore(text, start + PIECE) : text.length
      scan(put(text.slice(start, end)))
    }
  }
}

/** Returns how many units it has. */
function put(piece: string): number {
  const { length } = piece
  if (length > COPIED) unitBytes.write(piece, 'utf16le')
  else for (let i = 0; i < length; i++) units[i] = piece.charCodeAt(i)
  units[length] = units[length + 1] = 10
  return length
}

/** Where a text is cut so that nothing is counted twice: before a space that goes with the word behind it. Else anywhere, but in no pair. */
function cutBefore(text: string, limit: number): number {
  const isLetterAt = (at: number) => isLetter(classes[text.charCodeAt(at)] as number)
  for (let at = limit - 1; at > limit - CUT; at--) if (text.charCodeAt(at) === 32 && isLetterAt(at + 1) && isLetterAt(at - 1)) return at
  return (text.charCodeAt(limit) & 0xfc00) === 0xdc00 ? limit - 1 : limit
}
