/**
 * Tokenizers that count much alike. `bytes` is none: it is the bound that no byte-level tokenizer exceeds, for models whose vocabulary is tiny
 * or unknown and whose ceilings must hold at any price.
 */
export const FAMILIES = ['o200k', 'cl100k', 'claude', 'gemini', 'llama', 'bytes'] as const
export type Family = (typeof FAMILIES)[number]

export function isFamily(name: string): name is Family {
  return (FAMILIES as readonly string[]).includes(name)
}
