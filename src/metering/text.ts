import { scan, scanForAll } from './scan.js'
import { type Family, LETTERS, type Rates, ratesOf } from './tokenizers.js'

/** Where texts are added. Those that follow one another are not one word. */
export interface Texts {
  add(text: string): void
}

/**
 * The estimated tokens of several texts together: the margin for chance counts once. Slightly too many on average; a non-negative integer, never
 * more than the bytes in UTF-8; in time linear in the texts, whatever they hold.
 */
export class TextSum implements Texts {
  readonly family: Family
  readonly #rates: Rates | undefined
  readonly #body: BodyTexts | undefined
  #hundredths = 0
  /** Code units: a text has no fewer bytes. Where there are no rates, bytes. */
  #units = 0
  /** Texts that come to so much that it may matter how many more bytes they have. */
  readonly #dense: string[] = []

  /** `body`: where the parts are known of a body that several models are sent. */
  constructor(family: Family, body?: BodyTexts) {
    this.family = family
    this.#rates = ratesOf(family)
    this.#body = body
  }

  add(text: string): void {
    if (this.#rates === undefined) {
      this.#units += Buffer.byteLength(text)
      return
    }
    const hundredths = scan(text, this.#rates.features, LETTERS)
    this.#hundredths += hundredths
    this.#units += text.length
    if (isDense(hundredths, text)) this.#dense.push(text)
  }

  /** Adds the texts that `read` adds, and returns what it returns. Of a body, a part is read once, for all families together. */
  addPart(name: string, read: (texts: Texts) => number): number {
    if (this.#body === undefined) return read(this)
    const part = this.#body.part(name, read)
    const { hundredths, dense } = part.of(this.family)
    this.#hundredths += hundredths
    this.#units += this.#rates === undefined ? part.bytes : part.units
    for (const text of dense) this.#dense.push(text)
    return part.returned
  }

  get tokens(): number {
    if (this.#rates === undefined) return this.#units
    const { margin, spread } = this.#rates
    const mean = this.#hundredths / 100
    const tokens = Math.round(mean * (1 + margin) + spread * Math.sqrt(mean))
    // To count bytes takes half as long as the scan.
    if (tokens <= this.#units) return tokens
    return Math.min(
      tokens,
      this.#dense.reduce((bytes, text) => bytes + Buffer.byteLength(text) - text.length, this.#units),
    )
  }
}

/** The parts of one body that is sent to models of these families: each is read once, whatever their number. Its parts do not change. */
export class BodyTexts {
  readonly #families: readonly Family[]
  readonly #parts = new Map<string, Part>()

  constructor(families: ReadonlySet<Family>) {
    this.#families = [...families]
  }

  part(name: string, read: (texts: Texts) => number): Part {
    const known = this.#parts.get(name)
    if (known !== undefined) return known
    const part = new Part(this.#families)
    part.returned = read(part)
    this.#parts.set(name, part)
    return part
  }
}

/** What the texts of a part come to for each of the families. */
class Part implements Texts {
  units = 0
  /** Counted where a family counts them. */
  bytes = 0
  returned = 0
  readonly #families: readonly Family[]
  readonly #rated: readonly Family[]
  readonly #rates: readonly Uint16Array[]
  readonly #hundredths: Float64Array
  readonly #costs: Float64Array
  readonly #dense: readonly string[][]

  constructor(families: readonly Family[]) {
    this.#families = families
    this.#rated = families.filter(family => ratesOf(family) !== undefined)
    this.#rates = this.#rated.map(family => (ratesOf(family) as Rates).features)
    this.#hundredths = new Float64Array(this.#rated.length)
    this.#costs = new Float64Array(this.#rated.length)
    this.#dense = this.#rated.map(() => [])
  }

  add(text: string): void {
    this.units += text.length
    if (this.#rated.length < this.#families.length) this.bytes += Buffer.byteLength(text)
    this.#costs.fill(0)
    scanForAll(text, this.#rates, LETTERS, this.#costs)
    for (const [i, hundredths] of this.#costs.entries()) {
      this.#hundredths[i] = (this.#hundredths[i] as number) + hundredths
      if (isDense(hundredths, text)) this.#dense[i]?.push(text)
    }
  }

  of(family: Family): { readonly hundredths: number; readonly dense: readonly string[] } {
    if (!this.#families.includes(family)) throw new RangeError(`The body is not read for ${family}.`)
    const at = this.#rated.indexOf(family)
    return { hundredths: this.#hundredths[at] ?? 0, dense: this.#dense[at] ?? [] }
  }
}

/** More than a token for every second unit. */
function isDense(hundredths: number, text: string): boolean {
  return hundredths > 50 * text.length
}
