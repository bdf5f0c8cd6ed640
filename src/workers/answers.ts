import { GatewayError } from '../errors.js'
import type { Admission, Claim, Ending, Reading } from '../ledger/ledger.js'
import { amountIn, amountOut, packed, unpacked, type WireAmount } from './amounts.js'

/*
 * What the ledger's owner answers, as it goes over to a worker: one JSON array of entries for all that became durable at one time.
 */

const REFUSED = 0
const ADMITTED = 1
const ENDED = 2
const VALUE = 3
const FAILED = 4

const ENDINGS: readonly Ending[] = ['ended', 'already_ended', 'unknown']

/** Writes answers. `place`: that of the operation. */
export class AnswerWriter {
  #entries: unknown[] = []

  /** All that was written since it was last taken, as one text. */
  take(): string {
    const text = JSON.stringify(this.#entries)
    this.#entries = []
    return text
  }

  /** `claims`: those of the hold. */
  admission(place: number, admission: Admission, claims: readonly Claim[]): void {
    const entry: unknown[] = admission.admitted ? [ADMITTED, place] : [REFUSED, place, claims.indexOf(admission.refused)]
    for (const { posted, pending, ceiling } of admission.readings) {
      entry.push(amountOut(posted), amountOut(pending), ceiling === null ? null : amountOut(ceiling))
    }
    this.#entries.push(entry)
  }

  ending(place: number, ending: Ending): void {
    this.#entries.push([ENDED, place, ENDINGS.indexOf(ending)])
  }

  value(place: number, value: unknown): void {
    this.#entries.push([VALUE, place, packed(value)])
  }

  failure(place: number, error: unknown): void {
    this.#entries.push([FAILED, place, errorOut(error)])
  }
}

/** What an operation came to. `hold`: the claims of one, for its readings. */
export type Answer = { readonly place: number } & (
  | { readonly kind: 'admission'; readonly admission: (claims: readonly Claim[]) => Admission }
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'error'; readonly error: Error }
)

export function readAnswers(text: string): Answer[] {
  return (JSON.parse(text) as unknown[][]).map(answer)
}

function answer(entry: unknown[]): Answer {
  const place = entry[1] as number
  switch (entry[0]) {
    case ADMITTED:
      return { place, kind: 'admission', admission: claims => ({ admitted: true, readings: readings(entry, 2, claims) }) }
    case REFUSED:
      return { place, kind: 'admission', admission: claims => refused(entry, claims) }
    case ENDED:
      return { place, kind: 'value', value: ENDINGS[entry[2] as number] }
    case VALUE:
      return { place, kind: 'value', value: unpacked(entry[2] as string) }
    default:
      return { place, kind: 'error', error: errorIn(entry[2] as WireError) }
  }
}

function refused(entry: readonly unknown[], claims: readonly Claim[]): Admission {
  const first = entry[2] as number
  const all = readings(entry, 3, claims)
  return { admitted: false, refused: claims[first] as Claim, reading: all[first] as Reading, readings: all }
}

function readings(entry: readonly unknown[], from: number, claims: readonly Claim[]): Reading[] {
  const found: Reading[] = []
  let at = from
  for (const { counter } of claims) {
    const ceiling = entry[at + 2] as WireAmount | null
    found.push({
      counter,
      ceiling: ceiling === null ? null : amountIn(ceiling),
      posted: amountIn(entry[at] as WireAmount),
      pending: amountIn(entry[at + 1] as WireAmount),
    })
    at += 3
  }
  return found
}

interface WireError {
  readonly name: 'gateway' | 'range' | 'other'
  readonly message: string
  /** Of a GatewayError. */
  readonly code?: string
  readonly cause?: WireError
}

/** An error with what it was caused by, in words: its stack is of another process. */
export function errorOut(error: unknown): WireError {
  if (!(error instanceof Error)) return { name: 'other', message: String(error) }
  const cause = error.cause === undefined ? {} : { cause: errorOut(error.cause) }
  if (error instanceof GatewayError) return { name: 'gateway', code: error.code, message: error.message, ...cause }
  return { name: error instanceof RangeError ? 'range' : 'other', message: error.message, ...cause }
}

export function errorIn({ name, message, code = '', cause }: WireError): Error {
  const options = cause === undefined ? {} : { cause: errorIn(cause) }
  if (name === 'gateway') return new GatewayError(code, message, options)
  return name === 'range' ? new RangeError(message, options) : new Error(message, options)
}
