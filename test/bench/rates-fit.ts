import { LETTERS as PLACES } from '../../src/metering/characters.js'
import {
  FEATURES,
  LATIN_MORE,
  LENGTHS,
  RARE,
  RARER,
  RARITIES,
  SCRIPT,
  SCRIPT_LENGTHS,
  SCRIPT_SIZE,
  SCRIPTS,
} from '../../src/metering/features.js'
import { type Letters, scan } from '../../src/metering/scan.js'
import { NONE } from '../../src/metering/words.js'

export interface Group {
  readonly name: string
  /** How much a text of it counts. */
  readonly weight: number
  readonly texts: readonly string[]
}

type Count = (text: string) => number
/** Features of a text: number and times. */
type Found = readonly (readonly [feature: number, times: number])[]

/** Words with the space before them, cut as scan.ts cuts. */
const WORD = /( ?)(\p{Lu}?\p{Ll}+|\p{Lu}{2,}(?!\p{Ll})|\p{Lu}+(?=\p{Lu}\p{Ll})|\p{Lu}|[\p{Lo}\p{M}\p{Lm}]+)/gu
const LATIN_WORD = /^ ?(?!\p{Lu}{2})\p{Script=Latin}{1,24}$/u

/** How often each word occurs. Gibberish counts where it is made of words. */
function wordsOf(groups: readonly Group[]): Map<string, number> {
  const words = new Map<string, number>()
  for (const { name, weight, texts } of groups) {
    if (name.startsWith('gibberish-') && !name.includes('words')) continue
    for (const text of texts) for (const [word] of text.matchAll(WORD)) words.set(word, (words.get(word) ?? 0) + weight)
  }
  return words
}

/** Letters that no vocabulary has (2), or only a large one (1). See tokenizers.ts, which reads what is made here. */
export function rarity(large: Count, small: Count) {
  const ranks = new Uint8Array(65536)
  ranks.fill(1, 0x400, 0x530)
  ranks.fill(0, 0x410, 0x450)
  ranks[0x401] = ranks[0x451] = 0
  ranks.fill(2, 0x3400, 0x4dc0)
  ranks.fill(2, 0xf900, 0xfb00)
  // Arabic as typesetters shape it; it comes out of PDF files.
  ranks.fill(2, 0xfb50, 0xfe00)
  ranks.fill(2, 0xfe70, 0xfeff)
  let common = ''
  const bits = (first: number, last: number) => {
    const rarest = new Uint8Array(Math.ceil((last - first + 1) / 8))
    for (let c = first; c <= last; c++) {
      const letter = String.fromCharCode(c)
      ranks[c] = large(letter) > 1 ? 2 : small(letter) > 1 ? 1 : 0
      const byte = (c - first) >> 3
      if (ranks[c] === 2) rarest[byte] = (rarest[byte] as number) | (1 << ((c - first) & 7))
      if (ranks[c] === 0) common += letter
    }
    return rarest
  }
  return { ranks, han: bits(0x4e00, 0x9fff), hangul: bits(0xac00, 0xd7a3), common }
}

/** Triples of letters by regression: the tokens of a word beyond its first are the sum of its triples. Words count by the root of their number. */
export function fitTriples(groups: readonly Group[], count: Count) {
  const known: (readonly [keys: readonly number[], more: number, weight: number])[] = []
  for (const [word, times] of wordsOf(groups)) {
    if (!LATIN_WORD.test(word)) continue
    let key = 0
    const keys = [...word.trim()].map(letter => {
      key = ((key << 5) | (PLACES[letter.charCodeAt(0)] as number)) & 32767
      return key
    })
    known.push([[...keys, (key << 5) & 32767], count(word) - 1, Math.min(6, Math.sqrt(times))])
  }
  let seed = 9
  for (let i = known.length - 1; i > 0; i--) {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
    const j = Math.floor((seed / 2 ** 31) * (i + 1))
    const kept = known[i] as (typeof known)[number]
    known[i] = known[j] as (typeof known)[number]
    known[j] = kept
  }
  // Pairs first, then triples from there on: a triple that is seldom seen keeps what its pair says. Unseen pairs are dear.
  const pairs = descend(known, 1024, new Float64Array(1024).fill(0.75), 20)
  const triples = descend(
    known,
    32768,
    Float64Array.from({ length: 32768 }, (_, i) => pairs[i & 1023] as number),
    14,
  )
  const steps = Uint8Array.from(triples, value => Math.max(0, Math.min(15, Math.round(value * 10) + NONE)))
  return {
    steps,
    packed: Uint8Array.from({ length: 16384 }, (_, i) => (steps[2 * i] as number) | ((steps[2 * i + 1] as number) << 4)),
  }
}

