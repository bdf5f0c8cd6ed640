import type Database from 'better-sqlite3'
import { AMOUNT_MAX } from './cells.js'
import { DamagedFile } from './file-errors.js'
import type { AdmissionRecord, Amount, EndedBy, EndingRecord, Ends, RecordQuery, RecordState, UsageRecord, UsageSource } from './ledger.js'
import type { Part } from './parts.js'
import type { IdRange } from './timeline.js'

const ADMISSION = [
  'key',
  'account',
  'plan',
  'surface',
  'model',
  'provider',
  'stream',
  'client_request_id',
  'trace_id',
  'held_tokens',
  'held_rial',
  'price',
] as const satisfies readonly (keyof AdmissionRecord)[]

const ENDING = [
  'ended_at',
  'ended_by',
  'usage_source',
  'input_tokens',
  'cached_input_tokens',
  'output_tokens',
  'reasoning_tokens',
  'cost_rial',
  'overrun_rial',
  'status',
  'code',
  'upstream_request_id',
  'attempts',
  'ttft_ms',
  'duration_ms',
] as const satisfies readonly (keyof EndingRecord)[]

const ENDED_BY: ReadonlySet<EndedBy> = new Set(['provider', 'client', 'upstream_error', 'drain', 'recovery'])
const SOURCES: ReadonlySet<UsageSource> = new Set(['provider', 'counted', 'estimate', 'none'])
const RIAL: ReadonlySet<string> = new Set(['held_rial', 'cost_rial', 'overrun_rial'])

type Value = string | number | bigint | null
type Row = Readonly<Record<string, string | bigint | null>>

/** What an open hold has pending on one counter (by its id), as its row keeps it. */
export type ClaimEntry = readonly [counter: number, amount: Amount, ends: Ends]
/** What an ended one has posted on a counter. */
export type PostedEntry = readonly [counter: number, amount: Amount]

export interface HoldRow {
  readonly id: string
  readonly at: number
  readonly claims: readonly ClaimEntry[]
  readonly record: AdmissionRecord
}

/** Rows of usage: those of open holds, and those of ended ones, which never change again. */
export class Records {
  readonly #insertHold: Database.Statement<Value[]>
  readonly #deleteHold: Database.Statement<[string]>
  readonly #holds: Database.Statement<[], Row>
  readonly #insert: Database.Statement<Value[]>
  readonly #exists: Database.Statement<[string], number>
  readonly #chunkEnd: Database.Statement<[string, string, number], string>
  readonly #chunk: Database.Statement<[Readonly<Record<string, Value>>], Row>
  readonly #posted: Database.Statement<[string, number], [string, string]>
  #last: string

  constructor(db: Database.Database) {
    const hold = ['id', 'at', 'claims', ...ADMISSION]
    const record = ['id', 'at', 'state', 'posted', ...ADMISSION, ...ENDING]
    this.#insertHold = db.prepare(insert('holds', hold))
    this.#deleteHold = db.prepare('DELETE FROM holds WHERE id = ?')
    this.#holds = db.prepare<[], Row>(`SELECT ${hold.join(', ')} FROM holds ORDER BY id`).safeIntegers()
    this.#insert = db.prepare(insert('records', record))
    this.#exists = db.prepare<[string], number>('SELECT 1 FROM records WHERE id = ?').pluck()
    this.#chunkEnd = db
      .prepare<[string, string, number], string>('SELECT id FROM records WHERE id >= ? AND id < ? ORDER BY id LIMIT 1 OFFSET ?')
      .pluck()
    this.#chunk = db
      .prepare<[Readonly<Record<string, Value>>], Row>(
        `SELECT ${record.filter(name => name !== 'posted').join(', ')} FROM records
          WHERE id >= @from AND id < @below AND at >= @since AND at < @until AND (@state IS NULL OR state = @state)
          AND (@key IS NULL OR key = @key) AND (@account IS NULL OR account = @account) AND (@model IS NULL OR model = @model)
          ORDER BY id`,
      )
      .safeIntegers()
    this.#posted = db.prepare<[string, number], [string, string]>('SELECT id, posted FROM records WHERE id > ? ORDER BY id LIMIT ?').raw()
    this.#last = db.prepare<[], string | null>('SELECT max(id) FROM records').pluck().get() ?? ''
  }

