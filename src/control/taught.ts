import { existsSync } from 'node:fs'
import { CalibrationTable, type KeptCalibration } from '../ledger/calibration-book.js'
import { openDatabase } from '../ledger/database.js'
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
  const db = openDatabase(path, { readonly: true, fileMustExist: true, timeout: 1000 })
  try {
    return new CalibrationTable(db).all()
  } finally {
    db.close()
  }
}
