import type { Json } from '../json.js'
import { type BodyTexts, TextSum, type Texts } from './text.js'
import type { Family } from './tokenizers.js'

export { BodyTexts } from './text.js'
export { familyOf } from './tokenizers.js'

/**
 * Estimates how many tokens a text is for a family of tokenizers; slightly too many on average. A non-negative integer, never more than the
 * text's bytes in UTF-8, in time linear in the text. Pieces that are estimated one by one add up to more than the whole: join small ones first.
 */
export function textTokens(text: string, family: Family): number {
  const sum = new TextSum(family)
  sum.add(text)
  return sum.tokens
}

/** The same of a text that is a part of a body: see `TextSum.addPart`. */
export function partTokens(name: string, text: string, family: Family, body: BodyTexts | undefined): number {
  const sum = new TextSum(family, body)
  sum.addPart(name, texts => {
    texts.add(text)
    return 0
  })
  return sum.tokens
}

/** Tokens of a prompt or input: a text, texts, token ids, or arrays of token ids. Ids that the client made itself count as they are. */
export function promptTokens(input: Json | undefined, family: Family, body?: BodyTexts): number {
  const sum = new TextSum(family, body)
  return sum.addPart('prompt', texts => idsOf(input, texts)) + sum.tokens
}

/** The token ids in a prompt or input: the part of its tokens that is no estimate. */
export function tokenIds(input: Json | undefined): number {
  if (typeof input === 'number') return 1
  return Array.isArray(input) ? input.reduce((ids: number, item) => ids + tokenIds(item), 0) : 0
}

function idsOf(input: Json | undefined, texts: Texts): number {
  if (typeof input === 'string') texts.add(input)
  if (typeof input === 'number') return 1
  let ids = 0
  if (Array.isArray(input)) for (const item of input) ids += idsOf(item, texts)
  return ids
}
