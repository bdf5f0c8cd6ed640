import * as characters from '../../src/metering/characters.js'
import * as features from '../../src/metering/features.js'
import type { Letters } from '../../src/metering/scan.js'

/*
 * The scan of src/metering/scan.ts as it is told in a few words: class by class, each piece to its end, rates added up as it goes. What that one
 * counts by tables must cost the same to the hundredth of a token.
 */

const { BLANK, BREAK, DIGIT, JOINING, MARKS, NATIVE_DIGIT, NO_GROUP, SCRIPT_CLASS, SIGN, SURROGATE, SYMBOLS, TABULATOR, UPPER } = characters
const { CLASSES: classes, GROUPS: groups, LETTERS: places, SIGNS: signPlaces } = characters
const {
  DIGITS,
  LATIN,
  LATIN_MORE,
  LENGTHS,
  LINE,
  MARK,
  NATIVE_DIGITS,
  OPAQUE,
  PUNCT_ALONE,
  PUNCT_IN_RUN,
  PUNCT_MORE,
  PUNCT_PREFIX,
  PUNCT_RUN,
  RARE,
  RARER,
  RARITIES,
  REPEAT,
  SCRIPT,
  SCRIPT_LENGTHS,
  SCRIPT_SIZE,
  SPACE,
  SYMBOL,
  TAB,
} = features

/** A triple that makes no cut. */
const NONE = 3
type FeatureRates = Uint16Array

/** So many code units are looked at in one go. */
const PIECE = 32_768
/** So far before the end of a piece a space is looked for, to cut there. */
const CUT = 256
/** The piece under the scan, and a line break behind it that ends every run. */
const units = new Uint16Array(PIECE + 2)

/** What the text costs, in hundredths of a token: the sum of its features' rates. */
export function plainScan(text: string, rates: FeatureRates, letters: Letters): number {
  let sum = 0
  for (let start = 0; start < text.length; ) {
    const end = start + PIECE < text.length ? cutBefore(text, start + PIECE) : text.length
    for (let i = start; i < end; i++) units[i - start] = text.charCodeAt(i)
    sum += scanUnits(end - start, rates, letters)
    start = end
  }
  return sum
}

/** Where a text is cut so that nothing is counted twice: before a space that goes with the word behind it. Else anywhere, but in no pair. */
function cutBefore(text: string, limit: number): number {
  for (let at = limit - 1; at > limit - CUT; at--) {
    if (text.charCodeAt(at) === 32 && isLetter(classOf(text.charCodeAt(at + 1))) && isLetter(classOf(text.charCodeAt(at - 1)))) return at
  }
  return (text.charCodeAt(limit) & 0xfc00) === 0xdc00 ? limit - 1 : limit
}

function isLetter(kind: number): boolean {
  return kind <= UPPER || kind >= SCRIPT_CLASS
}

function classOf(unit: number): number {
  return classes[unit] as number
}

/** The class of the unit there. */
function classAt(at: number): number {
  return classes[units[at] as number] as number
}

/** Of a word: without a space before it, in capitals. */
const ALONE = LENGTHS * RARITIES
const CAPITALS = 2 * ALONE

