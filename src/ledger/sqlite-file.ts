import { existsSync, fdatasyncSync, fstatSync, linkSync, renameSync, rmSync, statSync } from 'node:fs'
import { access, constants, copyFile, type FileHandle, mkdir, open, realpath, rename, stat } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import type Database from 'better-sqlite3'
import { GatewayError } from '../errors.js'
import { isOpenHere, openDatabase } from './database.js'
import { syncFolder } from './folder.js'
import { LiveCopy } from './live-copy.js'
import { checkLog, type LogFault, logOf, markOf, markWhole } from './log-check.js'
import { Mark, writeNone } from './mark.js'
import { APPLICATION_ID, IN_USE_ID, MIGRATIONS, SCHEMA, SCHEMA_VERSION } from './sqlite.sql.js'

export interface FileOptions {
  /** A path, or `:memory:`. */
  readonly path: string
  /** `power`: survives the loss of power. `process`: survives kill -9; after a loss of power the last moments may be missing, but the file is whole. */
  readonly durability: 'power' | 'process'
  /** Whether a file that is not there is made, with its folder. */
  readonly create: boolean
  /** Goes on without a log that is missing or not its own, if what is left is a whole database. What stood in that log alone is lost. */
  readonly acceptLoss?: boolean
}

/** What was opened of a ledger on a disk. */
interface Handles {
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
const PAGE_BYTES = 2048
// Looking costs 2 µs, and so many batches or operations, all on counters of their own, do not write more than some MB: the log stays
// below 16 MB.
const BATCHES_BETWEEN_LOOKS = 8
const OPERATIONS_BETWEEN_LOOKS = 256
// Of SQLite's log.
const LOG_HEADER_BYTES = 32
const FRAME_HEADER_BYTES = 24
const LOOK_MS = 100

/**
 * Opens a ledger's file, or makes it, as its only owner. Throws a GatewayError `ledger_unavailable` that says what is wrong with the
 * file and what to do; it is for the operator and names paths.
 */
export async function openFile(options: FileOptions): Promise<SqliteFile> {
  if (options.path === ':memory:') return new SqliteFile(prepare(own(openDatabase(':memory:'), 'memory'), APPLICATION_ID), 'process', null)
  let path = resolve(options.path)
  let db: Database.Database | undefined
  let recovered = false
  let opened: SqliteFile | undefined
  try {
    await ensureFile(path, options.create)
    // SQLite follows a link, and puts the log beside what it leads to.
    path = await realpath(path)
    // SQLite refuses what this process has open already.
    const fault = isOpenHere(path) ? null : await checkLog(path)
    if (fault !== null) await refuseOrPutAside(path, fault, options.acceptLoss === true)
    db = openDatabase(path, { timeout: 0, fileMustExist: true })
    own(db, 'wal')
    if (fault !== null) refuseDamaged(db)
    recovered = true
    prepare(db, IN_USE_ID)
    // Only now: closing any descriptor of a database file that SQLite has open in this process would drop SQLite's locks on it.
    const file = await open(path, 'r+')
    const wal = await open(logOf(path), 'r+')
    const mark = await Mark.open(markOf(path))
    await syncFolder(dirname(path))
    opened = new SqliteFile(db, options.durability, { file, wal, mark })
    // The file itself must say that it is in use before there is anything that only its log has.
    await opened.checkpoint()
    return opened
  } catch (error) {
    if (opened !== undefined) await opened.close(false).catch(() => {})
    else {
      // SQLite moves the log into the file when it closes it: none is needed then.
      if (recovered && db !== undefined) closeWithout(db, () => writeNone(markOf(path)))
      else db?.close()
    }
    throw explained(path, error)
  }
}

/** The database, and what makes it durable: SQLite itself never syncs (see `sync`). */
export class SqliteFile {
  readonly db: Database.Database
  readonly #durability: 'power' | 'process'
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

