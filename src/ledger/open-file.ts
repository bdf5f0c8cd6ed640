import { access, constants, copyFile, mkdir, open, realpath, rename, stat } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import type Database from 'better-sqlite3'
import { isOpenHere, openDatabase } from './database.js'
import { explained, refusal } from './file-errors.js'
import { syncFolder } from './folder.js'
import { checkLog, type LogFault, logOf, markOf } from './log-check.js'
import { Mark, writeNone } from './mark.js'
import { APPLICATION_ID, IN_USE_ID, LAST_WITHOUT_WALLETS, MIGRATIONS, SCHEMA, SCHEMA_VERSION } from './sqlite.sql.js'
import { closeWithout, PAGE_BYTES, SqliteFile } from './sqlite-file.js'
import { sumUpCredits } from './wallets.js'

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
  if (version > 0 && version <= LAST_WITHOUT_WALLETS) sumUpCredits(db)
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