/** The first `end` of `units`. Sums stay exact: no rate is above 2^16, and a piece has no more than 2^15 units. */
function scanUnits(end: number, rates: FeatureRates, { triples, rare: rareLetters }: Letters): number {
  units[end] = units[end + 1] = 10
  let sum = 0
  let i = 0
  let kind = classAt(0)
  let spaced = false // a space stands before this piece and goes with it
  let loose = 0 // where the last run that was tested for base64 ends
  let opaqueTo = -1 // where the last run that was base64 ends
  while (i < end) {
    if (kind <= UPPER) {
      if (i >= loose) {
        loose = opaqueEnd(i, end)
        if (loose < 0) {
          loose = opaqueTo = -loose
          sum += opaque(i, loose, rates)
          i = loose
          kind = classAt(i)
          spaced = false
          continue
        }
      }
      // A Latin word: capitals, or letters up to the next capital.
      let at = i + 1
      let form = spaced ? LATIN : LATIN + ALONE
      let next = classAt(at)
      let three: number
      let cuts: number
      if (kind < UPPER || next < UPPER) {
        three = kind < UPPER ? kind : (places[units[i] as number] as number)
        cuts = triples[three] as number
        while (next < UPPER) {
          three = ((three << 5) | next) & 32767
          cuts += triples[three] as number
          next = classAt(++at)
        }
      } else {
        three = places[units[i] as number] as number
        cuts = triples[three] as number
        if (next === UPPER) form += CAPITALS
        while (next === UPPER && classAt(at + 1) >= UPPER) {
          three = ((three << 5) | (places[units[at] as number] as number)) & 32767
          cuts += triples[three] as number
          next = classAt(++at)
        }
      }
      cuts += triples[(three << 5) & 32767] as number
      const length = at - i
      if (length <= LENGTHS) sum += rates[form + (CELLS[(length << 8) | cuts] as number)] as number
      else {
        const bucket = bucketOf(cuts, length)
        sum += rates[form + (LENGTHS - 1) * RARITIES + bucket] as number
        sum += (rates[LATIN_MORE + bucket] as number) * (length - LENGTHS)
      }
      i = at
      kind = next
      spaced = false
      // What the branch for blanks would do, sooner: one space, and another word.
      if (kind === BLANK) {
        next = classAt(at + 1)
        if (next <= UPPER) {
          spaced = true
          i++
          kind = next
        }
      }
    } else if (kind >= SCRIPT_CLASS) {
      let at = i
      let rare = 0
      let next: number
      do {
        // Two counts in one: rare letters below, rarer ones above.
        rare += RANKS[rareLetters[units[at] as number] as number] as number
        next = classAt(++at)
      } while (next === kind)
      if (rare > 0) {
        sum += (rates[RARE + kind - SCRIPT_CLASS] as number) * (rare & 65535)
        sum += (rates[RARER + kind - SCRIPT_CLASS] as number) * (rare >> 16)
      }
      const length = at - i
      const base = SCRIPT + (kind - SCRIPT_CLASS) * SCRIPT_SIZE
      const row = spaced ? base : base + SCRIPT_LENGTHS
      if (length > SCRIPT_LENGTHS) {
        sum += rates[row + SCRIPT_LENGTHS - 1] as number
        sum += (rates[base + 2 * SCRIPT_LENGTHS] as number) * (length - SCRIPT_LENGTHS)
      } else sum += rates[row + length - 1] as number
      i = at
      kind = next
      spaced = false
      if (kind === BLANK) {
        next = classAt(at + 1)
        if (isLetter(next)) {
          spaced = true
          i++
          kind = next
        }
      }
    } else if (kind === SIGN) {
      let at = i + 1
      const next = classAt(at)
      if (next !== SIGN) {
        // One sign, as most are.
        const sign = signPlaces[units[i] as number] as number
        sum += rates[(!spaced && isLetter(next) ? PUNCT_PREFIX : PUNCT_ALONE) + sign] as number
        kind = next
      } else {
        do kind = classAt(++at)
        while (kind === SIGN)
        sum += signs(i, at, rates)
      }
      i = at
      spaced = false
    } else if (kind === BLANK) {
      let at = i + 1
      while (units[at] === 32) at++
      kind = classAt(at)
      // The last space of a run goes with what follows it; before a line break all of them do.
      spaced = kind !== BREAK && kind !== TABULATOR
      const length = spaced ? at - i - 1 : at - i
      if (length > 0) {
        if (at === end && length === 1) sum += rates[SPACE + 5] as number
        else if (kind !== BREAK || length > 1) {
          sum += rates[SPACE + (length >= 16 ? 3 : length >= 8 ? 2 : length >= 4 ? 1 : 0)] as number
          if (length >= 64) sum += (rates[SPACE + 4] as number) * (length >> 6)
        }
      }
      i = at
    } else if (kind === DIGIT) {
      if (i >= loose) {
        loose = opaqueEnd(i, end)
        if (loose < 0) {
          loose = opaqueTo = -loose
          sum += opaque(i, loose, rates)
          i = loose
          kind = classAt(i)
          spaced = false
          continue
        }
      }
      let at = i + 1
      kind = classAt(at)
      while (kind === DIGIT) kind = classAt(++at)
      let length = at - i
      if (length >= 3) {
        const groups = (length / 3) | 0
        sum += groups * (rates[DIGITS] as number)
        length -= 3 * groups
      }
      if (length > 0) sum += rates[DIGITS + 3 - length] as number
      if (spaced) sum += rates[DIGITS + 3] as number
      i = at
      spaced = false
    } else if (kind === BREAK) {
      const signed = followsSign(i, opaqueTo)
      let breaks = 0
      do {
        if (units[i] === 10) breaks++
        kind = classAt(++i)
      } while (kind === BREAK && i < end)
      if (breaks > 1) sum += (rates[LINE + 2] as number) + (rates[LINE + 3] as number) * ((breaks - 1) >> 2)
      else sum += rates[signed ? LINE : LINE + 1] as number
      spaced = false
    } else if (kind === TABULATOR) {
      let at = i + 1
      while (units[at] === 9) at++
      sum += (rates[TAB] as number) + (rates[TAB + 1] as number) * (at - i - 1)
      i = at
      kind = classAt(i)
      spaced = false
    } else {
      i = otherAt(i, kind, rates)
      sum += otherCost
      // A mark goes with what it stands on.
      if (kind < MARKS) spaced = false
      kind = classAt(i)
    }
  }
  return sum
}

