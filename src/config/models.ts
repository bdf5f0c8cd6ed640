import type { Model, ProviderSettings } from './config.js'
import { parseMoment } from './dates.js'
import type { Draft, ModelDraft } from './draft.js'
import type { Findings } from './findings.js'
import { type Included, surfacesOf } from './included.js'
import type { KnownModel, KnownModels } from './known-models.js'
import { readOptions } from './options.js'
import { checkPrice, type PriceAt, pricesOf, readPrice } from './price-drafts.js'
import type { Path } from './problems.js'
import type { ModelNames } from './references.js'
import { readTimer } from './sections.js'
import { didYouMean } from './suggest.js'
import { readTargets } from './targets.js'
import { isFamily } from './tokenizer-families.js'

/** What a model without any figure holds for an answer, in tokens. */
const DEFAULT_MAX_TOKENS = 2048

export interface ModelContext {
  readonly providers: ReadonlyMap<string, ProviderSettings>
  readonly names: ModelNames
  readonly known: KnownModels
  /** A model of which nothing is said. */
  readonly blank: ModelDraft
  readonly included: Included['served']
}

/**
 * The models of the file, then those of the catalog, by identifier. What is wrong with them is in `findings`; a model whose provider is
 * wrong is left out.
 */
export function readModels(findings: Findings, draft: Pick<Draft, 'models' | 'prices'>, context: ModelContext): Map<string, Model> {
  const { providers, names, known, blank, included } = context
  const models = new Map<string, Model>()
  for (const [id, written] of Object.entries(draft.models ?? {})) {
    const path = ['models', id]
    const [prefix] = id.split('/', 1) as [string]
    if (!names.providers.has(prefix)) {
      findings.wrongName(path, `there is no provider ${JSON.stringify(prefix)}${didYouMean(prefix, names.providers)}`)
    }
    const provider = providers.get(prefix)
    const upstream = written.upstream ?? id.slice(prefix.length + 1)
    const whole = provider === undefined ? written : completed(findings, written, known.of(provider.kind, upstream), path)
    const priced = priceOf(findings, draft, id, path)
    checkCaps(findings, whole, path)
    const fallback = readFallback(findings, whole, id, names)
    const price = readPrice(findings, priced)
    if (provider === undefined) continue
    const surfaces = answeredBy(findings, whole, provider, providers)
    checkSurfaces(findings, whole, provider, surfaces, path)
    checkPrice(findings, priced, whole.surfaces ?? surfaces)
    const model: Model = { ...modelOf(findings, id, whole, path, { provider, upstream }), price, fallback }
    const targets = readTargets(findings, whole, model, { providers, names, written, known })
    models.set(id, targets === null ? model : { ...model, targets })
  }
  for (const [id, { provider, upstream, known: facts, surfaces }] of included) {
    const whole = { ...blank, ...facts, surfaces }
    const path = ['prices', id]
    const price = readPrice(findings, { price: pricesOf(draft)[id], path })
    models.set(id, { ...modelOf(findings, id, whole, ['models', id], { provider, upstream }), price, fallback: [] })
  }
  checkFallbacks(findings, models)
  return models
}

function modelOf(
  findings: Findings,
  id: string,
  draft: ModelDraft,
  path: Path,
  { provider, upstream }: Pick<Model, 'provider' | 'upstream'>,
): Omit<Model, 'price' | 'fallback'> {
  return {
    id,
    provider,
    upstream,
    max_output_tokens: draft.max_output_tokens,
    default_max_tokens: draft.default_max_tokens ?? Math.min(DEFAULT_MAX_TOKENS, draft.max_output_tokens ?? DEFAULT_MAX_TOKENS),
    context: draft.context,
    ...readTokenizer(findings, draft, path),
    estimate: draft.estimate,
    parameters: draft.parameters,
    surfaces: draft.surfaces,
    attempts: draft.attempts,
    ...(draft.cap === undefined ? {} : { cap: draft.cap }),
    created: readCreated(findings, draft.created, path),
    options: readOptions(findings, [...path, 'options'], provider.kind, findings.source.kinds.get(provider.kind)?.modelOptions),
  }
}

/** A family's name, or a module that counts. */
function readTokenizer(findings: Findings, { tokenizer, tokenizer_timeout }: ModelDraft, path: Path): Pick<Model, 'tokenizer' | 'counter'> {
  const timeout = readTimer(findings, tokenizer_timeout, [...path, 'tokenizer_timeout'])
  if (tokenizer === null || isFamily(tokenizer)) return { tokenizer }
  return { tokenizer: null, counter: { use: tokenizer, timeout, at: findings.source.at([...path, 'tokenizer']) } }
}

/** The model's own price, else that of `prices`. A model without any is an error, never a free pass. */
function priceOf(findings: Findings, draft: Pick<Draft, 'models' | 'prices'>, id: string, path: Path): PriceAt {
  const { source } = findings
  const own = [...path, 'price']
  if (source.raw(own) !== undefined) return { price: draft.models?.[id]?.price, path: own }
  const other = ['prices', id]
  if (source.raw(other) === undefined && source.pricesRead) findings.wrong(path, '"price" is missing')
  return { price: pricesOf(draft)[id], path: other }
}

/** What the file does not say of a model is what is known of it; what it says counts, `null` too. */
function completed(findings: Findings, draft: ModelDraft, known: KnownModel, path: Path): ModelDraft {
  const unsaid = Object.entries(known).filter(([name]) => findings.source.raw([...path, name]) === undefined)
  return unsaid.length === 0 ? draft : { ...draft, ...Object.fromEntries(unsaid) }
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

/** What can be asked of those who answer it. */
function answeredBy(
  findings: Findings,
  draft: ModelDraft,
  provider: ProviderSettings,
  providers: ReadonlyMap<string, ProviderSettings>,
): string[] {
  const answering = draft.targets?.map(target => providers.get(target.provider ?? '')) ?? [provider]
  return [...new Set(answering.flatMap(one => (one === undefined ? [] : surfacesOf(findings, null, one))))]
}

/** Surfaces that nobody who answers it has. */
function checkSurfaces(findings: Findings, draft: ModelDraft, provider: ProviderSettings, surfaces: readonly string[], path: Path): void {
  for (const [index, surface] of (draft.surfaces ?? []).entries()) {
    if (surfaces.includes(surface)) continue
    const who = draft.targets === null ? `the kind ${JSON.stringify(provider.kind)} has` : 'its targets have'
    findings.wrong(
      [...path, 'surfaces', index],
      `${who} no ${surface} (${draft.targets === null ? 'it has' : 'they have'} ${surfaces.join(', ')})`,
    )
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
  const { kinds } = findings.source
  const surfaces = (model: Model): readonly string[] =>
    model.surfaces ??
    (model.targets?.map(target => target.model) ?? [model]).flatMap(({ provider }) => kinds.get(provider.kind)?.surfaces ?? [])
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
