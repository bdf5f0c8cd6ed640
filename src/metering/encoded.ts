import * as characters from './characters.js'
import * as counts from './counts.js'
import * as features from './features.js'
import * as piece from './piece.js'

/*
 * What looks like encoded bytes, as base64 and hex do: vocabularies have no words for it. Written as scan.ts says.
 */

const { CLASSES: classes, DIGIT, GROUPS: groups, JOINING, NO_GROUP } = characters
const { OPAQUE } = features
const { UNITS: units, unitAt } = piece
const { count } = counts

const gaps = groups.map(group => (group === NO_GROUP ? 1 : 0))

/** 1 where no encoded bytes can be. */
export const gapAt = (at: number): number => gaps[units[at] as number] as number

/** At least so many characters without a space, with digits or capitals among them, are taken for encoded bytes. */
const OPAQUE_LENGTH = 32

/**
 * Looks at the run of letters, digits and `+/=_-` that begins at `start` and has more than one piece. Negative: minus its end, and it looks
 * like base64 or hex. Positive: no such run ends before there. Words joined by signs (paths, snake_case, kebab-case) are none: theirs change
 * class seldom.
 */
export function encodedEnd(start: number, end: number): number {
  if (end - start < OPAQUE_LENGTH) return end
  // From its far end, since most runs are short: what breaks this one breaks all that begin before the break. The last eight at once, since
  // a break among them is likely, and where is not to be foreseen.
  let at = start + OPAQUE_LENGTH - 1
  const near = (gapAt(at) << 7) | (gapAt(at - 1) << 6) | (gapAt(at - 2) << 5) | (gapAt(at - 3) << 4)
  const far = (gapAt(at - 4) << 3) | (gapAt(at - 5) << 2) | (gapAt(at - 6) << 1) | gapAt(at - 7)
  if ((near | far) !== 0) return at + 24 - Math.clz32(near | far)
  for (at -= 8; at > start; at--) if (gapAt(at) !== 0) return at
  let changes = 0
  let last = -1
  for (;;) {
    const group = groups[unitAt(at)] as number
    if (group === NO_GROUP) break
    if (group !== last && group !== JOINING && last !== JOINING) changes++
    last = group
    at++
  }
  return changes * 8 > at - start ? -at : at
}

/** Counts encoded bytes. Hex has no capitals beyond F, or none below g. */
export function countEncoded(start: number, end: number): void {
  let hex = true
  for (let at = start; at < end && hex; at++) {
    const c = unitAt(at) | 32
    hex = classes[c] === DIGIT || (c >= 97 && c <= 102) || c === 45
  }
  const base = hex ? OPAQUE + 2 : OPAQUE
  count(base, 1)
  count(base + 1, end - start)
}
