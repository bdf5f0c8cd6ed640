import { existsSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { basename } from 'node:path'
import { readMark } from './mark.js'
import { APPLICATION_ID, IN_USE_ID } from './sqlite.sql.js'
import { readLog } from './write-ahead-log.js'

/** What lies beside a ledger's file while it is in use. */
export const logOf = (path: string): string => `${path}-wal`
export const markOf = (path: string): string => `${path}-mark`

/** Why the log beside a file may not be taken with it. `foreign`: it is another file's, and must not be written into this one. */
export interface LogFault {
  readonly foreign: boolean
  /** What is wrong; and what may be done about it, but for restoring a backup. */
  readonly words: string
  readonly remedy: string
}

const APPLICATION_ID_AT = 68

/**
 * Whether the log is there that a file needs: one that was in use when its process ended is not whole without it, and SQLite would take it for
 * whole. `null`: it is, or the file needs none. Must run before SQLite opens the file: afterwards, closing any descriptor of it would drop
 * SQLite's locks. The answer says nothing where another process has the file open.
 */
export async function checkLog(path: string): Promise<LogFault | null> {
  const name = basename(logOf(path))
  const mark = await readMark(markOf(path))
  if (!(await inUse(path))) {
    if (mark === undefined || mark === null || (await readLog(logOf(path)))?.salts !== mark.salts) return null
    return {
      foreign: true,
      words: `was closed by its gateway or is a backup, but the log ${name} beside it is of a ledger that was in use`,
      remedy: `move ${name} away where the file is the right one`,
    }
  }
  if (mark === null) return null
  const log = await readLog(logOf(path))
  const bringBack = `bring the right ${name} back`
  // A copy of both without the mark: a log that is there and empty is how each one begins.
  if (mark === undefined && existsSync(logOf(path))) return null
  if (log === null)
    return { foreign: false, words: `was in use when its gateway ended, and its log ${name} is missing or empty`, remedy: bringBack }
  if (log.salts !== mark?.salts)
    return {
      foreign: true,
      words: `was in use when its gateway ended, and ${name} is not the log that it was written with`,
      remedy: bringBack,
    }
  if (log.bytes >= mark.bytes) return null
  return {
    foreign: false,
    words: `was in use when its gateway ended, and its log ${name} is cut off or damaged: ${log.bytes} of ${mark.bytes} bytes are whole`,
    remedy: bringBack,
  }
}

/** Whether its process has not closed it. */
async function inUse(path: string): Promise<boolean> {
  const file = await open(path, 'r')
  try {
    const id = Buffer.alloc(4)
    const { bytesRead } = await file.read(id, 0, 4, APPLICATION_ID_AT)
    return bytesRead === 4 && id.readUInt32BE(0) === IN_USE_ID
  } finally {
    await file.close()
  }
}

/** Has a copy of a file in use, taken when nothing was in its log, say that it is whole by itself. */
export async function markWhole(copy: FileHandle): Promise<void> {
  const id = Buffer.alloc(4)
  id.writeUInt32BE(APPLICATION_ID)
  await copy.write(id, 0, id.length, APPLICATION_ID_AT)
}
