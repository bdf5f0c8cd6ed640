import type { OpenHold } from './ledger.js'
import type { Part } from './parts.js'

/** An open hold, with what it has pending. */
export interface Held extends OpenHold {
  readonly parts: readonly Part[]
}

/**
 * The open holds by their ids, in the order in which they came. The Map has only their places: what a Map has outgrown stays alive until the
 * next full collection (see InFlight), and holds come and go by the thousand.
 */
export class OpenHolds {
  readonly #places = new Map<string, number>()
  readonly #holds: (Held | undefined)[] = []
  readonly #free: number[] = []
  #rial = 0n

  get size(): number {
    return this.#places.size
  }

  /** Rial that they hold. */
  get rial(): bigint {
    return this.#rial
  }

  get(id: string): Held | undefined {
    const place = this.#places.get(id)
    return place === undefined ? undefined : this.#holds[place]
  }

  /** One whose id is not there yet. */
  add(hold: Held): void {
    const place = this.#free.pop() ?? this.#holds.length
    this.#holds[place] = hold
    this.#places.set(hold.id, place)
    this.#rial += hold.record.held_rial
  }

  remove(hold: Held): void {
    const place = this.#places.get(hold.id)
    if (place === undefined) return
    this.#places.delete(hold.id)
    this.#holds[place] = undefined
    this.#free.push(place)
    this.#rial -= hold.record.held_rial
  }

  *[Symbol.iterator](): IterableIterator<Held> {
    for (const place of this.#places.values()) yield this.#holds[place] as Held
  }
}
