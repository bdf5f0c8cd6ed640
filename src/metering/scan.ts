import {
  BLANK,
  BREAK,
  CLASSES,
  DIGIT,
  GROUPS,
  JOINING,
  LETTERS,
  MARKS,
  NATIVE_DIGIT,
  NO_GROUP,
  SCRIPT_CLASS,
  SIGN,
  SIGNS,
  SURROGATE,
  SYMBOLS,
  TABULATOR,
  UPPER,
} from './characters.js'
import {
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
} from './features.js'

/*
 * What a text is made of, as byte-pair tokenizers see it: they cut it into words with the space before them, groups of digits, runs of
 * punctuation and runs of white space, and then spell each piece from their vocabulary. The cuts are rules and can be followed; what a piece
 * costs is a matter of its script, its length and how ordinary its letters are, and is looked up in rates measured for each tokenizer.
 * One pass over UTF-16 code units, linear in any input.
 */

/** How ordinary letters are. */
export interface Letters {
  /** How likely a tokenizer cuts in the middle of three Latin letters, in hundredths, by `(first * 32 + second) * 32 + third`; 0 is a word's edge. */
  readonly triples: Int8Array
  /** By UTF-16 code unit: 1 where few texts of its script use it, 2 where hardly any does, else 0. */
  readonly rare: Uint8Array
}

