import { AMOUNT_MAX, type Cell } from './cells.js'
import type { Amount, Claim, Counter, Ends, Hold, Reading, Settlement } from './ledger.js'

/** A claim with the counter that it is asked of, and its ceiling as it is now. */
export interface Asked {
  readonly claim: Claim
  readonly cell: Cell
  readonly ceiling: Amount | null
}

export function readingOf({ claim, cell, ceiling }: Asked): Reading {
  return reading(claim.counter, cell, ceiling)
}

export function reading(counter: Counter, { posted, pending }: Pick<Cell, 'posted' | 'pending'>, ceiling: Amount | null): Reading {
  return { counter, ceiling, posted, pending }
}

/** What an open hold has pending on one counter, its claims of one kind added up. */
export interface Part {
  readonly cell: Cell
  readonly ends: Ends
  amount: Amount
}

/** Adds a claim on the cell to the parts. */
export function claimed(parts: Part[], cell: Cell, { amount, ends = 'measured' }: Hold['claims'][number]): void {
  for (const part of parts) {
    if (part.cell !== cell || part.ends !== ends) continue
    part.amount += amount
    return
  }
  parts.push({ cell, amount, ends })
}

/** What a part of a hold leaves on its counter when the hold ends; `actual` is `null` when it is released. */
export function postedBy(id: string, { cell, amount, ends }: Part, actual: Settlement['actual'] | null): Amount {
  if (ends === 'counted') return amount
  if (ends === 'released' || actual === null) return 0n
  const { meter } = cell.counter
  const measured = Object.hasOwn(actual, meter) ? actual[meter] : undefined
  if (measured === undefined) return amount
  checkAmount(id, meter, measured)
  return measured
}

/** Throws a RangeError. `id`: of the hold that the amount is for. */
export function checkAmount(id: string, meter: string, amount: Amount): void {
  if (typeof amount === 'bigint' && amount >= 0n && amount <= AMOUNT_MAX) return
  throw new RangeError(`${id}: ${meter}: an amount is a bigint from 0 to ${AMOUNT_MAX}, not ${String(amount)}`)
}

/**
 * Cuts what the parts leave behind to what their counters can still hold. A hold must end, whatever it and others have come to; a counter that is full then
 * admits nothing more.
 */
export function cutToRoom(parts: readonly Part[], amounts: Amount[]): void {
  for (let i = 0; i < parts.length; i++) {
    const { cell } = parts[i] as Part
    let room = AMOUNT_MAX - cell.posted
    for (let before = 0; before < i; before++) if ((parts[before] as Part).cell === cell) room -= amounts[before] as Amount
    if ((amounts[i] as Amount) > room) amounts[i] = room
  }
}
