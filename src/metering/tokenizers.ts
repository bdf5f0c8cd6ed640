import type { Model } from '../config/config.js'
import { FAMILIES, type Family, isFamily } from '../config/tokenizer-families.js'
import { FEATURES } from './features.js'
import { COMMON, RAREST_HAN, RAREST_HANGUL, RATES, TRIPLES } from './rates.js'
import type { FeatureRates, Letters } from './scan.js'

export type { Family }

/** Tokens per feature of a text (scan.ts), and what is added so that few texts cost more than was estimated. */
export interface Rates {
  readonly features: FeatureRates
  /** Part of the estimate. */
  readonly margin: number
  /** Times the square root of the estimate: short texts vary more. */
  readonly spread: number
}

/**
 * o200k, cl100k, gemini and llama are measured with those tokenizers. Claude's is not public since its second version: what that one counts,
 * and a sixth more, which is what users of later versions report.
 */
const MARGINS: { readonly [name in keyof typeof RATES]: { readonly margin: number; readonly spread: number } } = {
  o200k: { margin: 0.05, spread: 0.35 },
  cl100k: { margin: 0.05, spread: 0.35 },
  claude: { margin: 0.18, spread: 0.35 },
  gemini: { margin: 0.05, spread: 0.35 },
  llama: { margin: 0.05, spread: 0.35 },
}

const TABLES: ReadonlyMap<string, Rates> = new Map(
  Object.entries(RATES).map(([name, packed]) => [name, { features: unpack(packed), ...MARGINS[name as keyof typeof RATES] }]),
)

/** How ordinary letters are, in any family. */
export const LETTERS: Letters = { triples: triples(), rare: rareLetters() }

/** `bytes` has none. */
export function ratesOf(family: Family): Rates | undefined {
  return TABLES.get(family)
}

/** First match counts. Names as providers and model hubs write them. */
const NAMES: readonly (readonly [RegExp, Family])[] = [
  [/claude/, 'claude'],
  [/gemini|gemma|palm/, 'gemini'],
  [/gpt-3|gpt-35|gpt-4(?![\w.])|gpt-4-(?!o|\d\.)|text-embedding|davinci|babbage/, 'cl100k'],
  [/gpt-?[4-9o]|chatgpt|gpt-oss|(^|\/)o[1-9]\b|omni-moderation/, 'o200k'],
  [/llama|deepseek|mistral|mixtral|codestral|ministral|magistral|devstral|pixtral|nemotron|hermes/, 'llama'],
]

/**
 * The family that counts for a model: its own setting `tokenizer`, else by the provider's name for it, else by the kind of its provider. What
 * is unknown is taken for cl100k, which of the measured ones counts most on nearly all texts.
 */
export function familyOf(model: Pick<Model, 'id' | 'upstream' | 'provider' | 'tokenizer'>): Family {
  if (typeof model.tokenizer === 'string') {
    if (!isFamily(model.tokenizer)) throw new RangeError(`Unknown tokenizer "${model.tokenizer}"; one of ${FAMILIES.join(', ')}.`)
    return model.tokenizer
  }
  const name = model.upstream.toLowerCase()
  for (const [pattern, family] of NAMES) if (pattern.test(name)) return family
  const kind = model.provider.kind
  return kind === 'anthropic' ? 'claude' : kind === 'gemini' ? 'gemini' : kind === 'sandbox' ? 'o200k' : 'cl100k'
}

function bytes(base64: string): Uint8Array {
  return Uint8Array.from(Buffer.from(base64, 'base64'))
}

function triples(): Uint8Array {
  const packed = bytes(TRIPLES)
  const table = new Uint8Array(2 * packed.length)
  for (let i = 0; i < packed.length; i++) {
    const two = packed[i] as number
    table[2 * i] = two & 15
    table[2 * i + 1] = two >> 4
  }
  return table
}

function unpack(base64: string): FeatureRates {
  const hundredths = new Uint16Array(bytes(base64).buffer)
  if (hundredths.length !== FEATURES)
    throw new Error(`rates.ts has ${hundredths.length} rates for ${FEATURES} features; measure them again.`)
  return hundredths
}

/** 2: no vocabulary has it as a token of its own; 1: the large ones have. Cyrillic: letters beyond Russian; Chinese and Korean: by measure. */
function rareLetters(): Uint8Array {
  const ranks = new Uint8Array(65536)
  ranks.fill(1, 0x400, 0x530)
  ranks.fill(0, 0x410, 0x450)
  ranks[0x401] = ranks[0x451] = 0
  ranks.fill(2, 0x3400, 0x4dc0)
  ranks.fill(2, 0xf900, 0xfb00)
  // Arabic as typesetters shape it; it comes out of PDF files.
  ranks.fill(2, 0xfb50, 0xfe00)
  ranks.fill(2, 0xfe70, 0xfeff)
  rank(ranks, 0x4e00, 0x9fff, bytes(RAREST_HAN))
  rank(ranks, 0xac00, 0xd7a3, bytes(RAREST_HANGUL))
  for (const letter of COMMON) ranks[letter.charCodeAt(0)] = 0
  return ranks
}

/** `rarest`: a bit for each letter from `first` on. */
function rank(ranks: Uint8Array, first: number, last: number, rarest: Uint8Array): void {
  ranks.fill(1, first, last + 1)
  for (let i = 0; i < rarest.length; i++) {
    for (let bits = rarest[i] as number, c = first + 8 * i; bits !== 0 && c <= last; bits >>= 1, c++) if ((bits & 1) === 1) ranks[c] = 2
  }
}
