import { errorText, policyFields, stackFrames, terminalText } from './escape.js'
import type { Access, Level, Line } from './log.js'

const GREY = 90
const RED = 31
const GREEN = 32
const YELLOW = 33
const CYAN = 36

const COLORS: Readonly<Record<Level, number>> = { debug: GREY, info: GREEN, warn: YELLOW, error: RED }

/** One request for a person's eyes: `12:30:01.250  200 chat openai/gpt-4o-mini app-a 120→345 tokens 4,321 Rial 812 ms (first 120 ms) req_…`. */
export function prettyAccess(a: Access, color: boolean): string {
  const status = a.status < 400 ? GREEN : a.status < 500 ? YELLOW : RED
  const parts = [paint(clock(a.time), GREY, color), paint(String(a.status).padStart(4), status, color)]
  for (const part of [a.surface, a.model, a.key]) if (part !== null) parts.push(terminalText(part, 80))
  if (a.code !== null) parts.push(paint(terminalText(a.code, 80), status, color))
  if (a.input_tokens !== null) parts.push(`${a.input_tokens}→${a.output_tokens ?? 0} tokens`)
  if (a.cost_rial !== null) parts.push(`${a.cost_rial.toLocaleString('en-US')} Rial`)
  parts.push(`${rounded(a.duration_ms)} ms${a.ttft_ms === null ? '' : ` (first ${rounded(a.ttft_ms)} ms)`}`)
  if (a.retries > 0) parts.push(`${a.retries} ${a.retries === 1 ? 'retry' : 'retries'}`)
  if (a.ended_by !== null && a.ended_by !== 'provider') parts.push(`ended by ${a.ended_by}`)
  parts.push(paint(a.request_id, GREY, color))
  return `${parts.join(' ')}\n`
}

/** Any other line: the message, then its fields; an error's stack below it at level error. */
export function prettyLine({ time, level, message, fields, extra }: Line, color: boolean): string {
  const parts = [paint(clock(time), GREY, color), paint(level.padStart(5), COLORS[level], color), terminalText(message, 4096)]
  const field = (name: string, value: string) => parts.push(`${paint(`${name}=`, CYAN, color)}${value}`)
  for (const [name, value] of Object.entries(fields)) {
    if (name === 'error') continue
    if (value !== undefined) field(name, terminalText(String(value)))
  }
  if (extra !== undefined) for (const [name, value] of policyFields(extra)) field(terminalText(name, 80), terminalText(String(value)))
  if (fields.error === undefined) return `${parts.join(' ')}\n`
  parts.push(paint(terminalText(errorText(fields.error), 4096), COLORS[level], color))
  const frames = level === 'error' ? stackFrames(fields.error).map(frame => `\n${paint(terminalText(frame), GREY, color)}`) : []
  return `${parts.join(' ')}${frames.join('')}\n`
}

/** Fractions where they matter: below ten. */
function rounded(ms: number): string {
  return ms < 10 ? ms.toFixed(1) : String(Math.round(ms))
}

/** Time of day as the machine's own zone has it. */
function clock(at: number): string {
  const date = new Date(at)
  return `${date.toTimeString().slice(0, 8)}.${String(date.getMilliseconds()).padStart(3, '0')}`
}

function paint(text: string, code: number, color: boolean): string {
  return color ? `\u001b[${code}m${text}\u001b[0m` : text
}