function descend(
  known: readonly (readonly [readonly number[], number, number])[],
  size: number,
  start: Float64Array,
  epochs: number,
): Float64Array {
  const values = start
  for (let epoch = 0; epoch < epochs; epoch++) {
    const rate = 0.06 / (1 + epoch * 0.2)
    for (const [keys, more, weight] of known) {
      let sum = 0
      for (const key of keys) sum += values[key & (size - 1)] as number
      const step = (rate * weight * (more - sum)) / keys.length
      for (const key of keys) values[key & (size - 1)] = (values[key & (size - 1)] as number) + step
    }
  }
  return values
}

/** Hundredths of a token by feature. Words by what they cost alone; the rest, and a scale for each kind of word, by least squares over texts. */
export function fitRates(groups: readonly Group[], count: Count, letters: Letters): Uint16Array {
  const mean = wordRates(groups, count, letters)
  const kinds = 4 + SCRIPTS.length
  const kindOf = (feature: number) =>
    feature < LATIN_MORE
      ? Math.floor(feature / (LENGTHS * RARITIES))
      : feature < SCRIPT
        ? 1
        : 4 + Math.floor((feature - SCRIPT) / SCRIPT_SIZE)
  const unknowns = kinds + FEATURES - RARE
  const square = new Float64Array(unknowns * unknowns)
  const right = new Float64Array(unknowns)
  const add = (a: number, b: number, value: number) => {
    square[a * unknowns + b] = (square[a * unknowns + b] as number) + value
  }
  for (const { weight, texts } of groups) {
    for (const text of texts) {
      const tokens = count(text)
      if (tokens === 0) continue
      const parts = new Map<number, number>()
      for (const [feature, times] of featuresOf(text, letters)) {
        const unknown = feature < RARE ? kindOf(feature) : kinds + feature - RARE
        parts.set(unknown, (parts.get(unknown) ?? 0) + (feature < RARE ? times * (mean[feature] as number) : times))
      }
      const scale = weight / tokens ** 1.5
      for (const [a, x] of parts) {
        right[a] = (right[a] as number) + scale * x * tokens
        for (const [b, y] of parts) add(a, b, scale * x * y)
      }
    }
  }
  const solved = Float64Array.from({ length: unknowns }, (_, i) => (i < kinds ? 1 : i < kinds + MARKED ? 0.3 : 0.9))
  const prior = solved.slice()
  // What few texts have stays near what is likely.
  for (let i = 0; i < unknowns; i++) {
    const pull = i < kinds ? 0.3 : 0.02
    add(i, i, pull)
    right[i] = (right[i] as number) + pull * (prior[i] as number)
  }
  for (let round = 0; round < 400; round++) {
    for (let i = 0; i < unknowns; i++) {
      let rest = right[i] as number
      for (let j = 0; j < unknowns; j++) if (j !== i) rest -= (square[i * unknowns + j] as number) * (solved[j] as number)
      solved[i] = Math.max(0, rest / (square[i * unknowns + i] as number))
    }
  }
  return Uint16Array.from({ length: FEATURES }, (_, feature) => {
    const value =
      feature < RARE ? (mean[feature] as number) * (solved[kindOf(feature)] as number) : (solved[kinds + feature - RARE] as number)
    return Math.min(65535, Math.round(value * 100))
  })
}

/** Rates of which only those of some scripts are measured again: words by what they cost alone, and a scale for all of a script, by its texts. */
export function refitScripts(
  scripts: readonly string[],
  groups: readonly Group[],
  count: Count,
  letters: Letters,
  kept: Uint16Array,
): Uint16Array {
  const rates = kept.slice()
  for (const name of scripts) {
    const place = (SCRIPTS as readonly string[]).indexOf(name)
    if (place < 0) throw new Error(`There is no script ${name}; these are: ${SCRIPTS.join(', ')}.`)
    const own = groups.filter(group => group.name === `${name}.txt`)
    const mean = wordRates(own, count, letters)
    const first = SCRIPT + place * SCRIPT_SIZE
    let squares = 0
    let right = 0
    for (const text of own.flatMap(group => group.texts)) {
      const tokens = count(text)
      if (tokens === 0) continue
      let [inWords, rest] = [0, 0]
      for (const [feature, times] of featuresOf(text, letters)) {
        if (feature >= first && feature < first + SCRIPT_SIZE) inWords += times * (mean[feature] as number)
        else rest += (times * (kept[feature] as number)) / 100
      }
      squares += inWords ** 2 / tokens ** 1.5
      right += (inWords * (tokens - rest)) / tokens ** 1.5
    }
    for (let feature = first; feature < first + SCRIPT_SIZE; feature++)
      rates[feature] = Math.round((100 * (mean[feature] as number) * right) / squares)
    rates[RARE + place] = rates[RARER + place] = 0
  }
  return rates
}

/** Rare letters cost little beyond their words, unless texts say otherwise. */
const MARKED = 2 * (RARER - RARE)

