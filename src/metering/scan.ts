/*
 * What a text is made of, as byte-pair tokenizers see it: they cut it into words with the space before them, groups of digits, runs of
 * punctuation and runs of white space, and then spell each piece from their vocabulary. The cuts are rules and can be followed; what a piece
 * costs is a matter of its script, its length and how ordinary its letters are, and is looked up in rates measured for each tokenizer.
 * One pass over UTF-16 code units, linear in any input.
 */

/** Feature numbers: where each group of counts begins. */
export const LATIN = 0 // kind (4) × length (16) × rarity (8)
const LENGTHS = 16
const RARITIES = 8
export const LATIN_MORE = LATIN + 4 * LENGTHS * RARITIES // letters past the 16th, by rarity
export const SCRIPT = LATIN_MORE + RARITIES // script (16) × (spaced (2) × length (12) + letters past the 12th)
const SCRIPT_LENGTHS = 12
export const SCRIPT_SIZE = 2 * SCRIPT_LENGTHS + 1
export const SCRIPTS = [
  'greek',
  'cyrillic',
  'hebrew',
  'arabic',
  'devanagari',
  'bengali',
  'tamil',
  'indic',
  'armenian',
  'georgian',
  'thai',
  'hangul',
  'hiragana',
  'katakana',
  'han',
  'other',
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
export const REPEAT = PUNCT_MORE + 1 // the same sign 4+, 8+, 16+, 32+ times, and each further 64
export const SPACE = REPEAT + 5 // runs of spaces: of 2-3, 4-7, 8-15, 16-63, each further 64; one at the end
export const TAB = SPACE + 6 // runs, tabs past the first
export const LINE = TAB + 2 // one line break after punctuation, after anything else, two or more
export const SYMBOL = LINE + 3 // by block (16): first of a run, further ones
export const OPAQUE = SYMBOL + 32 // runs that look like base64 (runs, characters), and like hex
export const FEATURES = OPAQUE + 4

/** Classes of code units. 0–31: the place of a Latin letter in the table of triples. */
const UPPER = 32
const DIGIT = 33
const BLANK = 34
const TABULATOR = 35
const BREAK = 36
const CONTROL = 37
const SIGN = 38
const NATIVE_DIGIT = 39
const SURROGATE = 40
const SYMBOLS = 48 // … 63
const MARKS = 64 // … 66
const SCRIPT_CLASS = 80 // …

const JOINING = 3
const NO_GROUP = 4

const CLASSES = classes()
/** Letter place of each Latin code unit below U+0250, upper case folded. */
const LETTERS = letters()
const SIGNS = signs()
const GROUPS = groups()
/** Rarity by hundredths of a token per letter. */
const RARITY = Uint8Array.from({ length: 64 }, (_, i) =>
  i < 2 ? 0 : i < 5 ? 1 : i < 9 ? 2 : i < 14 ? 3 : i < 20 ? 4 : i < 28 ? 5 : i < 38 ? 6 : 7,
)

/** How ordinary letters are. */
export interface Letters {
  /** How likely a tokenizer cuts in the middle of three Latin letters, in hundredths, by `(first * 32 + second) * 32 + third`; 0 is a word's edge. */
  readonly triples: Int8Array
  /** By UTF-16 code unit: 1 where few texts of its script use it, 2 where hardly any does, else 0. */
  readonly rare: Uint8Array
}

/**
 * Adds what the text is made of to `counts` (FEATURES long). Returns the text's bytes in UTF-8.
 */
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
      const bucket = RARITY[each > 63 ? 63 : each] as number
      const form = capitals + (spaced ? 0 : 1)
      if (length > LENGTHS) {
        count(counts, LATIN_MORE + bucket, length - LENGTHS)
        count(counts, LATIN + (form * LENGTHS + LENGTHS - 1) * RARITIES + bucket, 1)
      } else count(counts, LATIN + (form * LENGTHS + length - 1) * RARITIES + bucket, 1)
      i = at
      spaced = afterSign = false
    } else if (kind >= SCRIPT_CLASS) {
      let at = i
      let rare = 0
      let rarer = 0
      let d = c
      do {
        const rank = rareLetters[d] as number
        rare += rank & 1
        rarer += rank >> 1
        d = ++at < end ? text.charCodeAt(at) : 0
      } while (CLASSES[d] === kind)
      if (rare > 0) count(counts, RARE + kind - SCRIPT_CLASS, rare)
      if (rarer > 0) count(counts, RARER + kind - SCRIPT_CLASS, rarer)
      const length = at - i
      bytes += c > 0x7ff ? 2 * length : length
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
        if (at === end) count(counts, SPACE + 5, 1)
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
      if (breaks > 1) count(counts, LINE + 2, 1 + (breaks >> 5))
      else count(counts, LINE + (afterSign ? 0 : 1), 1)
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
      while (at < end && CLASSES[text.charCodeAt(at)] === NATIVE_DIGIT) at++
      count(counts, NATIVE_DIGITS, at - i)
      count(counts, NATIVE_DIGITS + 1, Math.ceil((at - i) / 3))
      bytes += c > 0x7ff ? 2 * (at - i) : at - i
      i = at
      spaced = afterSign = false
    } else {
      count(counts, SYMBOL + 2 * 14, 1)
      i++
      spaced = afterSign = false
    }
  }
  return bytes
}

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
      count(counts, REPEAT + (times >= 32 ? 3 : times >= 16 ? 2 : times >= 8 ? 1 : 0), 1)
      count(counts, REPEAT + 4, times >> 6)
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

