import { UsageError } from '../commands/command.js'
import type { Amount } from '../ledger/ledger.js'

/**
 * An amount of money as people write it: digits, with `_` or `,` between groups of three or not at all (`1000000`, `1_000_000`, `1,000,000`).
 * Throws a UsageError for anything that could be read in two ways, or is no whole Rial above 0.
 */
export function parseRial(text: string): Amount {
  const digits = /^(?:[0-9]+|[0-9]{1,3}(?:_[0-9]{3})+|[0-9]{1,3}(?:,[0-9]{3})+)$/.test(text) ? text.replace(/[_,]/g, '') : undefined
  if (digits === undefined || digits.length > 30) {
    throw new UsageError(`${JSON.stringify(text)} is no amount: write whole Rial above 0, like 1000000, 1_000_000 or 1,000,000`)
  }
  const amount = BigInt(digits)
  if (amount === 0n) throw new UsageError('the amount is 0: write whole Rial above 0')
  if (amount > MOST) throw new UsageError(`${showAmount(amount)} Rial is more than a wallet can hold (${showAmount(MOST)})`)
  return amount
}

const MOST = BigInt(Number.MAX_SAFE_INTEGER)

/** An amount for people: `-1,234,567`. */
export function showAmount(amount: Amount | number): string {
  return String(amount).replace(/\B(?=([0-9]{3})+$)/g, ',')
}
