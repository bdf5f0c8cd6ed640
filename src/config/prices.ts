import type { Rational } from './config.js'

/**
 * The exact value of a decimal number as it is written: `2.50`, `1050000`, `1e-3`. `null` for anything else, for negative numbers, and for
 * exponents beyond ±30. Never by way of a float: 0.1 is one tenth.
 */
export function parseDecimal(text: string): Rational | null {
  const [, whole, small, exponent = '0'] = /^\+?(\d+)?(?:\.(\d*))?(?:[eE]([-+]?\d{1,3}))?$/.exec(text) ?? []
  const digits = `${whole ?? ''}${small ?? ''}`
  if (digits === '') return null
  const power = Number(exponent) - (small ?? '').length
  if (Math.abs(Number(exponent)) > 30 || digits.length > 60) return null
  return power < 0
    ? { numerator: BigInt(digits), denominator: 10n ** BigInt(-power) }
    : { numerator: BigInt(digits) * 10n ** BigInt(power), denominator: 1n }
}

/** amount × rate × markup, rounded up to whole Rial once, at the end. */
export function toRial(amount: Rational, rate: Rational, markup: Rational): bigint {
  const numerator = amount.numerator * rate.numerator * markup.numerator
  const denominator = amount.denominator * rate.denominator * markup.denominator
  return (numerator + denominator - 1n) / denominator
}