/** A scan tells a sum of rates: which are looked up, and then how often each one is. */
function featuresOf(text: string, letters: Letters): Found {
  const looked = new Set<number>()
  const watched = new Proxy(NONE_RATED, {
    get(rates, feature) {
      looked.add(Number(feature))
      return rates[Number(feature)]
    },
  })
  scan(text, watched, letters)
  const found: [number, number][] = []
  const rates = new Uint16Array(FEATURES)
  for (const feature of looked) {
    rates[feature] = 1
    const times = scan(text, rates, letters)
    if (times !== 0) found.push([feature, times])
    rates[feature] = 0
  }
  return found
}

const NONE_RATED = new Uint16Array(FEATURES)

function wordRates(groups: readonly Group[], count: Count, letters: Letters): Float64Array {
  const sum = new Float64Array(FEATURES)
  const number = new Float64Array(FEATURES)
  for (const [word, times] of wordsOf(groups)) {
    const found = featuresOf(word, letters)
    const [only] = found
    if (only === undefined || found.length > 1 || only[1] !== 1 || only[0] >= RARE) continue
    sum[only[0]] = (sum[only[0]] as number) + times * count(word)
    number[only[0]] = (number[only[0]] as number) + times
  }
  const mean = new Float64Array(FEATURES)
  for (let form = 0; form < 4; form++) latinRates(form, sum, number, mean)
  const dense = new Map(groups.filter(group => group.name.startsWith('gibberish-')).map(group => [group.name.slice(10), group.texts]))
  SCRIPTS.forEach((script, i) => {
    scriptRates(SCRIPT + i * SCRIPT_SIZE, sum, number, mean)
    const texts = SPACED.has(script) ? (dense.get(script) ?? []) : []
    const letterCount = texts.reduce((total, text) => total + text.length, 0)
    // Long words without a space do not occur in these scripts: what is so long is no word.
    if (letterCount > 0)
      mean[SCRIPT + i * SCRIPT_SIZE + 2 * SCRIPT_LENGTHS] = (0.85 * texts.reduce((total, text) => total + count(text), 0)) / letterCount
  })
  return mean
}

const SPACED: ReadonlySet<string> = new Set(['greek', 'cyrillic', 'hebrew', 'arabic', 'devanagari'])

/** By length and rarity. Cells that few words fall into lean on tokens per letter; longer or rarer is never cheaper. */
function latinRates(form: number, sum: Float64Array, number: Float64Array, mean: Float64Array): void {
  const cell = (length: number, rarity: number) => (form * LENGTHS + length - 1) * RARITIES + rarity
  const perLetter: number[] = []
  for (let rarity = 0; rarity < RARITIES; rarity++) {
    let tokens = 0
    let letters = 0
    for (let length = 4; length <= LENGTHS; length++) {
      tokens += sum[cell(length, rarity)] as number
      letters += (number[cell(length, rarity)] as number) * length
    }
    perLetter.push(letters > 30 ? tokens / letters : Math.max(perLetter[rarity - 1] ?? 0.15, 0.2 + rarity * 0.05))
    if (form === 1) mean[LATIN_MORE + rarity] = Math.max(perLetter[rarity] as number, rarity > 6 ? 0.5 : 0)
  }
  for (let length = 1; length <= LENGTHS; length++) {
    for (let rarity = 0; rarity < RARITIES; rarity++) {
      const i = cell(length, rarity)
      const leant = Math.max(1, (perLetter[rarity] as number) * length)
      const own = ((sum[i] as number) + 15 * leant) / ((number[i] as number) + 15)
      mean[i] = Math.max(own, rarity > 0 ? (mean[i - 1] as number) : 0, length > 1 ? (mean[cell(length - 1, rarity)] as number) : 0)
    }
  }
}

/** By length, with and without a space before. */
function scriptRates(base: number, sum: Float64Array, number: Float64Array, mean: Float64Array): void {
  for (const row of [base, base + SCRIPT_LENGTHS]) {
    let tokens = 0
    let letters = 0
    for (let length = 3; length <= SCRIPT_LENGTHS; length++) {
      tokens += sum[row + length - 1] as number
      letters += (number[row + length - 1] as number) * length
    }
    const perLetter = letters > 0 ? tokens / letters : Math.max(1.2, mean[base] as number)
    for (let length = 1; length <= SCRIPT_LENGTHS; length++) {
      const i = row + length - 1
      const own = ((sum[i] as number) + 8 * Math.max(1, perLetter * length)) / ((number[i] as number) + 8)
      mean[i] = Math.max(own, length > 1 ? (mean[i - 1] as number) : 0)
    }
    const more = base + 2 * SCRIPT_LENGTHS
    mean[more] = Math.max(mean[more] as number, ((mean[row + 11] as number) - (mean[row + 5] as number)) / 6)
  }
}
