import { closeSync, constants, fdatasyncSync, openSync, readSync, writeSync } from 'node:fs'
import { type FileHandle, open, readFile } from 'node:fs/promises'
import { SALTS } from './write-ahead-log.js'

/** Which log a file in use cannot do without. `null`: none, all is in the file itself. */
export type Marked = { readonly salts: string; readonly bytes: number } | null

const NONE = 'no log is needed'
const LENGTH = 40
const NAMED = /^log ([0-9a-f]{16}) ([0-9]{15}) *\n$/

/**
 * A line of text in a file beside the ledger's: which log belongs to it, and how many bytes of that have been promised to be durable. A start
 * after a crash holds the log against it. It never says more than is so: before a log is cut it says `none`, and a log's name and length are
 * written after they are on the disk.
 */
export class Mark {
  readonly #file: FileHandle
  #salts: string | null = null

  private constructor(file: FileHandle) {
    this.#file = file
  }

  /** What it said before stays until it is told otherwise. */
  static async open(path: string): Promise<Mark> {
    // Not 'a': on Linux that would write at the end, whatever the position.
    const file = await open(path, 'r+').catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
      return open(path, 'wx+', 0o600)
    })
    return new Mark(file)
  }

  /** Whether it names the log that is being written. */
  get named(): boolean {
    return this.#salts !== null
  }

  /** All is in the file. */
  async none(): Promise<void> {
    this.#salts = null
    this.#write(NONE)
    await this.#file.datasync()
  }

  /** As `none`, for a process that is about to end. */
  noneSync(): void {
    this.#salts = null
    this.#write(NONE)
    fdatasyncSync(this.#file.fd)
  }

  /** Names the log whose first `bytes` are on the disk. */
  async name(log: FileHandle, bytes: number): Promise<void> {
    const salts = Buffer.alloc(SALTS.bytes)
    readSync(log.fd, salts, 0, SALTS.bytes, SALTS.at)
    this.#salts = salts.toString('hex')
    this.extend(bytes)
    await this.#file.datasync()
  }

  /** More of the log is on the disk. Costs 2 µs, and is not synced: an older length is as true. */
  extend(bytes: number): void {
    this.#write(`log ${this.#salts} ${String(bytes).padStart(15, '0')}`)
  }

  close(): Promise<void> {
    return this.#file.close()
  }

  #write(words: string): void {
    writeSync(this.#file.fd, line(words), 0)
  }
}

/** Has the mark at a path say that no log is needed, whether there was one or not. */
export function writeNone(path: string): void {
  const file = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600)
  try {
    writeSync(file, line(NONE), 0)
    fdatasyncSync(file)
  } finally {
    closeSync(file)
  }
}

function line(words: string): string {
  return `${words.padEnd(LENGTH - 1)}\n`
}

/** What a mark says; `undefined` where there is none, or it says nothing. */
export async function readMark(path: string): Promise<Marked | undefined> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return ''
    throw error
  })
  if (text.startsWith(NONE)) return null
  const [, salts, bytes] = NAMED.exec(text) ?? []
  return salts === undefined ? undefined : { salts, bytes: Number(bytes) }
}
