import type { Amount, UsageRecord } from '../ledger/ledger.js'

/** Fields that hold amounts: on the wire they are decimal text, since JSON readers round what is beyond 2^53. */
const AMOUNTS: ReadonlySet<string> = new Set([
  'amount',
  'credited',
  'posted',
  'pending',
  'held_rial',
  'cost_rial',
  'overrun_rial',
  'input_tokens',
  'cached_input_tokens',
  'output_tokens',
  'reasoning_tokens',
])

/** A value of the control socket as JSON text. */
export function encode(value: unknown): string {
  return JSON.stringify(value, (_, field: unknown) => (typeof field === 'bigint' ? String(field) : field)) ?? 'null'
}

/** What `encode` was given. Throws a SyntaxError where the text is no such JSON. */
export function decode(text: string): unknown {
  return JSON.parse(text, (name, field: unknown) => (typeof field === 'string' && AMOUNTS.has(name) ? amount(field) : field))
}

function amount(text: string): Amount {
  if (!/^-?[0-9]{1,40}$/.test(text)) throw new SyntaxError(`${JSON.stringify(text.slice(0, 50))} is no amount`)
  return BigInt(text)
}

/** As `encode` and `decode` do it, without a look at every field: there may be millions of records. */
export function encodeRecord(record: UsageRecord): string {
  const { held_rial, cost_rial, overrun_rial } = record
  return JSON.stringify({ ...record, held_rial: String(held_rial), cost_rial: digits(cost_rial), overrun_rial: digits(overrun_rial) })
}

export function decodeRecord(line: string): UsageRecord {
  const record = JSON.parse(line) as UsageRecord
  const { held_rial, cost_rial, overrun_rial } = record as { readonly [Field in keyof UsageRecord]: unknown }
  return { ...record, held_rial: amount(String(held_rial)), cost_rial: read(cost_rial), overrun_rial: read(overrun_rial) }
}

function read(rial: unknown): Amount | null {
  return rial === null ? null : amount(String(rial))
}

function digits(rial: Amount | null): string | null {
  return rial === null ? null : String(rial)
}

/** What was asked for can not be: the message says why. */
export class RequestError extends Error {
  override readonly name = 'RequestError'
}
