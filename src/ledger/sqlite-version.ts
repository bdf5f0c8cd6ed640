import { openDatabase } from './database.js'

/** Of the SQLite that is built in: `3.53.2`. */
export function sqliteVersion(): string {
  const db = openDatabase(':memory:')
  try {
    return db.prepare('SELECT sqlite_version()').pluck().get() as string
  } finally {
    db.close()
  }
}
