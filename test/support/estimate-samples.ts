import { readFileSync } from 'node:fs'
import type { JsonObject } from '../../src/json.js'
import type { Family } from '../../src/metering/tokenizers.js'
import { FIXTURES } from './paths.js'

/** Tokenizers that npm offers, and the family that each is estimated by. */
export const VOCABULARIES = {
  o200k: 'o200k',
  cl100k: 'cl100k',
  llama: 'llama',
  mistral: 'llama',
  claude: 'claude',
  gemini: 'gemini',
} as const satisfies { readonly [name: string]: Family }
export type Vocabulary = keyof typeof VOCABULARIES

/** A text, and what it comes to in each vocabulary. The rates are tuned on one half of them, and judged on the other. */
export interface Sample extends Readonly<Record<Vocabulary, number>> {
  readonly class: string
  readonly half: 'tune' | 'judge'
  readonly text: string
}

/** Tools of one request, and what OpenAI's models count for them. */
export interface ToolSample {
  readonly half: 'tune' | 'judge'
  readonly o200k: number
  readonly cl100k: number
  readonly tools: readonly JsonObject[]
}

export function textSamples(): Sample[] {
  return lines('texts.jsonl').map(line => JSON.parse(line) as Sample)
}

export function toolSamples(): ToolSample[] {
  return lines('tools.jsonl').map(line => JSON.parse(line) as ToolSample)
}

function lines(name: string): string[] {
  return readFileSync(`${FIXTURES}estimate/${name}`, 'utf8').trimEnd().split('\n')
}

/** Numbers below a limit that are the same each time. */
export function generator(seed: number): (below: number) => number {
  let state = seed
  return below => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31
    return Math.floor((state / 2 ** 31) * below)
  }
}
