import type { Price } from '../config/config.js'
import type { Usage } from './usage.js'

/** What a price is multiplied with. Tokens; `cached` is the part of `input` that came from the provider's cache. */
export type Billed = Pick<Usage, 'input' | 'cached' | 'output'>

/** Those of the config, which do not change. */
const texts = new WeakMap<Price, string>()

/** A price as usage records keep it: JSON, enough to compute a cost again. */
export function priceText(price: Price | null): string {
  if (price === null) return 'null'
  let text = texts.get(price)
  if (text === undefined) {
    const { input, cached_input, output, request } = price
    text = `{"input":${input},"cached_input":${cached_input},"output":${output},"request":${request}}`
    texts.set(price, text)
  }
  return text
}

/** Prices are per this many tokens. */
const PER = 1_000_000n

/**
 * Whole Rial that a use of a model costs: the exact sum of its parts, rounded up once. `null` (free) costs nothing. `requests` counts how often
 * the price per request is due. Token counts are non-negative safe integers; more cached than input counts as all of it cached.
 */
export function cost(price: Price | null, usage: Billed, requests = 1n): bigint {
  if (price === null) return 0n
  const input = BigInt(usage.input)
  const cached = BigInt(Math.min(usage.cached, usage.input))
  const millionths = (input - cached) * price.input + cached * price.cached_input + BigInt(usage.output) * price.output
  return requests * price.request + (millionths + PER - 1n) / PER
}
