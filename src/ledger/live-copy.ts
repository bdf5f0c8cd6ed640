import type { FileHandle } from 'node:fs/promises'

const COPY_BYTES = 1024 * 1024
// Read and written one by one, so many take some 5 ms: as long as nothing may be written at the end.
const LEFT_PAGES = 64
// Each round copies what was written during the one before it, which was longer, so that few are enough.
const ROUNDS_MAX = 10

/**
 * Copies a file of pages while it is written to, through handles that are open. Whatever was written since it was read is read again, until so
 * little is left that the writer can wait for it.
 */
export class LiveCopy {
  readonly #from: FileHandle
  readonly #to: FileHandle
  readonly #pageBytes: number
  #written = new Set<number>()

  constructor(from: FileHandle, to: FileHandle, pageBytes: number) {
    this.#from = from
    this.#to = to
    this.#pageBytes = pageBytes
  }

  /** These pages, counted from 0, are written from now on: to be told before the first byte of them changes. */
  writing(pages: Iterable<number>): void {
    for (const page of pages) this.#written.add(page)
  }

  /** Copies all of it, and then what is written meanwhile; `flush` has the writer bring what it still keeps to itself into the file. */
  async follow(flush: () => Promise<void>): Promise<void> {
    await this.#copy(0, Number.POSITIVE_INFINITY)
    for (let round = 0; round < ROUNDS_MAX; round++) {
      await flush()
      if (this.#written.size <= LEFT_PAGES) return
      await this.#catchUp()
    }
  }

  /** Copies what is left. Nothing may be written until it is done; from then on the copy is what the file is now. */
  async finish(): Promise<void> {
    await this.#catchUp()
  }

  async #catchUp(): Promise<void> {
    const pages = [...this.#written].sort((a, b) => a - b)
    this.#written = new Set()
    for (let first = 0; first < pages.length; ) {
      let next = first + 1
      while (next < pages.length && pages[next] === (pages[next - 1] as number) + 1) next++
      await this.#copy((pages[first] as number) * this.#pageBytes, ((pages[next - 1] as number) + 1) * this.#pageBytes)
      first = next
    }
  }

  async #copy(start: number, end: number): Promise<void> {
    const buffer = Buffer.allocUnsafe(Math.min(COPY_BYTES, end - start))
    for (let at = start; at < end; ) {
      const { bytesRead } = await this.#from.read(buffer, 0, Math.min(buffer.length, end - at), at)
      if (bytesRead === 0) return
      for (let from = 0; from < bytesRead; ) from += (await this.#to.write(buffer, from, bytesRead - from, at + from)).bytesWritten
      at += bytesRead
    }
  }
}