  /** The counters of its parts have ids by now. */
  hold({ id, at, record, parts }: Omit<HoldRow, 'claims'> & { readonly parts: readonly Part[] }): void {
    sound(id, record.held_tokens, record.held_rial)
    let claims = ''
    for (const { cell, amount, ends } of parts) claims += `${claims === '' ? '[' : ',['}${cell.id},${amount},"${ends}"]`
    const values: Value[] = [id, at, `[${claims}]`]
    addAdmission(values, record, record.provider, record.price)
    this.#insertHold.run(...values)
  }

  /** An open hold becomes an ended record. Throws before it has changed anything. */
  end(
    hold: { readonly id: string; readonly at: number; readonly record: AdmissionRecord },
    state: RecordState,
    posted: readonly PostedEntry[],
    ending: EndingRecord,
  ): void {
    const { input_tokens, cached_input_tokens, output_tokens, reasoning_tokens, cost_rial, overrun_rial, status } = ending
    sound(hold.id, input_tokens, cost_rial)
    sound(hold.id, cached_input_tokens, overrun_rial)
    sound(hold.id, output_tokens, 0n)
    sound(hold.id, reasoning_tokens, 0n)
    sound(hold.id, status, 0n)
    if (!ENDED_BY.has(ending.ended_by) || !SOURCES.has(ending.usage_source)) throw new RangeError(`${hold.id}: it can not end like this`)
    let entries = ''
    for (const [counter, amount] of posted) entries += `${entries === '' ? '[' : ',['}${counter},${amount}]`
    const values: Value[] = [hold.id, hold.at, state, `[${entries}]`]
    addAdmission(values, hold.record, ending.provider, ending.price)
    addEnding(values, ending)
    // First what a wrong value can make fail, so that its hold stays as it is.
    this.#insert.run(...values)
    this.#deleteHold.run(hold.id)
    if (hold.id > this.#last) this.#last = hold.id
  }

  /** Whether a hold of this id has ended. */
  ended(id: string): boolean {
    return id <= this.#last && this.#exists.get(id) !== undefined
  }

  /** All open holds, in the order of their ids. Throws a DamagedFile where one can not be read. */
  holds(): HoldRow[] {
    return this.#holds.all().map(holdOf)
  }

  /** The first id after the next `size` records of a range; `undefined` when there are no more. */
  chunkEnd({ from, below }: IdRange, size: number): string | undefined {
    return this.#chunkEnd.get(from, below, size)
  }

  /** The ended records of a range of ids that a query asks for. */
  chunk({ from, below }: IdRange, query: RecordQuery): UsageRecord[] {
    const { since = 0, until = Number.MAX_SAFE_INTEGER, state = null, key = null, account = null, model = null } = query
    return this.#chunk.all({ from, below, since, until, state, key, account, model }).map(recordOf)
  }

  /** What the records after an id have posted: at most `size` of them, by id. Throws where one can not be read. */
  posted(after: string, size: number): { readonly id: string; readonly posted: PostedEntry[] }[] {
    return this.#posted.all(after, size).map(([id, json]) => ({ id, posted: postedOf(id, json) }))
  }
}

/** Throws a RangeError where a count or an amount of Rial is not what a record can hold. */
function sound(id: string, count: number, rial: bigint): void {
  if (Number.isSafeInteger(count) && count >= 0 && typeof rial === 'bigint' && rial >= 0n && rial <= AMOUNT_MAX) return
  throw new RangeError(`${id}: a record holds whole numbers from 0 to ${AMOUNT_MAX}, not ${count} and ${rial}`)
}

function insert(table: string, columns: readonly string[]): string {
  return `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`
}

/** In the order of ADMISSION; with the provider and the price of whoever answered, where somebody has. */
function addAdmission(values: Value[], record: AdmissionRecord, provider: string, price: string): void {
  values.push(
    record.key,
    record.account,
    record.plan,
    record.surface,
    record.model,
    provider,
    record.stream ? 1 : 0,
    record.client_request_id,
    record.trace_id,
    record.held_tokens,
    record.held_rial,
    price,
  )
}

/** In the order of ENDING. By name: read by a name that varies, each field would cost as much as ten. */
function addEnding(values: Value[], ending: EndingRecord): void {
  values.push(
    ending.ended_at,
    ending.ended_by,
    ending.usage_source,
    ending.input_tokens,
    ending.cached_input_tokens,
    ending.output_tokens,
    ending.reasoning_tokens,
    ending.cost_rial,
    ending.overrun_rial,
    ending.status,
    ending.code,
    ending.upstream_request_id,
    ending.attempts,
    ending.ttft_ms,
    ending.duration_ms,
  )
}

function admissionOf(row: Row): AdmissionRecord {
  const fields = Object.fromEntries(ADMISSION.map(name => [name, fieldOf(name, row[name])]))
  return { ...(fields as unknown as AdmissionRecord), stream: row.stream === 1n }
}

/** What a hold says must be fit for the record that it becomes. */
function holdOf(row: Row): HoldRow {
  try {
    const id = text(row.id)
    const record = admissionOf(row)
    sound(id, record.held_tokens, record.held_rial)
    for (const name of ['surface', 'model', 'provider', 'price'] as const) text(record[name])
    return {
      id,
      at: Number(row.at),
      claims: (JSON.parse(text(row.claims)) as [number, number, Ends][]).map(([counter, amount, ends]) => [counter, BigInt(amount), ends]),
      record,
    }
  } catch (error) {
    throw new DamagedFile(`the open hold ${row.id} can not be read`, { cause: error })
  }
}

function recordOf(row: Row): UsageRecord {
  const ending = Object.fromEntries(ENDING.map(name => [name, fieldOf(name, row[name])])) as unknown as EndingRecord
  return {
    id: text(row.id),
    at: Number(row.at),
    state: text(row.state) as RecordState,
    ...admissionOf(row),
    ...ending,
    provider: text(row.provider),
    price: text(row.price),
  }
}

/** The record of an open hold: its second half is not known yet. */
export function heldRecord({
  id,
  at,
  record,
}: {
  readonly id: string
  readonly at: number
  readonly record: AdmissionRecord
}): UsageRecord {
  const nothing = Object.fromEntries(ENDING.map(name => [name, null])) as unknown as { readonly [Field in keyof EndingRecord]: null }
  return { id, at, state: 'held', ...nothing, ...record }
}

/** Whether a query asks for a record. */
export function asked(
  record: UsageRecord,
  { state, key, account, model, since = 0, until = Number.POSITIVE_INFINITY }: RecordQuery,
): boolean {
  if (record.at < since || record.at >= until) return false
  if (state !== undefined && record.state !== state) return false
  return (key ?? record.key) === record.key && (account ?? record.account) === record.account && (model ?? record.model) === record.model
}

function postedOf(id: string, json: string): PostedEntry[] {
  try {
    return (JSON.parse(json) as [number, number][]).map(([counter, amount]) => [counter, BigInt(amount)])
  } catch (error) {
    throw new DamagedFile(`record ${id} has posted ${json}`, { cause: error })
  }
}

function fieldOf(name: string, value: string | bigint | null | undefined): Value {
  if (typeof value === 'bigint') return RIAL.has(name) ? value : Number(value)
  return value ?? null
}

function text(value: string | bigint | null | undefined): string {
  if (typeof value !== 'string') throw new TypeError(`the ledger's file has ${JSON.stringify(String(value))} where a text belongs`)
  return value
}
