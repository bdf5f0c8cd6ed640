import * as characters from './characters.js'
import * as features from './features.js'
import * as steps from './steps.js'
import * as words from './words.js'

/*
 * What a text is made of, as byte-pair tokenizers see it: they cut it into words with the space before them, groups of digits, runs of
 * punctuation and runs of white space, and then spell each piece from their vocabulary. The cuts are rules and can be followed; what a piece
 * costs is a matter of its script, its length and how ordinary its letters are: a feature, which is counted here, and whose rate was measured
 * for each tokenizer. One pass over UTF-16 code units, linear in any input, whatever the number of tokenizers.
 *
 * It is written for the compiler: a MiB has a million units, and an instruction for each is a sixth of a millisecond. Tables are names of this
 * module that are read through small functions, and functions are constants: so their addresses are in the code, where imported names and
 * declared functions are looked up and checked at every use. What other functions return becomes an integer by `| 0`, or all that it is
 * assigned to is boxed. Together these halve the time.
 */

export { type Letters, NONE } from './words.js'

const { BLANK, BREAK, DIGIT, JOINING, MARKS, NATIVE_DIGIT, NO_GROUP, SCRIPT_CLASS, SIGN, SURROGATE, SYMBOLS, TABULATOR, UPPER } = characters
const { CLASSES: classes, GROUPS: groups, LETTERS: places, SIGNS: signPlaces } = characters
const {
  DIGITS,
  FEATURES,
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
const { BLANKS, BREAKS, JOINED, LETTERS_OF_SCRIPT, NUMBER, SIGNS, SINGLE_MOST, SPACED, TABULATORS, WORD, isLetter } = steps
const { ALONE, CAPITALS, LETTER_BEHIND, SPACED_DIGIT, SPACE_BEFORE, rarityOf } = words

const stepTable = steps.STEPS
const breaksJoin = steps.BREAKS_JOIN
const cells = words.CELLS
const gaps = groups.map(group => (group === NO_GROUP ? 1 : 0))

/** What each feature of a text costs in hundredths of a token, by the numbers of features.ts. */
export type FeatureRates = Uint16Array

/** So many code units are looked at in one go. */
const PIECE = 32_768
/** So far before the end of a piece a space is looked for, to cut there. */
const CUT = 256
/** Shorter texts are copied unit by unit, since a call out of JavaScript costs more. */
const COPIED = 96
/**
 * So many are scanned by one call. A loop that lasts is compiled by itself, without the constants of the module, and goes on to be used: it
 * takes twice the time. What is called often is compiled as it should be.
 */
const STRETCH = 2048

/**
 * The piece under the scan, and a line break behind it that ends every run: reads from here need no test for the end, nor for how the string is
 * stored, which halves the time. It holds the start of an earlier text until the next one comes.
 */
const units = new Uint16Array(PIECE + 2)
const unitBytes = Buffer.from(units.buffer)

/** How often each feature was found in the text under the scan, and which were: all zero, and none, before and after. */
const counts = new Int32Array(FEATURES + 1)
const found = new Uint16Array(FEATURES + 1)
let distinct = 0

/** Tables of the letters that were used last: all requests use the same. */
const triples = new Uint8Array(32_768)
const ranks = new Uint8Array(65_536)
const singles = new Uint16Array(words.SINGLES)
let lettersInUse: words.Letters | undefined

/** What the text costs, in hundredths of a token: the sum of its features' rates. */
export function scan(text: string, rates: FeatureRates, letters: words.Letters): number {
  countFeatures(text, letters)
  const cost = costBy(rates)
  forget()
  return cost
}

/** The same for several tokenizers: adds to each of `costs` what the text costs by the rates of its place. */
export function scanForAll(text: string, all: readonly FeatureRates[], letters: words.Letters, costs: Float64Array): void {
  countFeatures(text, letters)
  for (let i = 0; i < all.length; i++) costs[i] = (costs[i] as number) + costBy(all[i] as FeatureRates)
  forget()
}

function costBy(rates: FeatureRates): number {
  let cost = (counts[SPACED_DIGIT] as number) * ((rates[DIGITS + 2] as number) + (rates[DIGITS + 3] as number))
  for (let i = 0; i < distinct; i++) {
    const feature = found[i] as number
    if (feature !== SPACED_DIGIT) cost += (counts[feature] as number) * (rates[feature] as number)
  }
  return cost
}

function forget(): void {
  for (let i = 0; i < distinct; i++) counts[found[i] as number] = 0
  distinct = 0
}

function countFeatures(text: string, letters: words.Letters): void {
  if (letters !== lettersInUse) use(letters)
  const { length } = text
  if (length <= COPIED) {
    for (let i = 0; i < length; i++) units[i] = text.charCodeAt(i)
    scanUnits(length)
  } else if (length <= PIECE) {
    unitBytes.write(text, 'utf16le')
    scanUnits(length)
  } else {
    for (let start = 0; start < length; ) {
      const end = start + PIECE < length ? cutBefore(text, start + PIECE) : length
      unitBytes.write(text.slice(start, end), 'utf16le')
      scanUnits(end - start)
      start = end
    }
  }
}

function use(letters: words.Letters): void {
  triples.set(letters.triples)
  ranks.set(letters.rare)
  words.fillSingles(singles, letters)
  lettersInUse = letters
  // A way that was never gone is left out when the scan is compiled, and whoever goes it first waits until all is compiled again.
  for (let times = 0; times < REHEARSALS; times++) {
    countFeatures(REHEARSED, letters)
    forget()
  }
}

const REHEARSALS = 4
/** Each way that a scan can go. */
const REHEARSED = [
  'Words of all lengths, inCamelCase, HTTPServer I X YZ, floccinaucinihilipilification 7 42 365 1024 8675309, a1 b-2 x=y',
  `${' '.repeat(3)}and${' '.repeat(5)}more${' '.repeat(9)}blanks${' '.repeat(20)}and${' '.repeat(70)}more \n`,
  'a,\n"b"\n\n\n\n\n\n\r\nc. \n  \n\t\td \te \r',
  '"}{" (!) ({[<>]}) !!! !!!!! ---- ======== ################ ________________________________ ~~~~x()[]{}()[]{}();',
  `${'-'.repeat(70)}+${'*'.repeat(5)}/ :--:-- ..`,
  'aGVsbG8gd29ybGQ9Yb3C4d5E6f7G8h9I0jK1 \n 0b1c9f3d-7a2e4c6b8d0f1a3c5e7b9d2f 1234567890123456789012345678901234567890 abcDefghijklmnopqrstuvwxyzabcdefghij',
  'é Éa ÉÀ été ΑΒ σοφία приветствовать Ѣ ѳѣѳ تشکر می\u200cخواهم שלום नमस्ते 漢字龘 𠀀 ひらがな カタカナ 가나다 ไทย',
  '٣٤٥ ۱۲ 🙂 🙂🙂 \ud800 \udc00a e\u0301 ש\u05b0 ا\u064b → ══════ … “q” \u0001 \u00a0 ހ ሀ ',
].join('\n')

/** Where a text is cut so that nothing is counted twice: before a space that goes with the word behind it. Else anywhere, but in no pair. */
function cutBefore(text: string, limit: number): number {
  const letterAt = (at: number) => isLetter(classes[text.charCodeAt(at)] as number)
  for (let at = limit - 1; at > limit - CUT; at--) if (text.charCodeAt(at) === 32 && letterAt(at + 1) && letterAt(at - 1)) return at
  return (text.charCodeAt(limit) & 0xfc00) === 0xdc00 ? limit - 1 : limit
}

const unitAt = (at: number): number => units[at] as number
const classAt = (at: number): number => classes[units[at] as number] as number
const placeAt = (at: number): number => places[units[at] as number] as number
const rankAt = (at: number): number => ranks[units[at] as number] as number
const singleAt = (at: number, stands: number): number => singles[((units[at] as number) << 2) | stands] as number
const inRunAt = (at: number): number => PUNCT_IN_RUN + (signPlaces[units[at] as number] as number)
/** 1 where no encoded bytes can be. */
const gapAt = (at: number): number => gaps[units[at] as number] as number
const stepFrom = (kind: number, next: number): number => stepTable[(kind << 7) | next] as number
const cutsOf = (triple: number): number => triples[triple] as number
const cellOf = (length: number, cuts: number): number => cells[(length << 8) | cuts] as number
const joinsBreak = (kind: number): number => breaksJoin[kind] as number

/** Adds one. 0: it is the first of its kind, and has to be noted. */
const countOne = (feature: number): number => {
  const before = counts[feature] as number
  counts[feature] = before + 1
  return before
}

function note(feature: number): void {
  found[distinct++] = feature
}

function count(feature: number, times: number): void {
  if (times === 0) return
  const before = counts[feature] as number
  counts[feature] = before + times
  if (before === 0) note(feature)
}

/** The first `end` of `units`. */
function scanUnits(end: number): void {
  units[end] = units[end + 1] = 10
  reached = before = tested = 0
  encodedTo = -1
  while (reached < end) scanStretch(Math.min(reached + STRETCH, end), end)
}

/** Where the scan goes on, between two stretches. */
let reached = 0
/** SPACE_BEFORE where a space stands before it and goes with it. */
let before = 0
/** Where the last run ends that was tested for encoded bytes, and the last one that was. */
let tested = 0
let encodedTo = -1

/** All pieces that begin before `stop`. */
function scanStretch(stop: number, end: number): void {
  let i = reached | 0
  let kind = classAt(i)
  let spaced = before | 0
  let testedTo = tested | 0 // negative where it is encoded
  while (i < stop) {
    let at = i + 1
    let next = classAt(at)
    const step = stepFrom(kind, next)
    let feature = 0
    if (step <= SINGLE_MOST) {
      if (step >= JOINED && i >= testedTo) testedTo = encodedEnd(i, end) | 0
      feature = singleAt(i, spaced | (step & LETTER_BEHIND))
      spaced = 0
    } else if (step === SPACED) {
      spaced = SPACE_BEFORE
      i = at
      kind = next
      continue
    } else if (step === WORD) {
      // Capitals, or letters up to the next capital.
      feature = LATIN + ALONE - spaced * (ALONE / SPACE_BEFORE)
      let triple = placeAt(i)
      let cuts = cutsOf(triple)
      if (next < UPPER) {
        do {
          triple = ((triple << 5) | next) & 32767
          cuts = (cuts + cutsOf(triple)) | 0
          next = classAt(++at)
        } while (next < UPPER)
      } else {
        feature += CAPITALS
        while (next === UPPER && classAt(at + 1) >= UPPER) {
          triple = ((triple << 5) | placeAt(at)) & 32767
          cuts = (cuts + cutsOf(triple)) | 0
          next = classAt(++at)
        }
      }
      cuts += cutsOf((triple << 5) & 32767)
      if (next !== BLANK && i >= testedTo && gapAt(at) === 0) testedTo = encodedEnd(i, end) | 0
      const length = at - i
      if (length <= LENGTHS) feature += cellOf(length, cuts)
      else if (testedTo >= 0) feature = (feature + longWord(length, cuts)) | 0
      spaced = 0
      // What the steps for blanks would do, sooner: one space, and another word.
      if (next === BLANK) {
        const then = classAt(at + 1)
        if (then <= UPPER) {
          spaced = SPACE_BEFORE
          at++
          next = then
        }
      }
    } else if (step === LETTERS_OF_SCRIPT) {
      // Two counts in one: rare letters below, rarer ones above.
      let rank = rankAt(i)
      let rare = rank + (rank >> 1) * 65_534
      while (next === kind) {
        rank = rankAt(at)
        rare += rank + (rank >> 1) * 65_534
        next = classAt(++at)
      }
      if (rare > 0) {
        count(RARE + kind - SCRIPT_CLASS, rare & 65_535)
        count(RARER + kind - SCRIPT_CLASS, rare >> 16)
      }
      const length = at - i
      const script = SCRIPT + (kind - SCRIPT_CLASS) * SCRIPT_SIZE
      feature = script + SCRIPT_LENGTHS - spaced * (SCRIPT_LENGTHS / SPACE_BEFORE)
      if (length > SCRIPT_LENGTHS) {
        feature += SCRIPT_LENGTHS - 1
        count(script + 2 * SCRIPT_LENGTHS, length - SCRIPT_LENGTHS)
      } else feature += length - 1
      spaced = 0
      if (next === BLANK) {
        const then = classAt(at + 1)
        if (isLetter(then)) {
          spaced = SPACE_BEFORE
          at++
          next = then
        }
      }
    } else if (step === BLANKS) {
      while (unitAt(at) === 32) at++
      next = classAt(at)
      // The last space of a run goes with what follows it; spaced a line break all of them do.
      const goes = next !== BREAK && next !== TABULATOR
      const length = goes ? at - i - 1 : at - i
      spaced = goes ? SPACE_BEFORE : 0
      i = at
      kind = next
      if (length === 0) continue
      if (at === end && length === 1) feature = SPACE + 5
      else if (next === BREAK && length === 1) continue
      else {
        feature = SPACE + (length >= 16 ? 3 : length >= 8 ? 2 : length >= 4 ? 1 : 0)
        count(SPACE + 4, length >> 6)
      }
    } else if (step === SIGNS) {
      do next = classAt(++at)
      while (next === SIGN)
      spaced = 0
      if (at - i > 3) {
        signs(i, at)
        i = at
        kind = next
        continue
      }
      for (let sign = i; sign < at; sign++) if (countOne(inRunAt(sign)) === 0) note(inRunAt(sign))
      feature = PUNCT_RUN + at - i - 2
    } else if (step === BREAKS) {
      const last = i === 0 ? BREAK : classAt(i - 1)
      feature = LINE + 1 - (last === BLANK || i === encodedTo ? followsSign(i) : joinsBreak(last))
      if (next === BREAK && at < end) {
        let breaks = unitAt(i) === 10 ? 1 : 0
        do {
          if (unitAt(at) === 10) breaks++
          next = classAt(++at)
        } while (next === BREAK && at < end)
        if (breaks > 1) {
          feature = LINE + 2
          count(LINE + 3, (breaks - 1) >> 2)
        }
      }
      spaced = 0
    } else if (step === NUMBER) {
      do next = classAt(++at)
      while (next === DIGIT)
      if (gapAt(at) === 0 && i >= testedTo) testedTo = encodedEnd(i, end) | 0
      if (testedTo >= 0) {
        const groupsOfThree = ((at - i) / 3) | 0
        const rest = at - i - 3 * groupsOfThree
        count(DIGITS, groupsOfThree)
        if (spaced !== 0) count(DIGITS + 3, 1)
        spaced = 0
        i = at
        kind = next
        if (rest === 0) continue
        feature = DIGITS + 3 - rest
      }
    } else if (step === TABULATORS) {
      while (unitAt(at) === 9) at++
      next = classAt(at)
      feature = TAB
      count(TAB + 1, at - i - 1)
      spaced = 0
    } else {
      // A mark goes with what it stands on.
      if (kind < MARKS) spaced = 0
      i = other(i, kind) | 0
      kind = classAt(i)
      continue
    }
    if (testedTo < 0) {
      testedTo = encodedTo = (0 - testedTo) | 0
      encoded(i, testedTo)
      i = testedTo
      kind = classAt(i)
      spaced = 0
      continue
    }
    i = at
    kind = next
    if (countOne(feature) === 0) note(feature)
  }
  reached = i
  before = spaced
  tested = testedTo
}

/** A word's rarity, whose letters past the longest length that is told apart are counted one by one. */
function longWord(length: number, cuts: number): number {
  const rarity = rarityOf(cuts, length)
  count(LATIN_MORE + rarity, length - LENGTHS)
  return (LENGTHS - 1) * RARITIES + rarity
}

/** 1 where a sign stands before the blanks before this place. What is encoded ends with signs that are none. */
const followsSign = (breakAt: number): number => {
  let at = breakAt
  while (at > 0 && unitAt(at - 1) === 32) at--
  return at === 0 || at === encodedTo ? 0 : joinsBreak(classAt(at - 1))
}

/** Counts what stands alone: symbols, emoji, marks, digits of other scripts, controls. Returns its end. */
function other(start: number, kind: number): number {
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

/** Signs of which vocabularies have long runs, since lines are drawn with them. */
const LINES = Uint8Array.from({ length: 128 }, (_, c) => ('-=*_.#/~'.includes(String.fromCharCode(c)) ? 1 : 0))

/** Counts a run of at least two ASCII signs. */
function signs(start: number, end: number): void {
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
    const sign = signPlaces[unit] as number
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

/** At least so many characters without a space, with digits or capitals among them, are taken for encoded bytes. */
const OPAQUE_LENGTH = 32

/**
 * Looks at the run of letters, digits and `+/=_-` that begins at `start` and has more than one piece. Negative: minus its end, and it looks
 * like base64 or hex. Positive: no such run ends before there. Words joined by signs (paths, snake_case, kebab-case) are none: theirs change
 * class seldom.
 */
function encodedEnd(start: number, end: number): number {
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
function encoded(start: number, end: number): void {
  let hex = true
  for (let at = start; at < end && hex; at++) {
    const c = unitAt(at) | 32
    hex = classes[c] === DIGIT || (c >= 97 && c <= 102) || c === 45
  }
  const base = hex ? OPAQUE + 2 : OPAQUE
  count(base, 1)
  count(base + 1, end - start)
}
