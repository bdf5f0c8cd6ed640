import { link, rename, rm, stat } from 'node:fs/promises'
import { dirname, isAbsolute } from 'node:path'
import { syncFolder } from '../ledger/folder.js'
import type { SqliteLedger } from '../ledger/sqlite.js'
import { RequestError } from './wire.js'

/**
 * Writes a consistent copy of a ledger while others go on. The name appears when the copy is whole and on the disk; a file that is
 * there already stays as it is. Throws a RequestError where the path can not be written.
 */
export async function copyLedger(ledger: Pick<SqliteLedger, 'backup'>, path: string): Promise<{ readonly bytes: number }> {
  if (!isAbsolute(path)) throw new RequestError('the path of a backup is absolute')
  if (await exists(path)) throw new RequestError(`${path} is there already: a backup overwrites nothing`)
  const unfinished = `${path}.${process.pid}-${Date.now()}.part`
  try {
    await ledger.backup(unfinished)
    await reveal(unfinished, path)
  } catch (error) {
    const remedy = REMEDIES[(error as NodeJS.ErrnoException).code ?? '']
    throw remedy === undefined ? error : new RequestError(`${path} ${remedy}`, { cause: error })
  } finally {
    await rm(unfinished, { force: true })
    await rm(`${unfinished}-journal`, { force: true })
  }
  await syncFolder(dirname(path))
  return { bytes: (await stat(path)).size }
}

const REMEDIES: Readonly<Record<string, string>> = {
  EEXIST: 'is there already: a backup overwrites nothing',
  ENOENT: 'can not be written: its folder does not exist',
  ENOTDIR: 'can not be written: a part of that path is not a folder',
  EACCES: 'can not be written by the user that has the ledger open',
  EROFS: 'can not be written: that disk is read-only',
  ENOSPC: 'can not be written: the disk is full',
  SQLITE_FULL: 'can not be written: the disk is full',
  EPERM: 'can not be written by the user that has the ledger open',
}

async function reveal(unfinished: string, path: string): Promise<void> {
  try {
    // Unlike a rename, a link fails where another backup was faster.
    await link(unfinished, path)
  } catch (error) {
    if (!/^(EPERM|ENOTSUP|EOPNOTSUPP|ENOSYS)$/.test((error as NodeJS.ErrnoException).code ?? '')) throw error
    // A disk without hard links: FAT, some network disks.
    await rename(unfinished, path)
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
}