/** Adds what the text is made of to `counts` (by the numbers of features.ts). Returns the text's bytes in UTF-8. */
export function scan(text: string, counts: Int32Array, { triples, rare: rareLetters }: Letters): number {
  const end = text.length
  let bytes = end
  let i = 0
  let spaced = false // a space stands before this piece and goes with it
  let loose = 0 // where the last run that was tested for base64 ends
  let afterSign = false
  while (i < end) {
    const c = text.charCodeAt(i)
    const kind = CLASSES[c] as number
    if (kind <= UPPER) {
      if (i >= loose) {
        const stop = opaqueEnd(text, i, end)
        if (stop < 0) {
          i = opaqueAt(text, i, -stop, counts)
          spaced = afterSign = false
          continue
        }
        loose = stop
      }
      // A Latin word: capitals, or letters up to the next capital.
      let at = i + 1
      let capitals = 0
      let three = LETTERS[c] as number
      let rarity = triples[three] as number
      if (c > 127) bytes += c > 0x7ff ? 2 : 1
      if (kind === UPPER && at < end && CLASSES[text.charCodeAt(at)] === UPPER) {
        capitals = 2
        while (at < end) {
          const d = text.charCodeAt(at)
          if (CLASSES[d] !== UPPER) break
          if (at + 1 < end && (CLASSES[text.charCodeAt(at + 1)] as number) < UPPER) break
          three = ((three << 5) | (LETTERS[d] as number)) & 32767
          rarity += triples[three] as number
          if (d > 127) bytes += d > 0x7ff ? 2 : 1
          at++
        }
      } else {
        while (at < end) {
          const d = text.charCodeAt(at)
          const place = CLASSES[d] as number
          if (place >= UPPER) break
          three = ((three << 5) | place) & 32767
          rarity += triples[three] as number
          if (d > 127) bytes += d > 0x7ff ? 2 : 1
          at++
        }
      }
      rarity += triples[(three << 5) & 32767] as number
      const length = at - i
      const each = rarity <= 0 ? 0 : (rarity / length) | 0
      const bucket = RARITY[Math.min(each, 79)] as number
      const form = capitals + (spaced ? 0 : 1)
      if (length > LENGTHS) {
        count(counts, LATIN_MORE + bucket, length - LENGTHS)
        count(counts, LATIN + (form * LENGTHS + LENGTHS - 1) * RARITIES + bucket, 1)
      } else count(counts, LATIN + (form * LENGTHS + length - 1) * RARITIES + bucket, 1)
      i = at
      spaced = afterSign = false
      // What the branch for blanks would do, an eighth faster for plain prose: one space, and another word.
      if (at + 1 < end && text.charCodeAt(at) === 32 && (CLASSES[text.charCodeAt(at + 1)] as number) <= UPPER) {
        spaced = true
        i++
      }
    } else if (kind >= SCRIPT_CLASS) {
      let at = i
      let rare = 0
      let rarer = 0
      let d = c
      do {
        const rank = rareLetters[d] as number
        rare += rank & 1
        rarer += rank >> 1
        bytes += d > 0x7ff ? 2 : 1
        d = ++at < end ? text.charCodeAt(at) : 0
      } while (CLASSES[d] === kind)
      if (rare > 0) count(counts, RARE + kind - SCRIPT_CLASS, rare)
      if (rarer > 0) count(counts, RARER + kind - SCRIPT_CLASS, rarer)
      const length = at - i
      const base = SCRIPT + (kind - SCRIPT_CLASS) * SCRIPT_SIZE
      const row = base + (spaced ? 0 : SCRIPT_LENGTHS)
      if (length > SCRIPT_LENGTHS) {
        count(counts, row + SCRIPT_LENGTHS - 1, 1)
        count(counts, base + 2 * SCRIPT_LENGTHS, length - SCRIPT_LENGTHS)
      } else count(counts, row + length - 1, 1)
      i = at
      spaced = afterSign = false
    } else if (kind === DIGIT) {
      if (i >= loose) {
        const stop = opaqueEnd(text, i, end)
        if (stop < 0) {
          i = opaqueAt(text, i, -stop, counts)
          spaced = afterSign = false
          continue
        }
        loose = stop
      }
      let at = i + 1
      while (at < end && CLASSES[text.charCodeAt(at)] === DIGIT) at++
      const length = at - i
      const rest = length % 3
      count(counts, DIGITS, (length - rest) / 3)
      if (rest > 0) count(counts, DIGITS + 3 - rest, 1)
      if (spaced) count(counts, DIGITS + 3, 1)
      i = at
      spaced = afterSign = false
    } else if (kind === SIGN) {
      i = signsAt(text, i, end, counts, spaced)
      spaced = false
      afterSign = true
    } else if (kind === BLANK) {
      let at = i + 1
      while (at < end && text.charCodeAt(at) === 32) at++
      const next = at < end ? (CLASSES[text.charCodeAt(at)] as number) : BREAK
      // The last space of a run goes with what follows it; before a line break all of them do.
      spaced = next !== BREAK && next !== TABULATOR
      const length = spaced ? at - i - 1 : at - i
      if (length > 0) {
        if (at === end && length === 1) count(counts, SPACE + 5, 1)
        else if (next !== BREAK || length > 1) blanks(length, counts)
      }
      afterSign = afterSign && !spaced
      i = at
    } else if (kind === BREAK) {
      let at = i + 1
      let breaks = c === 10 ? 1 : 0
      while (at < end && CLASSES[text.charCodeAt(at)] === BREAK) {
        if (text.charCodeAt(at) === 10) breaks++
        at++
      }
      if (breaks > 1) {
        count(counts, LINE + 2, 1)
        count(counts, LINE + 3, (breaks - 1) >> 2)
      } else count(counts, LINE + (afterSign ? 0 : 1), 1)
      i = at
      spaced = afterSign = false
    } else if (kind === TABULATOR) {
      let at = i + 1
      while (at < end && text.charCodeAt(at) === 9) at++
      count(counts, TAB, 1)
      count(counts, TAB + 1, at - i - 1)
      i = at
      spaced = afterSign = false
    } else if (kind === SURROGATE) {
      const next = i + 1 < end ? text.charCodeAt(i + 1) : 0
      if (c < 0xdc00 && (next & 0xfc00) === 0xdc00) {
        bytes += 2
        const point = ((c - 0xd800) << 10) + (next - 0xdc00) + 0x10000
        count(counts, SYMBOL + 2 * (point >= 0x1f000 && point < 0x1fb00 ? 10 : point >= 0x20000 ? 11 : 12), 1)
        i += 2
      } else {
        bytes += 2
        count(counts, SYMBOL + 2 * 13, 1)
        i++
      }
      spaced = afterSign = false
    } else if (kind >= MARKS) {
      bytes += c > 0x7ff ? 2 : 1
      count(counts, MARK + kind - MARKS, 1)
      i++
    } else if (kind >= SYMBOLS) {
      const base = SYMBOL + 2 * (kind - SYMBOLS)
      let at = i + 1
      while (at < end && text.charCodeAt(at) === c) at++
      count(counts, base, 1)
      count(counts, base + 1, at - i - 1)
      bytes += c > 0x7ff ? 2 * (at - i) : at - i
      i = at
      spaced = false
      afterSign = true
    } else if (kind === NATIVE_DIGIT) {
      let at = i + 1
      bytes += c > 0x7ff ? 2 : 1
      while (at < end && CLASSES[text.charCodeAt(at)] === NATIVE_DIGIT) bytes += text.charCodeAt(at++) > 0x7ff ? 2 : 1
      count(counts, NATIVE_DIGITS, at - i)
      count(counts, NATIVE_DIGITS + 1, Math.ceil((at - i) / 3))
      i = at
      spaced = afterSign = false
    } else {
      if (c > 127) bytes++
      count(counts, SYMBOL + 2 * 14, 1)
      i++
      spaced = afterSign = false
    }
  }
  return bytes
}