function classes(): Uint8Array {
  const table = new Uint8Array(65536).fill(SYMBOLS + 9)
  const set = (from: number, to: number, kind: number) => table.fill(kind, from, to + 1)
  const script = (name: (typeof SCRIPTS)[number], ...ranges: readonly (readonly [number, number])[]) => {
    for (const [from, to] of ranges) set(from, to, SCRIPT_CLASS + SCRIPTS.indexOf(name))
  }
  set(0, 31, CONTROL)
  set(127, 159, CONTROL)
  table[9] = TABULATOR
  table[10] = table[13] = BREAK
  table[32] = BLANK
  set(33, 126, SIGN)
  set(48, 57, DIGIT)
  for (let c = 0; c < 26; c++) {
    table[65 + c] = UPPER
    table[97 + c] = c + 1
  }
  set(0xa0, 0xbf, SYMBOLS)
  for (let c = 0xc0; c < 0x250; c++) if (c !== 0xd7 && c !== 0xf7) table[c] = isUpper(c) ? UPPER : place(c)
  table[0xd7] = table[0xf7] = SYMBOLS
  set(0x250, 0x2af, 31)
  set(0x1e00, 0x1eff, 30)
  for (let c = 0x1e00; c < 0x1f00; c++) if (isUpper(c)) table[c] = UPPER
  set(0x2b0, 0x2ff, SYMBOLS + 8)
  set(0x300, 0x36f, MARKS)
  script('greek', [0x370, 0x3ff], [0x1f00, 0x1fff])
  script('cyrillic', [0x400, 0x52f])
  script('armenian', [0x531, 0x58f])
  script('georgian', [0x10a0, 0x10ff])
  script('hebrew', [0x5d0, 0x5f4])
  set(0x591, 0x5cf, MARKS + 1)
  script(
    'arabic',
    [0x620, 0x64a],
    [0x66e, 0x66f],
    [0x671, 0x6d5],
    [0x6fa, 0x6ff],
    [0x750, 0x77f],
    [0x8a0, 0x8ff],
    [0xfb50, 0xfdff],
    [0xfe70, 0xfefc],
  )
  set(0x64b, 0x65f, MARKS + 2)
  set(0x670, 0x670, MARKS + 2)
  set(0x6d6, 0x6ed, MARKS + 2)
  set(0x600, 0x61f, SYMBOLS + 1)
  set(0x66a, 0x66d, SYMBOLS + 1)
  set(0x6d4, 0x6d4, SYMBOLS + 1)
  script('devanagari', [0x900, 0x963], [0x970, 0x97f])
  set(0x964, 0x965, SYMBOLS + 1)
  script('indic', [0xa00, 0xdff])
  script('bengali', [0x980, 0x9ff])
  script('tamil', [0xb80, 0xbff])
  script('thai', [0xe00, 0xeff])
  script('other', [0x700, 0x74f], [0x780, 0x89f], [0xf00, 0x109f], [0x1200, 0x1dff], [0x2c00, 0x2dff], [0xa000, 0xabff])
  script('hangul', [0x1100, 0x11ff], [0x3130, 0x318f], [0xac00, 0xd7ff])
  script('hiragana', [0x3040, 0x309f])
  script('katakana', [0x30a0, 0x30ff], [0x31f0, 0x31ff], [0xff66, 0xff9f])
  script('han', [0x4e00, 0x9fff], [0x3005, 0x3007], [0x3400, 0x4dbf], [0xf900, 0xfaff])
  for (const zero of [0x660, 0x6f0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xe50]) set(zero, zero + 9, NATIVE_DIGIT)
  set(0x2000, 0x206f, SYMBOLS + 2)
  set(0x200b, 0x200b, SYMBOLS + 5)
  set(0x200c, 0x200c, SYMBOLS + 15)
  set(0x200d, 0x200f, SYMBOLS + 5)
  set(0x202a, 0x202e, SYMBOLS + 5)
  set(0x2070, 0x218f, SYMBOLS + 3)
  set(0x2190, 0x23ff, SYMBOLS + 4)
  set(0x2400, 0x259f, SYMBOLS + 6)
  set(0x25a0, 0x2bff, SYMBOLS + 7)
  set(0x2e00, 0x2fff, SYMBOLS + 9)
  set(0x3000, 0x3004, SYMBOLS + 1)
  set(0x3008, 0x303f, SYMBOLS + 1)
  set(0xff00, 0xff65, SYMBOLS + 1)
  set(0xd800, 0xdfff, SURROGATE)
  set(0xfe00, 0xfe0f, SYMBOLS + 5)
  return table
}

