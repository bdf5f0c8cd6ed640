import { isObject, type Json, type JsonObject } from '../json.js'
import { endOfString } from './patch.js'

/** Streams whose chunks differ in more than their content (a time, a filling) are not tried for ever. */
const TRIES_MAX = 4
/** Stands where the content does while a chunk is looked at. */
const PROBE = 'the content of a chunk, 8b1f0c5d'
const QUOTE = 34
const BACKSLASH = 92
const CONTENT = /"content"[ \t]*:[ \t]*"/

/** A chunk that differs from the one before in its content alone. */
export interface Repeated {
  /** What JSON.parse would have made of it. */
  readonly chunk: JsonObject
  /** What the client gets. */
  readonly told: string
}

/**
 * Of a stream's chunks, nearly all differ in nothing but the text of one `delta.content`. Once one has been parsed and told, those are told by
 * their beginning and their end, which are compared: a quarter of what parsing and patching them costs.
 */
export class ContentTemplate {
  #before = ''
  #after = ''
  #toldBefore = ''
  #toldAfter = ''
  #chunk: JsonObject = {}
  #choice: JsonObject = {}
  #tries = 0

  /** `null`: this one has to be parsed. */
  match(text: string): Repeated | null {
    const start = this.#before.length
    const end = text.length - this.#after.length
    // Slices that are equal are found so at once: `startsWith` goes by characters.
    if (start === 0 || end < start || text.slice(0, start) !== this.#before || text.slice(end) !== this.#after) return null
    const written = text.slice(start, end)
    const content = isPlain(written) ? written : contentOf(written)
    if (content === null) return null
    return {
      chunk: { ...this.#chunk, choices: [{ ...this.#choice, delta: { content } }] },
      told: this.#toldBefore + written + this.#toldAfter,
    }
  }

  /** `chunk`: what was parsed of `text`, and is right as it is. `tell` makes of such a text what the client gets. */
  learn(text: string, chunk: JsonObject, tell: (text: string) => string): void {
    if (this.#tries >= TRIES_MAX || !saysContentAlone(chunk) || text.includes('\n') || text.includes(PROBE)) return
    this.#tries++
    const found = CONTENT.exec(text)
    if (found === null) return
    const start = found.index + found[0].length
    const [before, after] = [text.slice(0, start), text.slice(endOfString(text, start - 1))]
    const probe = before + PROBE + after
    const parsed = JSON.parse(probe) as JsonObject
    // Of several members of one name the last counts, and a content may stand elsewhere, too.
    if (!saysContentAlone(parsed) || contentIn(parsed) !== PROBE) return
    const [toldBefore, toldAfter, more] = tell(probe).split(PROBE)
    if (toldBefore === undefined || toldAfter === undefined || more !== undefined) return
    this.#before = before
    this.#after = after
    this.#toldBefore = toldBefore
    this.#toldAfter = toldAfter
    this.#chunk = parsed
    this.#choice = (parsed.choices as readonly JsonObject[])[0] as JsonObject
  }
}

/** Is it written in JSON as it is? */
function isPlain(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c < 32 || c === QUOTE || c === BACKSLASH) return false
  }
  return true
}

/** The string that is written so in JSON; `null` where it is none. */
function contentOf(written: string): string | null {
  try {
    const value: unknown = JSON.parse(`"${written}"`)
    return typeof value === 'string' ? value : null
  } catch {
    return null
  }
}

/** One choice, which goes on; a text, and nothing else that counts. */
function saysContentAlone(chunk: JsonObject): boolean {
  const { choices, usage, x_groq: groq } = chunk
  if (!Array.isArray(choices) || choices.length !== 1 || isObject(usage) || groq !== undefined) return false
  const choice: Json = choices[0]
  if (!isObject(choice) || typeof choice.finish_reason === 'string' || !isObject(choice.delta)) return false
  const names = Object.keys(choice.delta)
  return names.length === 1 && typeof choice.delta.content === 'string'
}

function contentIn(chunk: JsonObject): unknown {
  const [choice] = chunk.choices as readonly JsonObject[]
  return (choice?.delta as JsonObject | undefined)?.content
}
