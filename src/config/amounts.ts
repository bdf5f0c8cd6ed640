import type { Price } from './config.js'
import type { MoneyDraft, PriceDraft } from './draft.js'
import type { Findings } from './findings.js'
import { parseDecimal, toRial } from './prices.js'
import type { Path } from './problems.js'
import { didYouMean } from './suggest.js'

const GENERATIVE = new Set(['chat', 'completions'])

/** What a price at a path comes to in Rial; `null`: free. */
export function readPrice(findings: Findings, draft: 'free' | PriceDraft | undefined, path: Path): Price | null {
  return draft === undefined || draft === 'free' ? null : readAmounts(findings, draft, path)
}

function readAmounts(findings: Findings, draft: PriceDraft, path: Path): Price {
  const read = (name: 'input' | 'cached_input' | 'output' | 'request') => {
    const amount = draft[name]
    return amount === undefined ? undefined : readMoney(findings, amount, [...path, name], path)
  }
  const foreign = [draft.input, draft.cached_input, draft.output, draft.request].some(amount => typeof amount === 'object')
  if (draft.markup !== undefined && !foreign) {
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

/** Whole Rial. The text of the file is what is converted, never the float that it was read as. */
function readMoney(findings: Findings, amount: MoneyDraft, path: Path, price: Path): bigint {
  if (typeof amount === 'number') return BigInt(amount)
  const { source } = findings
  const [currency] = Object.keys(amount) as [string]
  const rates = findings.names('rates')
  if (!rates.has(currency)) {
    const known = rates.size === 0 ? ': rates: {usd: 1050000} would be one for usd' : didYouMean(currency, rates)
    findings.wrongName([...path, currency], `there is no rate for ${JSON.stringify(currency)}${known}`)
    return 0n
  }
  const decimal = (at: Path) => {
    const value = parseDecimal(source.text(at) ?? '1')
    if (value === null && typeof source.raw(at) === 'number') findings.wrong(at, 'must be written as a decimal number, such as 2.50')
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

/** Reports a price that says nothing of what would be charged for on these surfaces. */
export function checkPrice(findings: Findings, price: 'free' | PriceDraft | undefined, surfaces: readonly string[], path: Path): void {
  if (price === undefined || price === 'free') return
  // What the schema has found wrong is absent from the draft, but not missing.
  const missing = (name: string) => findings.source.raw([...path, name]) === undefined
  if (!missing('request')) return
  if (missing('input')) findings.wrong(path, '"input" is missing (0 where it costs nothing)')
  if (surfaces.some(surface => GENERATIVE.has(surface)) && missing('output')) {
    findings.wrong(path, '"output" is missing (0 where it costs nothing; or give `surfaces` that generate no text)')
  }
}
