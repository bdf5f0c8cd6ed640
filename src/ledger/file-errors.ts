import { AssertionError } from 'node:assert/strict'
import Database from 'better-sqlite3'
import { GatewayError } from '../errors.js'

/** Why a ledger's file is not opened, and what to do: for the operator. */
export function refusal(message: string): GatewayError {
  return new GatewayError('ledger_unavailable', `ledger: ${message}.`)
}

/** A ledger's file says what nobody has written to it: nothing in it can be relied on. */
export class DamagedFile extends Error {
  readonly what: string

  constructor(what: string, options?: ErrorOptions) {
    super(`the ledger's file is damaged: ${what}`, options)
    this.what = what
  }
}

/** What is wrong with a ledger's file, and what to do, for the operator. */
export function explained(path: string, error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  if (error instanceof DamagedFile)
    return new GatewayError('ledger_unavailable', `ledger: ${path} is damaged (${error.what}): ${RESTORE}.`, { cause: error })
  const { code = '', message } = error as NodeJS.ErrnoException
  const found = REMEDIES.find(([codes]) => codes.test(code))
  const words = found === undefined ? `cannot be opened (${message}): see to the cause, or choose another ledger.path` : found[1]
  return new GatewayError('ledger_unavailable', `ledger: ${path} ${words}.`, { cause: error })
}

const RESTORE = 'restore a backup of it (model-gateway ledger backup makes them)'
const REMEDIES: readonly (readonly [RegExp, string])[] = [
  [/^SQLITE_(BUSY|LOCKED)/, 'is open in another process: stop that gateway, or choose another ledger.path'],
  [/^SQLITE_NOTADB/, 'is no ledger (not an SQLite file): choose another ledger.path, or move the file away'],
  [/^SQLITE_CORRUPT/, `is damaged: ${RESTORE}`],
  [/^SQLITE_FULL|^ENOSPC|^EDQUOT/, 'cannot be written, the disk is full: make room, then start again'],
  [
    /^SQLITE_(READONLY|CANTOPEN|PERM)|^EACCES|^EPERM|^EROFS/,
    'cannot be written by this user: give it write access to the file and its folder, or choose another ledger.path',
  ],
  [/^ENOTDIR|^EISDIR|^EEXIST/, 'cannot be a file there, since a part of that path is not a folder: choose another ledger.path'],
]

/** Errors of one statement leave the transaction as it was before it; all others of SQLite do not. */
export function isBroken(error: unknown): boolean {
  if (error instanceof Database.SqliteError) return !/^SQLITE_(CONSTRAINT|TOOBIG|MISMATCH|RANGE)/.test(error.code)
  return error instanceof AssertionError || error instanceof DamagedFile
}