/** Does a sign stand before the blanks before this place? What is encoded ends with signs that are none. */
function followsSign(at: number, opaqueTo: number): boolean {
  while (at > 0 && units[at - 1] === 32) at--
  if (at === 0 || at === opaqueTo) return false
  const kind = classAt(at - 1)
  return kind === SIGN || (kind >= SYMBOLS && kind < MARKS)
}

let otherCost = 0

/** What stands alone: symbols, emoji, marks, digits of other scripts, controls. Returns its end, and leaves its cost in `otherCost`. */
function otherAt(start: number, kind: number, rates: FeatureRates): number {
  const c = units[start] as number
  let at = start + 1
  if (kind === SURROGATE) {
    const next = units[at] as number
    const pair = c < 0xdc00 && (next & 0xfc00) === 0xdc00
    const point = ((c - 0xd800) << 10) + (next - 0xdc00) + 0x10000
    const block = !pair ? 13 : point >= 0x1f000 && point < 0x1fb00 ? 10 : point >= 0x20000 ? 11 : 12
    otherCost = rates[SYMBOL + 2 * block] as number
    return pair ? at + 1 : at
  }
  if (kind >= MARKS) {
    otherCost = rates[MARK + kind - MARKS] as number
    return at
  }
  if (kind >= SYMBOLS) {
    const base = SYMBOL + 2 * (kind - SYMBOLS)
    while (units[at] === c) at++
    otherCost = (rates[base] as number) + (rates[base + 1] as number) * (at - start - 1)
    return at
  }
  if (kind === NATIVE_DIGIT) {
    while (classAt(at) === NATIVE_DIGIT) at++
    otherCost = (rates[NATIVE_DIGITS] as number) * (at - start) + (rates[NATIVE_DIGITS + 1] as number) * Math.ceil((at - start) / 3)
    return at
  }
  otherCost = rates[SYMBOL + 2 * 14] as number
  return at
}

