import { hash } from 'node:crypto'

/**
 * 64 bits of the SHA-256 of some values, which tell whether they are those that were written: of their kinds, too, and each told apart from the next by its
 * length. What SQLite gives back has the digest of what it was given, where that was well-formed.
 */
export function digest(...values: readonly (string | bigint)[]): bigint {
  let text = ''
  for (const value of values) text += `${typeof value} ${String(value).length} ${value} `
  return hash('sha256', text, 'buffer').readBigInt64BE()
}

/** What the digests of several things come to, in any order: one more is added, one that no longer holds is taken away. In 64 bits, as SQLite keeps it. */
export function sumOf(...digests: readonly bigint[]): bigint {
  return BigInt.asIntN(
    64,
    digests.reduce((sum, one) => sum + one, 0n),
  )
}
