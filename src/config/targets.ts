import type { Model, ModelTarget, ProviderSettings } from './config.js'
import type { ModelDraft } from './draft.js'
import type { Findings } from './findings.js'
import type { KnownModels } from './known-models.js'
import { readOptions } from './options.js'
import { checkPrice, readPrice } from './price-drafts.js'
import type { ModelNames } from './references.js'
import { checkReference } from './references.js'

interface Where {
  readonly providers: ReadonlyMap<string, ProviderSettings>
  readonly names: ModelNames
  /** The model as the file has it, without what is known of it at its own provider. */
  readonly written: ModelDraft
  readonly known: KnownModels
}

/** The places where a model is answered; `null` where its own provider is the only one. What is wrong with them is in `findings`. */
export function readTargets(findings: Findings, draft: ModelDraft, model: Model, where: Where): ModelTarget[] | null {
  if (draft.targets === null) return null
  const { kinds } = findings.source
  const targets: ModelTarget[] = []
  for (const [index, target] of draft.targets.entries()) {
    const path = ['models', model.id, 'targets', index]
    if (target.provider === undefined) continue
    checkReference(findings, [...path, 'provider'], 'provider', target.provider, where.names.providers)
    const provider = where.providers.get(target.provider)
    // Of an unknown kind: that has been said where the provider stands.
    if (provider === undefined) continue
    const upstream = target.upstream ?? model.upstream
    const name = `${provider.name}/${upstream}`
    if (targets.some(other => other.name === name)) findings.wrong(path, `is ${name}, which stands in the list already`)
    const surfaces = kinds.get(provider.kind)?.surfaces ?? []
    const asked = model.surfaces?.filter(surface => surfaces.includes(surface)) ?? surfaces
    if (asked.length === 0) {
      findings.wrong(
        [...path, 'provider'],
        `its kind ${JSON.stringify(provider.kind)} answers none of ${(model.surfaces ?? []).join(', ')}`,
      )
    }
    const priced = { price: target.price, path: [...path, 'price'] }
    const own = findings.source.raw(priced.path) !== undefined
    const price = own ? readPrice(findings, priced) : model.price
    if (own) checkPrice(findings, priced, asked)
    const cap = where.written.cap ?? where.known.of(provider.kind, upstream).cap
    const settings = findings.source.raw([...path, 'options'])
    const inherits = (settings === undefined || settings === null) && provider.kind === model.provider.kind
    const options = inherits
      ? model.options
      : readOptions(findings, [...path, 'options'], provider.kind, kinds.get(provider.kind)?.modelOptions)
    const { cap: _, ...rest } = model
    targets.push({
      name,
      weight: target.weight,
      model: { ...rest, provider, upstream, price, ...(cap === undefined ? {} : { cap }), options },
    })
  }
  if (targets.length > 0 && targets.every(({ weight }) => weight === 0))
    findings.wrong(['models', model.id, 'targets'], 'every weight is 0: one of them must come first')
  return targets
}
