import type Database from 'better-sqlite3'

/** What the reported inputs of a model have taught. */
export interface KeptCalibration {
  readonly model: string
  /** What its raw estimates are made by: others would teach something else. */
  readonly basis: string
  /** JSON. */
  readonly state: string
}

/** What models have taught, kept for the next start. */
export interface CalibrationBook {
  calibrations(): Promise<KeptCalibration[]>
  /** Each replaces what was kept of the same model and basis. */
  keep(kept: readonly KeptCalibration[]): Promise<void>
}

/** The table of calibrations. */
export class CalibrationTable {
  readonly #all: Database.Statement<[], KeptCalibration>
  readonly #put: Database.Statement<[string, string, string]>

  constructor(db: Database.Database) {
    this.#all = db.prepare('SELECT model, basis, state FROM calibrations ORDER BY model, basis')
    this.#put = db.prepare(
      'INSERT INTO calibrations (model, basis, state) VALUES (?, ?, ?) ON CONFLICT (model, basis) DO UPDATE SET state = excluded.state',
    )
  }

  all(): KeptCalibration[] {
    return this.#all.all()
  }

  put({ model, basis, state }: KeptCalibration): void {
    this.#put.run(model, basis, state)
  }
}
