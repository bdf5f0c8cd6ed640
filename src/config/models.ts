import type { Model, Price, ProviderSettings } from './config.js'
import { parseMoment } from './dates.js'
import type { ModelDraft, MoneyDraft, PriceDraft, Section } from './draft.js'
import type { Findings } from './findings.js'
import { type KnownModel, knownModels } from './known-models.js'
import { parseDecimal, toRial } from './prices.js'
import type { Path } from './problems.js'
import type { ModelNames } from './references.js'
import { conform } from './schema.js'
import { didYouMean } from './suggest.js'

/** What a model without any figure holds for an answer, in tokens. */
const DEFAULT_MAX_TOKENS = 2048
const GENERATIVE = new Set(['chat', 'completions'])

/** The models of the file, by identifier. What is wrong with them is in `findings`; a model whose provider is wrong is left out. */
export function readModels(
  findings: Findings,
  drafts: Section<ModelDraft>,
  providers: ReadonlyMap<string, ProviderSettings>,
  names: ModelNames,
): Map<string, Model> {
  const models = new Map<string, Model>()
  const known = knownModels()
  for (const [id, written] of Object.entries(drafts)) {
    const path = ['models', id]
    const [prefix] = id.split('/', 1) as [string]
    if (!names.providers.has(prefix)) {
      findings.wrongName(path, `there is no provider ${JSON.stringify(prefix)}${didYouMean(prefix, names.providers)}`)
    }
    const provider = providers.get(prefix)
    const upstream = written.upstream ?? id.slice(prefix.length + 1)
    const draft = provider === undefined ? written : completed(findings, written, known(provider.kind, upstream), path)
    const price = draft.price === undefined || draft.price === 'free' ? null : readPrice(findings, draft.price, [...path, 'price'])
    checkCaps(findings, draft, path)
    const fallback = readFallback(findings, draft, id, names)
    if (provider === undefined) continue
    checkSurfaces(findings, draft, provider, path)
    models.set(id, {
      id,
      provider,
      upstream,
      price,
      max_output_tokens: draft.max_output_tokens,
      default_max_tokens: draft.default_max_tokens ?? Math.min(DEFAULT_MAX_TOKENS, draft.max_output_tokens ?? DEFAULT_MAX_TOKENS),
      context: draft.context,
      tokenizer: draft.tokenizer,
      estimate: draft.estimate,
      parameters: draft.parameters,
      surfaces: draft.surfaces,
      fallback,
      ...(draft.cap === undefined ? {} : { cap: draft.cap }),
      created: readCreated(findings, draft.created, path),
      options: readOptions(findings, [...path, 'options'], provider.kind, findings.source.kinds.get(provider.kind)?.modelOptions),
    })
  }
  checkFallbacks(findings, models)
  return models
}

/** What the file does not say of a model is what is known of it; what it says counts, `null` too. */
function completed(findings: Findings, draft: ModelDraft, known: KnownModel, path: Path): ModelDraft {
  const unsaid = Object.entries(known).filter(([name]) => findings.source.raw([...path, name]) === undefined)
  return unsaid.length === 0 ? draft : { ...draft, ...Object.fromEntries(unsaid) }
}

/** The kind's own settings at a path, held against the schema that the kind has for them. */
export function readOptions(
  findings: Findings,
  path: Path,
  kind: string,
  schema: Parameters<typeof conform>[0] | undefined,
): Readonly<Record<string, unknown>> {
  const given = findings.source.raw(path) ?? {}
  if (typeof given !== 'object') return {}
  if (schema === undefined) {
    if (Object.keys(given).length > 0) findings.wrong(path, `the kind ${JSON.stringify(kind)} has no such settings`)
    return {}
  }
  const { value, problems } = conform(schema, given, path)
  findings.problems.push(...problems)
  return (value ?? {}) as Readonly<Record<string, unknown>>
}

function readPrice(findings: Findings, draft: PriceDraft, path: Path): Price {
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

function checkCaps(findings: Findings, draft: ModelDraft, path: Path): void {
  const { max_output_tokens: most, default_max_tokens: held, context } = draft
  if (held !== undefined && most !== null && held > most) {
    findings.wrong([...path, 'default_max_tokens'], `must not be above max_output_tokens, which is ${most}`)
  }
  if (most !== null && context !== null && most > context) {
    findings.wrong([...path, 'max_output_tokens'], `must not be above context, which is ${context}`)
  }
}

/** Surfaces that the kind has not, and surfaces that nothing would be charged for without the file saying so. */
function checkSurfaces(findings: Findings, draft: ModelDraft, provider: ProviderSettings, path: Path): void {
  const surfaces = findings.source.kinds.get(provider.kind)?.surfaces ?? []
  for (const [index, surface] of (draft.surfaces ?? []).entries()) {
    if (!surfaces.includes(surface)) {
      findings.wrong(
        [...path, 'surfaces', index],
        `the kind ${JSON.stringify(provider.kind)} has no ${surface} (it has ${surfaces.join(', ')})`,
      )
    }
  }
  const { price } = draft
  if (price === undefined || price === 'free') return
  // What the schema has found wrong is absent from the draft, but not missing.
  const missing = (name: string) => findings.source.raw([...path, 'price', name]) === undefined
  if (!missing('request')) return
  const generates = (draft.surfaces ?? surfaces).some(surface => GENERATIVE.has(surface))
  if (missing('input')) findings.wrong([...path, 'price'], '"input" is missing (0 where it costs nothing)')
  if (generates && missing('output')) {
    findings.wrong([...path, 'price'], '"output" is missing (0 where it costs nothing; or give `surfaces` that generate no text)')
  }
}

function readFallback(findings: Findings, draft: ModelDraft, id: string, names: ModelNames): string[] {
  const fallback: string[] = []
  for (const [index, name] of (draft.fallback ?? []).entries()) {
    const path = ['models', id, 'fallback', index]
    const target = names.resolve(name, path)
    if (target === id) findings.wrong(path, 'is the model itself')
    else if (target !== null && fallback.includes(target)) findings.wrong(path, `is ${target}, which stands in the list already`)
    else if (target !== null) fallback.push(target)
  }
  return fallback
}

/** A fallback that answers nothing that the model answers could never help. */
function checkFallbacks(findings: Findings, models: ReadonlyMap<string, Model>): void {
  const surfaces = (model: Model) => model.surfaces ?? findings.source.kinds.get(model.provider.kind)?.surfaces ?? []
  for (const model of models.values()) {
    for (const id of model.fallback) {
      const target = models.get(id)
      if (target === undefined || surfaces(model).some(surface => surfaces(target).includes(surface))) continue
      findings.wrong(['models', model.id, 'fallback'], `${id} answers none of ${surfaces(model).join(', ')}`)
    }
  }
}

function readCreated(findings: Findings, text: string, path: Path): number {
  const moment = parseMoment(text, 'UTC')
  if (moment === null) findings.wrong([...path, 'created'], 'no calendar has this day')
  return (moment ?? 0) / 1000
}
