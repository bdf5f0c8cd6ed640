import type { ProviderSettings } from './config.js'
import type { Draft } from './draft.js'
import type { Findings } from './findings.js'
import { type KnownModel, type KnownModels, makerOf } from './known-models.js'
import { missingFields } from './price-drafts.js'
import { didYouMean } from './suggest.js'

/** A model of the catalog that is served, as far as it is known. */
export interface IncludedModel {
  readonly provider: ProviderSettings
  readonly upstream: string
  readonly known: KnownModel
  /** `null`: all that its provider's kind has. */
  readonly surfaces: readonly string[] | null
}

/** A model of the catalog that is not served, and what its price lacks. */
export interface Unpriced {
  readonly id: string
  readonly missing: readonly string[]
}

/** What `catalog` adds to `models`, by identifier. */
export interface Included {
  readonly served: ReadonlyMap<string, IncludedModel>
  readonly unpriced: readonly Unpriced[]
}

/**
 * The models that `catalog` names by the file: each becomes `<provider>/<model>` at every provider that has the file's name, or is of that
 * kind at its own address. One that stands in `models` too is what that says. None is served without a price in `prices`.
 */
export function includedModels(
  findings: Findings,
  draft: Pick<Draft, 'catalog'>,
  providers: ReadonlyMap<string, ProviderSettings>,
  known: KnownModels,
): Included {
  const served = new Map<string, IncludedModel>()
  const unpriced = new Map<string, Unpriced>()
  const explicit = findings.names('models')
  // Most configs have no catalog, and need not look.
  const files = draft.catalog.length === 0 ? [] : known.names()
  for (const [index, name] of draft.catalog.entries()) {
    const path = ['catalog', index]
    if (!files.includes(name)) {
      findings.wrong(path, `there is no file of well-known models ${JSON.stringify(name)} (there are ${files.join(', ')})`)
      continue
    }
    const meant = [...providers.values()].filter(provider => isMeant(findings, provider, name))
    // Of a provider that is wrong, which is said where it stands, nobody knows whose models it has.
    if (meant.length === 0 && providers.size === findings.names('providers').size) {
      findings.wrong(path, `no provider has this name, or is of this kind at its own address`)
    }
    let count = 0
    for (const provider of meant) {
      for (const [upstream, facts] of known.all(name)) {
        const id = `${provider.name}/${upstream}`
        const surfaces = offered(findings, facts, provider)
        if (explicit.has(id)) count++
        if (explicit.has(id) || served.has(id) || unpriced.has(id) || surfaces?.length === 0) continue
        const missing = findings.source.pricesRead ? missingFields(findings, ['prices', id], surfacesOf(findings, surfaces, provider)) : []
        if (missing.length > 0) {
          unpriced.set(id, { id, missing })
          continue
        }
        served.set(id, { provider, upstream, known: facts, surfaces })
        count++
      }
    }
    if (meant.length > 0 && count === 0) {
      findings.warn(path, `none of these models has a price in prices, so that none is served; \`model-gateway check\` lists them`)
    }
  }
  warnOfUnknown(findings, new Set([...explicit, ...served.keys(), ...unpriced.keys()]), providers)
  return { served, unpriced: [...unpriced.values()] }
}

/** The surfaces that a model has, `null` standing for all of its provider's kind. */
export function surfacesOf(findings: Findings, surfaces: readonly string[] | null, provider: ProviderSettings): readonly string[] {
  return surfaces ?? findings.source.kinds.get(provider.kind)?.surfaces ?? []
}

/** A kind may reach other people's servers: then its name alone does not tell whose models they are. */
function isMeant(findings: Findings, { name, kind, base_url }: ProviderSettings, file: string): boolean {
  return name === file || (makerOf(kind) === file && base_url === findings.source.kinds.get(kind)?.baseUrl)
}

/** The known surfaces that the provider's kind has. */
function offered(findings: Findings, { surfaces }: KnownModel, provider: ProviderSettings): readonly string[] | null {
  const all = surfacesOf(findings, null, provider)
  return surfaces?.filter(surface => all.includes(surface)) ?? null
}

/** A price that no model takes may be a slip. A list of prices may serve several gateways, though: other providers' are nobody's business. */
function warnOfUnknown(findings: Findings, ids: ReadonlySet<string>, providers: ReadonlyMap<string, ProviderSettings>): void {
  for (const id of findings.names('prices')) {
    const [prefix] = id.split('/', 1) as [string]
    if (ids.has(id) || !providers.has(prefix)) continue
    findings.warn(['prices', id], `prices no model of this gateway${didYouMean(id, ids)}`)
  }
}
