import { existsSync } from 'node:fs'
import Database from 'better-sqlite3'
import { CalibrationTable, type KeptCalibration } from '../ledger/calibration-book.js'
import { connectTo } from './client.js'
import { socketOf } from './place.js'

/**
 * What providers' reports have taught, as the ledger keeps it: asked of the gateway that runs on it, else read from the file, which is not
 * changed. Empty where there is no ledger. Throws an Error where it can not be read.
 */
export async function taught(path: string): Promise<KeptCalibration[]> {
  if (path === ':memory:' || !existsSync(path)) return []
  const socket = socketOf(path)
  const remote = socket === null ? null : await connectTo(socket)
  if (remote !== null) return remote.ask('calibrations', {})
  const db = new Database(path, { readonly: true, fileMustExist: true, timeout: 1000 })
  try {
    return new CalibrationTable(db).all()
  } finally {
    db.close()
  }
}
