import { isObject, type JsonObject } from '../../../json.js'
import { count } from './pieces.js'

/** A message's text: its content, or the text parts of it. */
export function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content.map(part => (isObject(part) && typeof part.text === 'string' ? part.text : '')).join('')
}

/** How many choices are wanted: 1 where nothing sensible is said, at most 128. */
export function choices(body: JsonObject): number {
  const { n } = body
  return typeof n === 'number' && Number.isInteger(n) && n >= 1 ? Math.min(n, 128) : 1
}

/** The smaller of the two caps; Infinity where there is none. */
export function capOf(body: JsonObject): number {
  const cap = (value: unknown): number => (typeof value === 'number' && value >= 1 ? Math.floor(value) : Number.POSITIVE_INFINITY)
  return Math.min(cap(body.max_tokens), cap(body.max_completion_tokens))
}

/** One input of a request, and what it counts. */
export interface Prompt {
  readonly text: string
  readonly tokens: number
}

/** A text, texts, tokens (numbers), or lists of tokens; of tokens the text is their numbers. Always at least one. */
export function prompts(value: unknown): Prompt[] {
  const list = Array.isArray(value) && value.length > 0 && typeof value[0] !== 'number' ? value : [value]
  return list.map(one => {
    if (Array.isArray(one)) return { text: one.join(' '), tokens: one.length }
    const text = typeof one === 'string' ? one : ''
    return { text, tokens: count(text) }
  })
}

/** The words of a text, in lower case. */
export function words(text: string): Set<string> {
  return new Set(text.toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu))
}