  constructor(db: Database.Database, durability: 'power' | 'process', handles: Handles | null) {
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
      const pages = await loggedPages(wal)
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

/** The pages of the file, counted from 0, that the log has something for. */
async function loggedPages(wal: FileHandle): Promise<Set<number>> {
  const log = await readWhole(wal)
  const pages = new Set<number>()
  // Each frame begins with the number of its page, counted from 1. A checkpoint leaves no frames of an older log behind.
  for (let at = LOG_HEADER_BYTES; at + FRAME_HEADER_BYTES <= log.length; at += FRAME_HEADER_BYTES + PAGE_BYTES) {
    pages.add(log.readUInt32BE(at) - 1)
  }
  return pages
}

/** Through the descriptor that is open: to open and close the file once more would drop SQLite's locks on it. */
async function readWhole(file: FileHandle): Promise<Buffer> {
  const whole = Buffer.allocUnsafe((await file.stat()).size)
  for (let at = 0; at < whole.length; ) {
    const { bytesRead } = await file.read(whole, at, whole.length - at, at)
    if (bytesRead === 0) throw new Error('the log has become shorter while it was read')
    at += bytesRead
  }
  return whole
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

async function ensureFile(path: string, create: boolean): Promise<void> {
  const size = await sizeOf(path)
  // Else SQLite would open it for reading only.
  if (size !== null) await access(path, constants.R_OK | constants.W_OK)
  if (size !== null && size > 0) return
  const state = size === null ? 'does not exist' : 'is empty'
  if (((await sizeOf(`${path}-wal`)) ?? 0) > 0) {
    throw refusal(`${path} ${state}, but its log ${basename(path)}-wal is there: bring the file back, or move the log away to begin anew`)
  }
  if (!create) {
    throw refusal(
      `${path} ${state} and ledger.create is false: bring back its volume or a backup, or set ledger.create to true to begin with empty counters and wallets`,
    )
  }
  if (size !== null) return
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  // SQLite gives the log the mode of the file.
  const handle = await open(path, 'wx', 0o600)
  await handle.close()
}

/** A path and no descriptor: see `openFile`. */
async function sizeOf(path: string): Promise<number | null> {
  try {
    const found = await stat(path)
    if (!found.isFile()) throw refusal(`${path} is no file: name a file in ledger.path`)
    return found.size
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

/** Takes the file for this process alone, and reads what its log has. Writes nothing to a file that is a ledger. */
function own(db: Database.Database, journal: 'wal' | 'memory'): Database.Database {
  // Before the journal mode, or SQLite shares the log's index with other processes, and does not notice them.
  set(db, 'locking_mode', 'EXCLUSIVE', 'exclusive')
  // Nothing is written before it is known whose file it is.
  refuseOthers(db)
  set(db, 'page_size', String(PAGE_BYTES), PAGE_BYTES)
  set(db, 'journal_mode', 'WAL', journal)
  return db
}

function prepare(db: Database.Database, id: number): Database.Database {
  // An existing file is opened with another value than a new one.
  set(db, 'synchronous', 'OFF', 0)
  set(db, 'wal_autocheckpoint', '0', 0)
  set(db, 'cell_size_check', 'ON', 1)
  // The CHECKs of the tables are for whoever else writes to them. What is written here was looked at before (records.ts): to let SQLite do it
  // again made a third of what a hold and its end cost.
  set(db, 'ignore_check_constraints', 'ON', 1)
  set(db, 'trusted_schema', 'OFF', 0)
  set(db, 'cache_size', '-16000', -16000)
  set(db, 'mmap_size', '0', 0)
  // Both are written each time: that makes the log's file, and a disk that cannot be written shows itself now.
  db.exec('BEGIN IMMEDIATE')
  const version = db.pragma('user_version', { simple: true }) as number
  if (version === 0) db.exec(SCHEMA)
  else for (let older = version; older < SCHEMA_VERSION; older++) db.exec(MIGRATIONS.get(older) as string)
  db.pragma(`application_id = ${id}`)
  db.pragma(`user_version = ${SCHEMA_VERSION}`)
  db.exec('COMMIT')
  return db
}

/** Refuses what `checkLog` has found; or makes way for a start without that log, which is kept under another name. */
async function refuseOrPutAside(path: string, fault: LogFault, accept: boolean): Promise<void> {
  refuseOpen(path)
  if (!accept) {
    throw refusal(
      `${path} ${fault.words}: ${fault.remedy}, or restore a backup. What stood in that log alone is lost if you go on without it, which takes: model-gateway ledger accept-loss`,
    )
  }
  const log = logOf(path)
  if ((await sizeOf(log)) === null) return
  let aside = `${log}.aside`
  for (let i = 2; (await sizeOf(aside)) !== null; i++) aside = `${log}.aside-${i}`
  // A log of another file must not be written into this one; of its own log, what is whole is.
  if (fault.foreign) await rename(log, aside)
  else await copyFile(log, aside, constants.COPYFILE_EXCL)
}

/** Throws where another process has the file open: what lies beside it is on the move then. For reading, so that closing it writes nothing. */
function refuseOpen(path: string): void {
  const db = openDatabase(path, { readonly: true, timeout: 0, fileMustExist: true })
  try {
    db.pragma('locking_mode = EXCLUSIVE')
    db.pragma('application_id')
  } catch (error) {
    // Any other error: a descriptor for reading can not be locked for writing, which is as far as it gets.
    if (/^SQLITE_(BUSY|LOCKED)/.test((error as { code?: string }).code ?? '')) throw error
  } finally {
    db.close()
  }
}

/** A file without its log may be one state or the next here and there. */
function refuseDamaged(db: Database.Database): void {
  const found = db.pragma('integrity_check(1)', { simple: true })
  if (found !== 'ok')
    throw refusal(`${db.name} is no whole database without that log (${String(found).replaceAll('\n', ' ')}): restore a backup`)
}

/**
 * Closes a database after `forget`, which has its mark ask for no log. Where that fails, the log stays where a start will look for it: SQLite deletes
 * one that it has moved into the file.
 */
function closeWithout(db: Database.Database, forget: () => void): void {
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

function refuseOthers(db: Database.Database): void {
  const application = db.pragma('application_id', { simple: true })
  const tables = db.prepare('SELECT count(*) FROM sqlite_schema').pluck().get()
  if (application === 0 && tables === 0) return
  if (application !== APPLICATION_ID && application !== IN_USE_ID)
    throw refusal(`${db.name} is an SQLite file of another program: choose another ledger.path`)
  const version = db.pragma('user_version', { simple: true }) as number
  if (version > SCHEMA_VERSION) {
    throw refusal(
      `${db.name} was written by a newer gateway (its schema is ${version}, this gateway knows ${SCHEMA_VERSION}): run that version, or restore a backup from before`,
    )
  }
}

function set(db: Database.Database, name: string, value: string, expected: unknown): void {
  db.pragma(`${name} = ${value}`)
  const found = db.pragma(name, { simple: true })
  if (found !== expected && !(name === 'mmap_size' && found === undefined)) {
    throw refusal(`SQLite does not take ${name} = ${value} for ${db.name} (it says ${JSON.stringify(found)}): use a local disk`)
  }
}

function refusal(message: string): GatewayError {
  return new GatewayError('ledger_unavailable', `ledger: ${message}.`)
}

/** What is wrong with a ledger's file, and what to do, for the operator. */
export function explained(path: string, error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  const { code = '', message } = error as NodeJS.ErrnoException
  const found = REMEDIES.find(([codes]) => codes.test(code))
  const words = found === undefined ? `cannot be opened (${message}): see to the cause, or choose another ledger.path` : found[1]
  return new GatewayError('ledger_unavailable', `ledger: ${path} ${words}.`, { cause: error })
}

const REMEDIES: readonly (readonly [RegExp, string])[] = [
  [/^SQLITE_(BUSY|LOCKED)/, 'is open in another process: stop that gateway, or choose another ledger.path'],
  [/^SQLITE_NOTADB/, 'is no ledger (not an SQLite file): choose another ledger.path, or move the file away'],
  [/^SQLITE_CORRUPT/, 'is damaged: restore a backup of it (model-gateway ledger backup makes them)'],
  [/^SQLITE_FULL|^ENOSPC|^EDQUOT/, 'cannot be written, the disk is full: make room, then start again'],
  [
    /^SQLITE_(READONLY|CANTOPEN|PERM)|^EACCES|^EPERM|^EROFS/,
    'cannot be written by this user: give it write access to the file and its folder, or choose another ledger.path',
  ],
  [/^ENOTDIR|^EISDIR|^EEXIST/, 'cannot be a file there, since a part of that path is not a folder: choose another ledger.path'],
]
