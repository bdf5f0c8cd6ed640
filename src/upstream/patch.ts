/*
 * Changes single top-level members of a JSON text and leaves every other character as the provider wrote it: numbers keep their digits,
 * fields their order, and fields that the gateway does not know their shape.
 */

/**
 * The JSON object `text` with the values of its top-level members `names` replaced. `text` must be valid JSON (it has been parsed before); a
 * member that is not there is added at the front.
 */
export function patch(text: string, replacements: Readonly<Record<string, string>>): string {
  let missing = ''
  let patched = text
  for (const name in replacements) {
    const value = JSON.stringify(replacements[name])
    const span = memberValue(patched, name)
    if (span === null) missing += `${JSON.stringify(name)}:${value},`
    else patched = patched.slice(0, span.start) + value + patched.slice(span.end)
  }
  if (missing === '') return patched
  const open = patched.indexOf('{') + 1
  const empty = patched.charCodeAt(skipSpace(patched, open)) === 125
  return patched.slice(0, open) + (empty ? missing.slice(0, -1) : missing) + patched.slice(open)
}

/** For `patch`: what is `null` stays as it is. */
export function replacements(id: string | null, model: string | null): Record<string, string> {
  return { ...(model === null ? {} : { model }), ...(id === null ? {} : { id }) }
}

/**
 * Patches the events of one stream. What stands before and at the patched members is the same from event to event with nearly all providers:
 * it is looked through once, and then only compared.
 */
export class StreamPatch {
  #id: unknown
  #model: unknown
  /** As the provider writes it, up to the end of the last patched value; and as the client gets it. */
  #written = ''
  #told = ''

  /** `text` with `id` and `model` replaced where they are not `null`. `had`: what they are in it, by JSON.parse. */
  apply(text: string, id: string | null, model: string | null, had: { readonly id?: unknown; readonly model?: unknown }): string {
    const from = this.#written.length
    if (from > 0 && had.id === this.#id && had.model === this.#model && text.startsWith(this.#written)) {
      // Of several members of one name the last counts.
      if ((id === null || !text.includes('id"', from)) && (model === null || !text.includes('model"', from)))
        return this.#told + text.slice(from)
    }
    const patched = patch(text, replacements(id, model))
    const ends = [id === null ? null : memberValue(text, 'id'), model === null ? null : memberValue(text, 'model')]
    const end = Math.max(...ends.map(span => span?.end ?? 0))
    this.#id = had.id
    this.#model = had.model
    this.#written = text.slice(0, end)
    this.#told = patched.slice(0, patched.length - (text.length - end))
    return patched
  }
}

interface Span {
  readonly start: number
  readonly end: number
}

const QUOTE = 34
const BACKSLASH = 92

/** Where the value of a top-level member stands. The last of several counts, as it does for JSON.parse. */
function memberValue(text: string, name: string): Span | null {
  let found: Span | null = null
  let depth = 0
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c === QUOTE) {
      const end = endOfString(text, i)
      if (depth === 1) {
        const colon = skipSpace(text, end + 1)
        if (text.charCodeAt(colon) === 58) {
          const start = skipSpace(text, colon + 1)
          if (isName(text, i + 1, end, name)) {
            const stop = endOfValue(text, start)
            found = { start, end: stop }
            i = stop - 1
          } else {
            i = start - 1
          }
          continue
        }
      }
      i = end
    } else if (c === 123 || c === 91) depth++
    else if (c === 125 || c === 93) depth--
  }
  return found
}

function isName(text: string, start: number, end: number, name: string): boolean {
  if (end - start === name.length) return text.startsWith(name, start)
  // The same name may be written with escapes.
  if (end - start < name.length) return false
  const written = text.slice(start, end)
  return written.includes('\\') && JSON.parse(`"${written}"`) === name
}

/** Where the string that opens at `start` closes. */
export function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let back = end - 1
    while (text.charCodeAt(back) === BACKSLASH) back--
    if ((end - back) % 2 === 1) return end
  }
  return text.length
}

function endOfValue(text: string, start: number): number {
  const c = text.charCodeAt(start)
  if (c === QUOTE) return endOfString(text, start) + 1
  let depth = 0
  for (let i = start; i < text.length; i++) {
    const d = text.charCodeAt(i)
    if (d === QUOTE) i = endOfString(text, i)
    else if (d === 123 || d === 91) depth++
    else if (d === 125 || d === 93) {
      if (depth === 0) return trimEnd(text, start, i)
      if (--depth === 0) return i + 1
    } else if (d === 44 && depth === 0) return trimEnd(text, start, i)
  }
  return text.length
}

function trimEnd(text: string, start: number, end: number): number {
  let stop = end
  while (stop > start && isSpace(text.charCodeAt(stop - 1))) stop--
  return stop
}

function skipSpace(text: string, from: number): number {
  let i = from
  while (isSpace(text.charCodeAt(i))) i++
  return i
}

function isSpace(c: number): boolean {
  return c === 32 || c === 10 || c === 13 || c === 9
}