/** Rarity of a word whose triples come to `cuts`: by hundredths of a token per letter. */
function bucketOf(cuts: number, length: number): number {
  const each = Math.max(0, Math.floor((10 * (cuts - NONE * (length + 1))) / length))
  return each < 2
    ? 0
    : each < 5
      ? 1
      : each < 9
        ? 2
        : each < 14
          ? 3
          : each < 20
            ? 4
            : each < 28
              ? 5
              : each < 38
                ? 6
                : each < 50
                  ? 7
                  : each < 68
                    ? 8
                    : 9
}

/** By length and what its triples come to: a word's place among those of its form. */
const CELLS = Uint8Array.from({ length: (LENGTHS + 1) << 8 }, (_, i) => {
  const length = Math.max(1, i >> 8)
  return (length - 1) * RARITIES + bucketOf(i & 255, length)
})
const RANKS = Int32Array.of(0, 1, 65536)

/** Signs of which vocabularies have long runs, since lines are drawn with them. */
const LINES = Uint8Array.from({ length: 128 }, (_, c) => ('-=*_.#/~'.includes(String.fromCharCode(c)) ? 1 : 0))

/** A run of at least two ASCII signs. */
function signs(start: number, end: number, rates: FeatureRates): number {
  let sum = 0
  let at = start
  let length = 0
  let first = 0
  while (at < end) {
    const c = units[at] as number
    let same = at + 1
    while (units[same] === c) same++
    const times = same - at
    at = same
    if (times >= 4) {
      if (LINES[c] === 1) {
        sum += rates[REPEAT + (times >= 32 ? 3 : times >= 16 ? 2 : times >= 8 ? 1 : 0)] as number
        sum += (rates[REPEAT + 4] as number) * (times >> 6)
      } else sum += (rates[REPEAT + 5] as number) * times
      continue
    }
    const sign = signPlaces[c] as number
    if (length === 0) first = sign
    length += times
    sum += (rates[PUNCT_IN_RUN + sign] as number) * times
  }
  // The rest are lines that were drawn.
  if (length === 1) sum += (rates[PUNCT_ALONE + first] as number) - (rates[PUNCT_IN_RUN + first] as number)
  else if (length > 1) sum += rates[PUNCT_RUN + (length > 8 ? 6 : length - 2)] as number
  if (length > 8) sum += (rates[PUNCT_MORE] as number) * (length - 8)
  return sum
}

/** At least so many characters without a space, with digits or capitals among them, are taken for encoded bytes. */
const OPAQUE_LENGTH = 32

/**
 * Looks at the run of letters, digits and `+/=_-` that begins at `start`. Negative: minus its end, and it looks like base64 or hex. Positive:
 * no such run ends before there. Words joined by signs (paths, snake_case, kebab-case) are none: theirs change class seldom.
 */
function opaqueEnd(start: number, end: number): number {
  if (end - start < OPAQUE_LENGTH) return end
  // From its far end, since most runs are short: what breaks this one breaks all that begin before the break.
  for (let at = start + OPAQUE_LENGTH - 1; at > start; at--) if (groups[units[at] as number] === NO_GROUP) return at
  let at = start
  let changes = 0
  let last = -1
  for (;;) {
    const group = groups[units[at] as number] as number
    if (group === NO_GROUP) break
    if (group !== last && group !== JOINING && last !== JOINING) changes++
    last = group
    at++
  }
  return changes * 8 > at - start ? -at : at
}

/** Hex has no capitals beyond F, or none below g. */
function opaque(start: number, end: number, rates: FeatureRates): number {
  let hex = true
  for (let at = start; at < end && hex; at++) {
    const c = (units[at] as number) | 32
    hex = classes[c] === DIGIT || (c >= 97 && c <= 102) || c === 45
  }
  const base = hex ? OPAQUE + 2 : OPAQUE
  return (rates[base] as number) + (rates[base + 1] as number) * (end - start)
}
