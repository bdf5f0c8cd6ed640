import { checkPrice, readPrice } from './amounts.js'
import type { Model, ProviderSettings } from './config.js'
import { parseMoment } from './dates.js'
import type { ModelDraft, Section } from './draft.js'
import type { Findings } from './findings.js'
import { type KnownModel, knownModels } from './known-models.js'
import { readOptions } from './options.js'
import type { Path } from './problems.js'
import type { ModelNames } from './references.js'
import { didYouMean } from './suggest.js'
import { readTargets } from './targets.js'

/** What a model without any figure holds for an answer, in tokens. */
const DEFAULT_MAX_TOKENS = 2048

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
    const price = readPrice(findings, draft.price, [...path, 'price'])
    checkCaps(findings, draft, path)
    const fallback = readFallback(findings, draft, id, names)
    if (provider === undefined) continue
    const surfaces = surfacesOf(findings, draft, provider, providers)
    checkSurfaces(findings, draft, provider, surfaces, path)
    checkPrice(findings, draft.price, draft.surfaces ?? surfaces, [...path, 'price'])
    const model: Model = {
      id,
      provider,
      upstream,
      price,
      max_output_tokens: draft.max_output_tokens,
      default_max_tokens: draft.default_max_tokens ?? Math.min(DEFAULT_MAX_TOKENS, draft.max_output_tokens ?? DEFAULT_MAX_TOKENS),
      context: draft.context,
      tokenizer: draft.tokenizer,
      parameters: draft.parameters,
      surfaces: draft.surfaces,
      attempts: draft.attempts,
      fallback,
      ...(draft.cap === undefined ? {} : { cap: draft.cap }),
      created: readCreated(findings, draft.created, path),
      options: readOptions(findings, [...path, 'options'], provider.kind, findings.source.kinds.get(provider.kind)?.modelOptions),
    }
    const targets = readTargets(findings, draft, model, { providers, names, written, known })
    models.set(id, targets === null ? model : { ...model, targets })
  }
  checkFallbacks(findings, models)
  return models
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
function surfacesOf(
  { source: { kinds } }: Findings,
  draft: ModelDraft,
  provider: ProviderSettings,
  providers: ReadonlyMap<string, ProviderSettings>,
): string[] {
  const answering = draft.targets?.map(target => providers.get(target.provider ?? '')) ?? [provider]
  return [...new Set(answering.flatMap(one => (one === undefined ? [] : (kinds.get(one.kind)?.surfaces ?? []))))]
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
