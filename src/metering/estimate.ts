import type { Model } from '../config/config.js'

/** The tokenizer family of a model. */
export function familyOf(model: Model): string {
  return typeof model.options.tokenizer === 'string' ? model.options.tokenizer : 'bytes'
}

/** Upper bound of the tokens of a text: a byte-level tokenizer never gives more tokens than UTF-8 bytes. */
export function textTokens(text: string, _family: string): number {
  return Buffer.byteLength(text)
}

/** Upper bound of the tokens of a prompt: text, token ids, or arrays of either. */
export function promptTokens(input: unknown, family: string): number {
  if (typeof input === 'string') return textTokens(input, family)
  if (Array.isArray(input)) return input.reduce<number>((sum, item) => sum + promptTokens(item, family), 0)
  return typeof input === 'number' ? 1 : 0
}