function isUpper(c: number): boolean {
  const s = String.fromCharCode(c)
  return s.toLowerCase() !== s
}

/** Place of a lower-case Latin letter beyond ASCII: 27 vowels and 28 consonants of Latin-1, 29 of Extended-A, 30 of Vietnamese, 31 the rest. */
function place(c: number): number {
  if (c < 0x100) return /[çñðþß]/.test(String.fromCharCode(c)) ? 28 : 27
  if (c === 0x1a1 || c === 0x1b0 || c >= 0x1e00) return 30
  return c < 0x180 ? 29 : 31
}

function letters(): Uint8Array {
  const table = new Uint8Array(0x1f00).fill(31)
  for (let c = 0; c < 26; c++) table[65 + c] = table[97 + c] = c + 1
  for (let c = 0xc0; c < 0x1f00; c++) {
    const lower = String.fromCharCode(c).toLowerCase().charCodeAt(0)
    table[c] = lower < 128 ? 29 : place(lower)
  }
  return table
}

function signs(): Uint8Array {
  const table = new Uint8Array(128)
  let next = 0
  for (let c = 33; c < 127; c++) if (!/[0-9A-Za-z]/.test(String.fromCharCode(c))) table[c] = next++
  return table
}

function groups(): Uint8Array {
  const table = new Uint8Array(128).fill(NO_GROUP)
  for (let c = 33; c < 127; c++) {
    const kind = CLASSES[c] as number
    if (kind < UPPER) table[c] = 0
    else if (kind === UPPER) table[c] = 1
    else if (kind === DIGIT) table[c] = 2
    else if ('+/=_-'.includes(String.fromCharCode(c))) table[c] = JOINING
  }
  return table
}
