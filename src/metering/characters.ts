import { SCRIPTS } from './features.js'

/** Classes of code units. 0–31: the place of a Latin letter in the table of triples. */
export const UPPER = 32
export const DIGIT = 33
export const BLANK = 34
export const TABULATOR = 35
export const BREAK = 36
const CONTROL = 37
export const SIGN = 38
export const NATIVE_DIGIT = 39
export const SURROGATE = 40
export const SYMBOLS = 48 // … 63
export const MARKS = 64 // … 66
export const SCRIPT_CLASS = 80 // and up, as in SCRIPTS

export const JOINING = 3
export const NO_GROUP = 4

/** Class of each code unit. */
export const CLASSES = classes()
/** Letter place of each Latin code unit below U+1F00, upper case folded. Of others it says nothing. */
export const LETTERS = letters()
/** Number of each ASCII sign. */
export const SIGNS = signs()
/** By code unit, the group of a character that encoded bytes are written with: lower case, upper case, digits, signs that join; or none. */
export const GROUPS = groups()

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
  script('gurmukhi', [0xa00, 0xa7f])
  script('gujarati', [0xa80, 0xaff])
  script('oriya', [0xb00, 0xb7f])
  script('bengali', [0x980, 0x9ff])
  script('tamil', [0xb80, 0xbff])
  script('telugu', [0xc00, 0xc7f])
  script('kannada', [0xc80, 0xcff])
  script('malayalam', [0xd00, 0xd7f])
  script('sinhala', [0xd80, 0xdff])
  script('thai', [0xe00, 0xeff])
  script('other', [0x700, 0x74f], [0x780, 0x89f], [0x13a0, 0x1dff], [0x2c00, 0x2d7f], [0x2de0, 0x2dff], [0xa000, 0xabff])
  script('tibetan', [0xf00, 0xfff])
  script('burmese', [0x1000, 0x109f], [0xa9e0, 0xa9ff], [0xaa60, 0xaa7f])
  script('ethiopic', [0x1200, 0x139f], [0x2d80, 0x2ddf], [0xab00, 0xab2f])
  script('khmer', [0x1780, 0x17ff], [0x19e0, 0x19ff])
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
  for (const [from, to] of [
    [0xc0, 0x24f],
    [0x1e00, 0x1eff],
  ] as const) {
    for (let c = from; c <= to; c++) {
      const lower = String.fromCharCode(c).toLowerCase().charCodeAt(0)
      table[c] = lower < 128 ? 29 : place(lower)
    }
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
  const table = new Uint8Array(65536).fill(NO_GROUP)
  for (let c = 33; c < 127; c++) {
    const kind = CLASSES[c] as number
    if (kind < UPPER) table[c] = 0
    else if (kind === UPPER) table[c] = 1
    else if (kind === DIGIT) table[c] = 2
    else if ('+/=_-'.includes(String.fromCharCode(c))) table[c] = JOINING
  }
  return table
}
