import { existsSync, fdatasyncSync, fstatSync, linkSync, renameSync, rmSync, statSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import type Database from 'better-sqlite3'
import { LiveCopy } from './live-copy.js'
import { logOf, markOf, markWhole } from './log-check.js'
import type { Mark } from './mark.js'
import type { FileOptions } from './open-file.js'
import { APPLICATION_ID } from './sqlite.sql.js'
import { loggedPages } from './write-ahead-log.js'

/** What was opened of a ledger on a disk. */
export interface Handles {
  readonly file: FileHandle
  readonly wal: FileHandle
  readonly mark: Mark
}

// A checkpoint is due when the log has 8 MB, or 2 MB of which most are new pages. It keeps the event loop for as long as it takes to copy
// pages (1.5 ms for 400 new ones and those they touch) and to cut the log (0.2 ms for each MB); a log of few requests at a time is mostly
// the same pages over and over.
const LOG_BYTES_MIN = 2_000_000
const LOG_BYTES_MAX = 8_000_000
const NEW_PAGES_MAX = 400
export const PAGE_BYTES = 2048
// Looking costs 2 µs, and so many batches or operations, all on counters of their own, do not write more than some MB: the log stays
// below 16 MB.
const BATCHES_BETWEEN_LOOKS = 8
const OPERATIONS_BETWEEN_LOOKS = 256
const LOOK_MS = 100

/** The database, and what makes it durable: SQLite itself never syncs (see `sync`). */
export class SqliteFile {
  readonly db: Database.Database
  readonly #durability: FileOptions['durability']
  readonly #handles: Handles | null
  readonly #pages: Database.Statement<[], number>
  /** Where the file and its log must be found, by the numbers that the file system knows them by. */
  readonly #places: readonly Place[]
  #lookedAt = Number.NEGATIVE_INFINITY
  #batches = 0
  #operations = 0
  /** Copies under way: they have to know of what is written to the file. */
  readonly #copies = new Set<LiveCopy>()
  readonly #atExit = () => this.#closeDatabase()

  constructor(db: Database.Database, durability: FileOptions['durability'], handles: Handles | null) {
    this.db = db
    this.#durability = durability
    this.#handles = handles
    this.#pages = db.prepare<[], number>('PRAGMA page_count').pluck()
    this.#places = handles === null ? [] : [placeOf(db.name, handles.file), placeOf(`${db.name}-wal`, handles.wal)]
    // When a process exits, better-sqlite3 closes its databases, which copies the log into the file and deletes it. See #closeDatabase.
    if (handles !== null) process.once('exit', this.#atExit)
  }

  /**
   * Makes what was committed durable, off the event loop. An fsync by SQLite itself would stall every stream of the process: 0.2 ms on
   * a good disk, 10 ms and more on others. A sync that fails is final: the kernel forgets such an error, so a second try would lie.
   */
  async sync(): Promise<void> {
    if (this.#handles === null) return
    const { wal, mark } = this.#handles
    // The beginning of a log is synced whatever the durability: else a loss of power could look like a log that somebody took away.
    if (this.#durability === 'process' && mark.named) return
    const { size } = fstatSync(wal.fd)
    await wal.datasync()
    if (mark.named) mark.extend(size)
    // What changes nothing is committed without a page: the log may be as empty as the checkpoint left it.
    else if (size > 0) await mark.name(wal, size)
  }

  /**
   * Throws where the file or its log was removed or replaced since it was opened: what is written goes to a file that no start will find.
   * `anew` false: looks at most every 100 ms, since a look takes 5 µs and more, so that each commit can ask.
   */
  look(anew: boolean): void {
    const now = performance.now()
    if (!anew && now - this.#lookedAt < LOOK_MS) return
    this.#lookedAt = now
    for (const { path, ino, dev } of this.#places) {
      const found = statSync(path, { throwIfNoEntry: false })
      if (found?.ino === ino && found.dev === dev) continue
      throw new Error(`${path} was ${found === undefined ? 'removed' : 'replaced'} while the gateway ran: bring back the right file`)
    }
  }

  /** Bytes of the database and of its log. */
  size(): { readonly bytes: number; readonly wal_bytes: number } {
    if (this.#handles === null) {
      return { bytes: (this.#pages.get() ?? 0) * PAGE_BYTES, wal_bytes: 0 }
    }
    return { bytes: fstatSync(this.#handles.file.fd).size, wal_bytes: fstatSync(this.#handles.wal.fd).size }
  }

  /** To be called after each batch, with the operations that wrote in it: a checkpoint, when the log has grown long enough. */
  tidy(operations: number): Promise<void> | undefined {
    this.#operations += operations
    if (this.#handles === null || (++this.#batches < BATCHES_BETWEEN_LOOKS && this.#operations < OPERATIONS_BETWEEN_LOOKS)) return undefined
    this.#batches = 0
    this.#operations = 0
    const { bytes, wal_bytes } = this.size()
    if (wal_bytes < LOG_BYTES_MIN) return undefined
    const newPages = (this.#pages.get() ?? 0) - bytes / PAGE_BYTES
    return wal_bytes > LOG_BYTES_MAX || newPages > NEW_PAGES_MAX ? this.checkpoint() : undefined
  }

  /**
   * Moves the log into the file. Nothing may be committed until it is done. Each step is durable before the next, whatever the
   * durability: a file must not be damaged by a loss of power. The log is cut to nothing and that is synced too, since SQLite
   * would not sync the header of the next one, and frames of the old one must not come back under it.
   */
  async checkpoint(): Promise<void> {
    if (this.#handles === null) return
    const { file, wal, mark } = this.#handles
    await wal.datasync()
    if (this.#copies.size > 0) {
      const pages = await loggedPages(wal, PAGE_BYTES)
      for (const copy of this.#copies) copy.writing(pages)
    }
    this.#pragmaCheckpoint('PASSIVE')
    await file.datasync()
    await mark.none()
    this.#pragmaCheckpoint('TRUNCATE')
    await wal.datasync()
  }

  /**
   * A consistent copy, in a new file that only its owner can read. Others go on meanwhile, and checkpoints too, so that the log stays short.
   * `between` runs a task while nothing is committed.
   */
  async backup(path: string, between: (task: () => Promise<void>) => Promise<void>): Promise<void> {
    const target = await open(path, 'wx', 0o600)
    try {
      if (this.#handles === null) await target.writeFile(this.db.serialize())
      else await this.#copy(new LiveCopy(this.#handles.file, target, PAGE_BYTES), between)
      await markWhole(target)
      await target.sync()
    } finally {
      await target.close()
    }
  }

  async #copy(copy: LiveCopy, between: (task: () => Promise<void>) => Promise<void>): Promise<void> {
    try {
      await between(async () => {
        this.#copies.add(copy)
        await this.checkpoint()
      })
      await copy.follow(() => between(() => this.checkpoint()))
      let failed: { readonly error: unknown } | undefined
      await between(async () => {
        await this.checkpoint()
        // Not a failure of this file.
        await copy.finish().catch(error => {
          failed = { error }
        })
      })
      if (failed !== undefined) throw failed.error
    } finally {
      this.#copies.delete(copy)
    }
  }

  /** Closes everything; `whole` false leaves the log as it is for SQLite to deal with. */
  async close(whole: boolean): Promise<void> {
    try {
      if (whole) {
        this.#setWhole()
        await this.checkpoint()
      }
    } finally {
      process.removeListener('exit', this.#atExit)
      this.#closeDatabase()
      await this.#handles?.file.close()
      await this.#handles?.wal.close()
      await this.#handles?.mark.close()
    }
  }

  #closeDatabase(): void {
    if (!this.db.open) return
    let whole = false
    closeWithout(this.db, () => {
      whole = this.#setWhole()
      // SQLite's own checkpoint at closing must not delete a log before what was in it is on the disk, nor what ours has just copied.
      this.db.pragma('synchronous = FULL')
      if (this.#handles === null) return
      fdatasyncSync(this.#handles.file.fd)
      this.#handles.mark.noneSync()
    })
    if (whole) rmSync(markOf(this.db.name), { force: true })
  }

  /** Has the file say that it is whole by itself, which it is once the log has been moved into it. False where that can not be written. */
  #setWhole(): boolean {
    try {
      if (this.#handles === null || this.db.inTransaction) return false
      this.look(true)
      this.db.pragma(`application_id = ${APPLICATION_ID}`)
      return true
    } catch {
      // A disk that fails, or a file that was taken away: its next start finds the log, or a mark that says that none is needed.
      return false
    }
  }

  #pragmaCheckpoint(mode: 'PASSIVE' | 'TRUNCATE'): void {
    const [result] = this.db.pragma(`wal_checkpoint(${mode})`) as { busy: number; log: number; checkpointed: number }[]
    if (result === undefined || result.busy !== 0 || result.log !== result.checkpointed) {
      throw new Error(`a checkpoint (${mode}) came to ${JSON.stringify(result)}`)
    }
  }
}

interface Place {
  readonly path: string
  readonly ino: number
  readonly dev: number
}

function placeOf(path: string, { fd }: FileHandle): Place {
  const { ino, dev } = fstatSync(fd)
  return { path, ino, dev }
}

/**
 * Closes a database after `forget`, which has its mark ask for no log. Where that fails, the log stays where a start will look for it: SQLite deletes
 * one that it has moved into the file.
 */
export function closeWithout(db: Database.Database, forget: () => void): void {
  const log = logOf(db.name)
  const kept = `${log}-kept`
  let linked = false
  try {
    forget()
  } catch {
    linked = link(log, kept)
  }
  try {
    db.close()
  } finally {
    // To rename one name of a file to another of the same file does nothing.
    if (linked && existsSync(log)) rmSync(kept)
    else if (linked) renameSync(kept, log)
  }
}

function link(log: string, kept: string): boolean {
  try {
    rmSync(kept, { force: true })
    linkSync(log, kept)
    return true
  } catch {
    return false
  }
}
