import type { Amount } from '../ledger/ledger.js'

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

/** What was asked for can not be: the message says why. */
export class RequestError extends Error {
  override readonly name = 'RequestError'
}
