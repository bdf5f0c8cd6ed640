import * as characters from './characters.js'
import * as counts from './counts.js'
import * as features from './features.js'
import * as piece from './piece.js'

/*
 * What is neither letter nor ASCII digit nor blank: runs of ASCII signs, and what stands alone. Written as scan.ts says.
 */

const { MARKS, NATIVE_DIGIT, SIGNS: numbers, SURROGATE, SYMBOLS } = characters
const { MARK, NATIVE_DIGITS, PUNCT_ALONE, PUNCT_IN_RUN, PUNCT_MORE, PUNCT_RUN, REPEAT, SYMBOL } = features
const { UNITS: units, classAt, unitAt } = piece
const { count } = counts

/** The feature of a sign that stands in a run of few. */
export const inRunAt = (at: number): number => PUNCT_IN_RUN + (numbers[units[at] as number] as number)

/** Signs of which vocabularies have long runs, since lines are drawn with them. */
const LINES = Uint8Array.from({ length: 128 }, (_, c) => ('-=*_.#/~'.includes(String.fromCharCode(c)) ? 1 : 0))

/** Counts a run of at least two ASCII signs. */
export function countSigns(start: number, end: number): void {
  let at = start
  let length = 0
  let first = 0
  let firstTimes = 0
  while (at < end) {
    const unit = unitAt(at)
    let same = at + 1
    while (unitAt(same) === unit) same++
    const times = same - at
    at = same
    if (times >= 4) {
      if (LINES[unit] === 1) {
        count(REPEAT + (times >= 32 ? 3 : times >= 16 ? 2 : times >= 8 ? 1 : 0), 1)
        count(REPEAT + 4, times >> 6)
      } else count(REPEAT + 5, times)
      continue
    }
    const sign = numbers[unit] as number
    if (length > 0) count(PUNCT_IN_RUN + sign, times)
    else {
      first = sign
      firstTimes = times
    }
    length += times
  }
  // The rest are lines that were drawn.
  if (length === 1) count(PUNCT_ALONE + first, 1)
  else if (length > 1) {
    count(PUNCT_IN_RUN + first, firstTimes)
    count(PUNCT_RUN + (length > 8 ? 6 : length - 2), 1)
    if (length > 8) count(PUNCT_MORE, length - 8)
  }
}

/** Counts what stands alone: symbols, emoji, marks, digits of other scripts, controls. `kind`: its class. Returns its end. */
export function countOther(start: number, kind: number): number {
  const unit = unitAt(start)
  let at = start + 1
  if (kind === SURROGATE) {
    const next = unitAt(at)
    const pair = unit < 0xdc00 && (next & 0xfc00) === 0xdc00
    const point = ((unit - 0xd800) << 10) + (next - 0xdc00) + 0x10000
    const block = !pair ? 13 : point >= 0x1f000 && point < 0x1fb00 ? 10 : point >= 0x20000 ? 11 : 12
    count(SYMBOL + 2 * block, 1)
    return pair ? at + 1 : at
  }
  if (kind >= MARKS) {
    count(MARK + kind - MARKS, 1)
    return at
  }
  if (kind >= SYMBOLS) {
    const block = SYMBOL + 2 * (kind - SYMBOLS)
    while (unitAt(at) === unit) at++
    count(block, 1)
    count(block + 1, at - start - 1)
    return at
  }
  if (kind === NATIVE_DIGIT) {
    while (classAt(at) === NATIVE_DIGIT) at++
    count(NATIVE_DIGITS, at - start)
    count(NATIVE_DIGITS + 1, Math.ceil((at - start) / 3))
    return at
  }
  count(SYMBOL + 2 * 14, 1)
  return at
}
