/** A thing that is on its way, and knows where it stands among the others. Only `InFlight` writes `place`. */
export interface Placed {
  place: number
}

/**
 * What is on its way, in no order. Not a Set: V8 keeps in each table that a Set or a Map has outgrown what was in it then, and a way to the next
 * table. Once the first of them is old, the collections of the young generation take all that ever came for alive.
 */
export class InFlight<One extends Placed> {
  readonly #all: One[] = []

  get size(): number {
    return this.#all.length
  }

  add(one: One): void {
    one.place = this.#all.length
    this.#all.push(one)
  }

  /** Nothing happens where it is not there. */
  remove(one: One): void {
    if (this.#all[one.place] !== one) return
    const last = this.#all.pop() as One
    if (last === one) return
    last.place = one.place
    this.#all[one.place] = last
  }

  [Symbol.iterator](): IterableIterator<One> {
    return this.#all.values()
  }
}
