import { randomUUID } from 'node:crypto'
import { checkBytes, checkFinite, decoded, parseBody, parseJson, parseObject, type Quoted } from '../http/body.js'
import type { Json, JsonObject } from '../json.js'
import { filled, lengthOf } from '../pieces.js'

/**
 * A large body. What makes one large is nearly always a few long strings, and those are neither parsed nor written again: a word of ours
 * stands for each in what is parsed, and the client's own bytes for that word in what is written. For a MiB that takes a third of the time.
 */
export class LargeBody {
  /** What the bytes are: as `parseBody` has it. */
  readonly body: JsonObject
  readonly #bytes: Buffer
  /** The long strings, and where each is. */
  readonly #long: readonly Quoted[]
  readonly #strings: readonly string[]
  /** What nobody who sends a body can know. */
  readonly #word = randomUUID()

  /** Throws exactly where `parseBody` does, and the same. */
  constructor(bytes: Buffer) {
    const found: Quoted[] = []
    const vast = checkBytes(bytes, found)
    this.#bytes = bytes
    this.#long = found.filter(({ to }) => !isName(bytes, to))
    const skeleton = this.#long.length === 0 ? parseBody(bytes) : parseObject(this.#skeletonText())
    this.#strings = this.#long.map(quoted => stringOf(bytes, quoted))
    this.body = this.#long.length === 0 ? skeleton : (replaced(skeleton, this.#stringAt) as JsonObject)
    if (vast) checkFinite(this.body)
  }

  /** `value` as JSON in UTF-8, whatever it is: where it has long strings of the body, they are copied from there. */
  written(value: JsonObject): Uint8Array {
    // Texts at even places, numbers of strings at odd ones.
    const parts = JSON.stringify(replaced(value, this.#words())).split(new RegExp(`"${this.#word} (\\d+)"`))
    const pieces = parts.map((part, i) => {
      if (i % 2 === 0) return Buffer.from(part)
      const { from, to } = this.#long[Number(part)] as Quoted
      return this.#bytes.subarray(from, to + 1)
    })
    // Not of the memory that small buffers share: it may change hands.
    return filled(Buffer.allocUnsafeSlow(lengthOf(pieces)), pieces)
  }

  /** The string that a word stands for. */
  readonly #stringAt = (text: string): string =>
    text.startsWith(this.#word) ? (this.#strings[Number(text.slice(this.#word.length + 1))] as string) : text

  /**
   * The word that stands for a string. Of several strings of one length each is compared with the next in turn alone, in the order that they
   * came in, so that to find them takes no longer than to read them; one that is not found so is written like any other.
   */
  #words(): (text: string) => string {
    const byLength = new Map<number, { readonly places: number[]; next: number }>()
    for (const [i, { length }] of this.#strings.entries()) {
      const turn = byLength.get(length)
      if (turn === undefined) byLength.set(length, { places: [i], next: 0 })
      else turn.places.push(i)
    }
    return text => {
      const turn = text.length < SHORTEST ? undefined : byLength.get(text.length)
      if (turn === undefined) return text
      const place = turn.places[turn.next++ % turn.places.length] as number
      return this.#strings[place] === text ? `${this.#word} ${place}` : text
    }
  }

  #skeletonText(): string {
    const start = this.#bytes[0] === 0xef ? 3 : 0
    let text = ''
    let at = start
    for (const [i, { from, to }] of this.#long.entries()) {
      text += `${decoded(this.#bytes.subarray(at, from))}"${this.#word} ${i}"`
      at = to + 1
    }
    return text + decoded(this.#bytes.subarray(at))
  }
}

/** The same value with other strings. Only what holds one that changes is made anew. */
function replaced(value: Json | undefined, to: (text: string) => string): Json | undefined {
  if (typeof value === 'string') return to(value)
  if (typeof value !== 'object' || value === null) return value
  let copy: { [name: string]: Json | undefined } | undefined
  for (const [name, inner] of Object.entries(value)) {
    const other = replaced(inner, to)
    if (other === inner) continue
    // A member that is called `__proto__` is one like all others: both ways of writing it here keep it so.
    copy ??= (Array.isArray(value) ? [...value] : { ...value }) as NonNullable<typeof copy>
    copy[name] = other
  }
  return (copy as Json | undefined) ?? value
}

/** Code units: eight thousand bytes may be so few. */
const SHORTEST = 1024
const COLON = 0x3a

/** Is the string that ends at `to` the name of a member? */
function isName(bytes: Buffer, to: number): boolean {
  let at = to + 1
  while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at++
  return bytes[at] === COLON
}

/** What JSON.parse makes of it, sooner where the bytes are the string as they are; throws `invalid_json`. */
function stringOf(bytes: Buffer, { from, to }: Quoted): string {
  const inner = bytes.subarray(from + 1, to)
  if (!inner.includes(0x5c) && !hasControls(inner)) return decoded(inner)
  return parseJson(decoded(bytes.subarray(from, to + 1))) as string
}

/** True where a byte is below 0x20. Four at a time: what is borrowed from a byte below 0x20 can not make it look like none. */
function hasControls(bytes: Buffer): boolean {
  const skipped = Math.min(bytes.length, -bytes.byteOffset & 3)
  const words = new Int32Array(bytes.buffer, bytes.byteOffset + skipped, (bytes.length - skipped) >> 2)
  let found = 0
  for (let i = 0; i < words.length; i++) found |= ((words[i] as number) - 0x20202020) & ~(words[i] as number)
  if ((found & 0x80808080) !== 0) return true
  for (let i = 0; i < skipped; i++) if ((bytes[i] as number) < 0x20) return true
  for (let i = skipped + words.length * 4; i < bytes.length; i++) if ((bytes[i] as number) < 0x20) return true
  return false
}
