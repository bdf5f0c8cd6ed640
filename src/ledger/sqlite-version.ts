import Database from 'better-sqlite3'

/** Of the SQLite that is built in: `3.53.2`. */
export function sqliteVersion(): string {
  const db = new Database(':memory:')
  try {
    return db.prepare('SELECT sqlite_version()').pluck().get() as string
  } finally {
    db.close()
  }
}
