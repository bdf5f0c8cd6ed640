/*
 * What may not reach a terminal or a line-based reader as it is: control characters (C0, DEL, C1: line breaks and escape sequences), the
 * separators of Unicode, and the marks that turn the order of what follows. The joiners that Persian needs are left alone.
 */
const RISKY = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/gu
const PLAIN = /^[ !#-[\]-~]*$/

/** Longest text of a field; a model's name as a client sends it may be megabytes. */
const LONGEST = 512

/** Text as a JSON string, on one line, harmless on a terminal too. */
export function jsonText(text: string, longest = LONGEST): string {
  const short = shorten(text, longest)
  return PLAIN.test(short) ? `"${short}"` : JSON.stringify(short).replace(RISKY, escaped)
}

/** Text for a terminal: one line, no control characters. */
export function terminalText(text: string, longest = LONGEST): string {
  const short = shorten(text, longest)
  return PLAIN.test(short) ? short : short.replace(RISKY, escaped)
}

function shorten(text: string, longest: number): string {
  return text.length <= longest ? text : `${text.slice(0, longest)}… (${text.length} characters)`
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}

/** An error's message, and those of its causes. */
export function errorText(error: unknown): string {
  let text = ''
  let current = error
  for (let depth = 0; depth < 5; depth++) {
    text += oneError(current)
    if (!(current instanceof Error) || current.cause === undefined) break
    current = current.cause
    text += ' ← '
  }
  return text
}

function oneError(error: unknown): string {
  if (!(error instanceof Error)) return typeof error === 'string' ? error : `a ${typeof error} was thrown`
  const code = (error as { code?: unknown }).code
  return `${typeof code === 'string' ? code : error.name}: ${error.message}`
}

/** The frames of an error's stack, without the message that stands before them. */
export function stackFrames(error: unknown): string[] {
  if (!(error instanceof Error) || typeof error.stack !== 'string') return []
  return error.stack.split('\n').filter(line => /^ +at /.test(line))
}

const LONGEST_OF_POLICY = 256
const MOST_FIELDS = 32

/** The fields of a policy, as name and harmless scalar: an object (a body, a header list) shows as its type alone. */
export function policyFields(fields: Readonly<Record<string, unknown>>): [string, string | number | boolean | null][] {
  const shown: [string, string | number | boolean | null][] = []
  try {
    for (const [name, value] of Object.entries(fields).slice(0, MOST_FIELDS)) shown.push([name, scalar(value)])
  } catch {
    shown.push(['unreadable', true])
  }
  return shown
}

function scalar(value: unknown): string | number | boolean | null {
  if (value === null || typeof value === 'boolean') return value
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value)
  if (typeof value === 'bigint') return String(value)
  if (typeof value === 'string') return value.slice(0, LONGEST_OF_POLICY)
  return value instanceof Error ? errorText(value).slice(0, LONGEST_OF_POLICY) : `[${typeof value}]`
}