/** Rarity by hundredths of a token per letter. */
const RARITY = Uint8Array.from({ length: 80 }, (_, i) =>
  i < 2 ? 0 : i < 5 ? 1 : i < 9 ? 2 : i < 14 ? 3 : i < 20 ? 4 : i < 28 ? 5 : i < 38 ? 6 : i < 50 ? 7 : i < 68 ? 8 : 9,
)

/** Signs of which vocabularies have long runs, since lines are drawn with them. */
const LINES = new Set([...'-=*_.#/~'].map(sign => sign.charCodeAt(0)))

/** A run of ASCII signs; returns its end. */
function signsAt(text: string, start: number, end: number, counts: Int32Array, spaced: boolean): number {
  let at = start
  let length = 0
  let first = 0
  while (at < end) {
    const c = text.charCodeAt(at)
    if (CLASSES[c] !== SIGN) break
    let same = at + 1
    while (same < end && text.charCodeAt(same) === c) same++
    const times = same - at
    const sign = SIGNS[c] as number
    at = same
    if (times >= 4) {
      if (LINES.has(c)) {
        count(counts, REPEAT + (times >= 32 ? 3 : times >= 16 ? 2 : times >= 8 ? 1 : 0), 1)
        count(counts, REPEAT + 4, times >> 6)
      } else count(counts, REPEAT + 5, times)
      continue
    }
    if (length === 0) first = sign
    length += times
    count(counts, PUNCT_IN_RUN + sign, times)
  }
  if (length === 1) {
    count(counts, PUNCT_IN_RUN + first, -1)
    const next = at < end ? (CLASSES[text.charCodeAt(at)] as number) : BREAK
    const prefix = !spaced && at === start + 1 && (next <= UPPER || next >= SCRIPT_CLASS)
    count(counts, (prefix ? PUNCT_PREFIX : PUNCT_ALONE) + first, 1)
  } else if (length > 1) {
    count(counts, PUNCT_RUN + (length > 8 ? 6 : length - 2), 1)
    if (length > 8) count(counts, PUNCT_MORE, length - 8)
  }
  return at
}

function blanks(length: number, counts: Int32Array): void {
  count(counts, SPACE + (length >= 16 ? 3 : length >= 8 ? 2 : length >= 4 ? 1 : 0), 1)
  count(counts, SPACE + 4, length >> 6)
}

/** At least so many characters without a space, with digits or capitals among them, are taken for encoded bytes. */
const OPAQUE_LENGTH = 32

/**
 * Looks at the run of letters, digits and `+/=_-` that begins at `start`. Negative: minus its end, and it looks like base64 or hex. Positive:
 * no such run ends before there. Words joined by signs (paths, snake_case, kebab-case) are none: theirs change class seldom.
 */
function opaqueEnd(text: string, start: number, end: number): number {
  if (end - start < OPAQUE_LENGTH) return end
  // From its far end, since most runs are short: what breaks this one breaks all that begin before the break.
  for (let at = start + OPAQUE_LENGTH - 1; at > start; at--) if (groupOf(text.charCodeAt(at)) === NO_GROUP) return at
  let at = start
  let changes = 0
  let last = -1
  while (at < end) {
    const group = groupOf(text.charCodeAt(at))
    if (group === NO_GROUP) break
    if (group !== last && group !== JOINING && last !== JOINING) changes++
    last = group
    at++
  }
  return changes * 8 > at - start ? -at : at
}

/** Lower case, upper case, digits, joining signs, none of these. */
function groupOf(c: number): number {
  return c > 127 ? NO_GROUP : (GROUPS[c] as number)
}

function count(counts: Int32Array, feature: number, times: number): void {
  counts[feature] = (counts[feature] as number) + times
}

/** Hex has no capitals beyond F, or none below g. */
function opaqueAt(text: string, start: number, end: number, counts: Int32Array): number {
  let hex = true
  for (let at = start; at < end && hex; at++) {
    const c = text.charCodeAt(at) | 32
    hex = CLASSES[c] === DIGIT || (c >= 97 && c <= 102) || c === 45
  }
  const base = hex ? OPAQUE + 2 : OPAQUE
  count(counts, base, 1)
  count(counts, base + 1, end - start)
  return end
}
