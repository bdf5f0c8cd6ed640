import Database from 'better-sqlite3'

/*
 * better-sqlite3 12, compiled for a Node.js from 24.2x on, aborts the process when one of its objects is collected as garbage outside of a
 * call: their destructor asks for an environment that is not there (`RemoveEnvironmentCleanupHook: Assertion failed: (env) != nullptr`).
 * Version 13 has no such objects, but does not run on Node.js 20. So none of them is ever let go: a process has few databases, each SQL
 * text is prepared once, and nothing is read by `iterate`, which makes an object each time.
 */
const kept: Database.Database[] = []

/** Opens a database, of a file or of its bytes. `prepare` gives the same statement for the same text, for as long as the process lives: one text, one use. */
export function openDatabase(path: string | Buffer, options: Database.Options = {}): Database.Database {
  const db = new Database(path, options)
  kept.push(db)
  const statements = new Map<string, Database.Statement>()
  const prepare = db.prepare.bind(db)
  const prepared = (sql: string): Database.Statement => {
    let statement = statements.get(sql)
    if (statement === undefined) {
      statement = prepare(sql)
      statements.set(sql, statement)
    }
    return statement
  }
  const pragma = (source: string, { simple = false }: Database.PragmaOptions = {}): unknown => {
    const statement = prepared(`PRAGMA ${source}`)
    if (!statement.reader) return statement.run()
    const rows = statement.raw().all() as unknown[][]
    if (simple) return rows[0]?.[0]
    const names = statement.columns().map(column => column.name)
    return rows.map(row => Object.fromEntries(names.map((name, i) => [name, row[i]])))
  }
  Object.defineProperties(db, { prepare: { value: prepared }, pragma: { value: pragma } })
  return db
}

/** Whether this process has a database open: whoever closes another descriptor of its file drops SQLite's locks on it. */
export function isOpenHere(path: string): boolean {
  return kept.some(db => db.open && db.name === path)
}
