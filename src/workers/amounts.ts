import { deserialize, serialize } from 'node:v8'

/** An amount as JSON holds it exactly: a number, or its digits where a number would round. */
export type WireAmount = number | string

const MAX = BigInt(Number.MAX_SAFE_INTEGER)

export function amountOut(amount: bigint): WireAmount {
  return amount <= MAX && amount >= -MAX ? Number(amount) : String(amount)
}

export function amountIn(amount: WireAmount): bigint {
  return BigInt(amount)
}

/** Any plain value as text, exactly as it is: bigints, infinities and what is undefined too. Throws where there is a function in it. */
export function packed(value: unknown): string {
  return serialize(value).toString('base64')
}

export function unpacked(text: string): unknown {
  return deserialize(Buffer.from(text, 'base64'))
}
