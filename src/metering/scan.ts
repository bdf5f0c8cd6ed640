import * as characters from './characters.js'
import * as counts from './counts.js'
import * as encoded from './encoded.js'
import * as features from './features.js'
import * as piece from './piece.js'
import * as signs from './signs.js'
import * as steps from './steps.js'
import * as words from './words.js'

/*
 * What a text is made of, as byte-pair tokenizers see it: they cut it into words with the space before them, groups of digits, runs of
 * punctuation and runs of white space, and then spell each piece from their vocabulary. The cuts are rules and can be followed; what a piece
 * costs is a matter of its script, its length and how ordinary its letters are: a feature, which is counted here, and whose rate was measured
 * for each tokenizer. One pass over UTF-16 code units, linear in any input, whatever the number of tokenizers.
 *
 * It is written for the compiler, with the files that it calls: a MiB has a million units, and an instruction for each is a sixth of a millisecond. Tables are names of the
 * module that are read through small functions, and functions are constants: so their addresses are in the code, where imported names and
 * declared functions are looked up and checked at every use. What other functions return becomes an integer by `| 0`, or all that it is
 * assigned to is boxed. Together these halve the time.
 */

export type { FeatureRates } from './counts.js'
export type { Letters } from './words.js'

const { BLANK, BREAK, DIGIT, MARKS, SCRIPT_CLASS, SIGN, TABULATOR, UPPER } = characters
const { DIGITS, LATIN, LATIN_MORE, LENGTHS, LINE, PUNCT_RUN, RARE, RARER, RARITIES } = features
const { SCRIPT, SCRIPT_LENGTHS, SCRIPT_SIZE, SPACE, TAB } = features
const { BLANKS, BREAKS, JOINED, LETTERS_OF_SCRIPT, NUMBER, SIGNS, SINGLE_MOST, SPACED, TABULATORS, WORD, isLetter } = steps
const { ALONE, CAPITALS, LETTER_BEHIND, SPACE_BEFORE, rarityOf } = words
const { UNITS: units, classAt, eachPiece, unitAt } = piece
const { costBy, count, countOne, forget, note } = counts
const { countEncoded, encodedEnd, gapAt } = encoded
const { countOther, countSigns, inRunAt } = signs

const places = characters.LETTERS
const stepTable = steps.STEPS
const breaksJoin = steps.BREAKS_JOIN
const cells = words.CELLS

/**
 * So many are scanned by one call. A loop that lasts is compiled by itself, without the constants of the module, and goes on to be used: it
 * takes twice the time. What is called often is compiled as it should be.
 */
const STRETCH = 2048

/** Tables of the letters that were used last: all requests use the same. */
const triples = new Uint8Array(32_768)
const ranks = new Uint8Array(65_536)
const singles = new Uint16Array(words.SINGLES)
let lettersInUse: words.Letters | undefined

/** What the text costs, in hundredths of a token: the sum of its features' rates. */
export function scan(text: string, rates: counts.FeatureRates, letters: words.Letters): number {
  countFeatures(text, letters)
  const cost = costBy(rates)
  forget()
  return cost
}

/** The same for several tokenizers: adds to each of `costs` what the text costs by the rates of its place. */
export function scanForAll(text: string, all: readonly counts.FeatureRates[], letters: words.Letters, costs: Float64Array): void {
  countFeatures(text, letters)
  for (let i = 0; i < all.length; i++) costs[i] = (costs[i] as number) + costBy(all[i] as counts.FeatureRates)
  forget()
}

function countFeatures(text: string, letters: words.Letters): void {
  if (letters !== lettersInUse) use(letters)
  eachPiece(text, scanUnits)
}

function use(letters: words.Letters): void {
  triples.set(letters.triples)
  ranks.set(letters.rare)
  words.fillSingles(singles, letters)
  lettersInUse = letters
  // A way that was never gone is left out when the scan is compiled: whoever goes it first waits until all is compiled again, and it may be that
  // all others go on with a loop that was compiled by itself. Where it was gone seldom its calls stay calls, which slow the ways around it.
  for (let times = 0; times < REHEARSALS; times++) {
    countFeatures(REHEARSED, letters)
    forget()
  }
}

const REHEARSALS = 8
/** Each way that a scan can go. */
const REHEARSED = [
  '\nWords of all lengths, inCamelCase, HTTPServer I X YZ, floccinaucinihilipilification 7 42 365 1024 8675309, 12th a1 b-2 x=y',
  `${' '.repeat(3)}and${' '.repeat(5)}more${' '.repeat(9)}blanks${' '.repeat(20)}and${' '.repeat(70)}more \n`,
  'a,\n"b"\n\n\n\n\n\n\r\nc. \n  \n\t\td \te \r',
  '"}{" (!) ({[<>]}) !!! !!!!! ---- ======== ################ ________________________________ ~~~~x()[]{}()[]{}();',
  `${'-'.repeat(70)}+${'*'.repeat(5)}/ :--:-- .. ----!`,
  'aGVsbG8gd29ybGQ9Yb3C4d5E6f7G8h9I0jK1 \n 0b1c9f3d-7a2e4c6b8d0f1a3c5e7b9d2f 1234567890123456789012345678901234567890 abcDefghijklmnopqrstuvwxyzabcdefghij',
  'é Éa ÉÀ été ΑΒ σοφία приветствовать Ѣ ѳѣѳ تشکر می\u200cخواهم שלום नमस्ते 漢字龘 𠀀 ひらがな カタカナ 가나다 ไทย',
  '٣٤٥ ۱۲ 🙂 🙂🙂 \ud800 \udc00a e\u0301 ש\u05b0 ا\u064b → ══════ … “q” \u0001 \u00a0 𝒜 ހ ሀ x1 ',
].join('\n')

const placeAt = (at: number): number => places[units[at] as number] as number
const rankAt = (at: number): number => ranks[units[at] as number] as number
const singleAt = (at: number, stands: number): number => singles[((units[at] as number) << 2) | stands] as number
const stepFrom = (kind: number, next: number): number => stepTable[(kind << 7) | next] as number
const cutsOf = (triple: number): number => triples[triple] as number
const cellOf = (length: number, cuts: number): number => cells[(length << 8) | cuts] as number
const joinsBreak = (kind: number): number => breaksJoin[kind] as number

/** The first `end` units of the piece. */
function scanUnits(end: number): void {
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
      // The last space of a run goes with what follows it; before a line break all of them do.
      const goes = next !== BREAK && next !== TABULATOR
      const length = goes ? at - i - 1 : at - i
      spaced = goes ? SPACE_BEFORE : 0
      i = at
      kind = next
      // It never is, but where this is said the compiler makes more of the loop: up to a tenth.
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
        countSigns(i, at)
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
      i = countOther(i, kind) | 0
      kind = classAt(i)
      continue
    }
    if (testedTo < 0) {
      testedTo = encodedTo = (0 - testedTo) | 0
      countEncoded(i, testedTo)
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
