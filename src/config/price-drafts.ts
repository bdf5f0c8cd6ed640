import type { Price } from './config.js'
import type { Draft, MoneyDraft, PriceDraft, Section } from './draft.js'
import type { Findings } from './findings.js'
import { parseDecimal, toRial } from './prices.js'
import type { Path } from './problems.js'
import { didYouMean } from './suggest.js'

const GENERATIVE = new Set(['chat', 'completions'])

/** A price, and where it stands: with its model, or in `prices`. */
export interface PriceAt {
  readonly price: 'free' | PriceDraft | undefined
  readonly path: Path
}

/** `null` is free. What is wrong with it is in `findings`. */
export function readPrice(findings: Findings, { price, path }: PriceAt): Price | null {
  if (price === undefined || price === 'free') return null
  const read = (name: 'input' | 'cached_input' | 'output' | 'request') => {
    const amount = price[name]
    return amount === undefined ? undefined : readMoney(findings, amount, [...path, name], path)
  }
  const foreign = [price.input, price.cached_input, price.output, price.request].some(amount => typeof amount === 'object')
  if (price.markup !== undefined && !foreign) {
    findings.wrongName([...path, 'markup'], 'changes nothing: no amount here is in another currency')
  }
  const input = read('input')
  return {
    input: input ?? 0n,
    cached_input: read('cached_input') ?? input ?? 0n,
    output: read('output') ?? 0n,
    request: read('request') ?? 0n,
  }
}

/** What nothing would be charged for, without the file saying so. */
export function checkPrice(findings: Findings, { price, path }: PriceAt, surfaces: readonly string[]): void {
  if (price === undefined) return
  const missing = missingFields(findings, path, surfaces)
  if (missing.includes('input')) findings.wrong(path, '"input" is missing (0 where it costs nothing)')
  if (missing.includes('output')) {
    findings.wrong(path, '"output" is missing (0 where it costs nothing; or give `surfaces` that generate no text)')
  }
}

/** What a price lacks for these surfaces, as it is written: what the schema has found wrong is absent from a draft, but not missing. */
export function missingFields(findings: Findings, path: Path, surfaces: readonly string[]): ('input' | 'output')[] {
  const written = findings.source.raw(path)
  const has = (name: string) => findings.source.raw([...path, name]) !== undefined
  // `free`, as a variable may say it too, or something that is wrong in other ways.
  if (written !== undefined && written !== null && !isPlainMap(written)) return []
  if (has('request')) return []
  const needed = surfaces.some(surface => GENERATIVE.has(surface)) ? (['input', 'output'] as const) : (['input'] as const)
  return needed.filter(name => !has(name))
}

/** The prices of the file, none where they could not be read. */
export function pricesOf({ prices }: Pick<Draft, 'prices'>): Section<'free' | PriceDraft> {
  return typeof prices === 'string' ? {} : prices
}

/** Whole Rial. The text of the file is what is converted, never the float that it was read as. */
function readMoney(findings: Findings, amount: MoneyDraft, path: Path, price: Path): bigint {
  if (typeof amount === 'number') return BigInt(amount)
  const { source } = findings
  const [currency] = Object.keys(amount)
  // The schema has told why there is none left.
  if (currency === undefined) return 0n
  const rates = findings.names('rates')
  if (!rates.has(currency)) {
    const known = rates.size === 0 ? ': rates: {usd: 1050000} would be one for usd' : didYouMean(currency, rates)
    findings.wrongName([...path, currency], `there is no rate for ${JSON.stringify(currency)}${known}`)
    return 0n
  }
  const decimal = (at: Path) => {
    const value = parseDecimal(source.text(at) ?? '1')
    if (value === null && typeof source.raw(at) === 'number') findings.wrongOnce(at, 'must be written as a decimal number, such as 2.50')
    return value
  }
  const own = [...price, 'markup']
  const value = decimal([...path, currency])
  const rate = decimal(['rates', currency])
  const markup = decimal(source.text(own) === undefined ? ['markup'] : own)
  if (value === null || rate === null || markup === null) return 0n
  const rial = toRial(value, rate, markup)
  if (rial <= BigInt(Number.MAX_SAFE_INTEGER)) return rial
  findings.wrong([...path, currency], `comes to ${rial} Rial; the most is ${Number.MAX_SAFE_INTEGER}`)
  return 0n
}

function isPlainMap(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
}
