import type { Config, Key, Model } from './config.js'

/** One name that a key may use: an identifier, or an alias of the model. */
export interface Listed {
  readonly id: string
  readonly model: Model
}

/**
 * Finds models by name, and says which of them a key may use. Lookups take the same time for one model and for a thousand; what a list of
 * models allows is worked out when it is first asked for, and kept as long as the list is.
 */
export class Catalog {
  readonly #byName: ReadonlyMap<string, Model>
  readonly #models: ReadonlyMap<string, Model>
  readonly #allowances = new WeakMap<readonly string[], Allowance>()

  constructor({ models, aliases }: Pick<Config, 'models' | 'aliases'>) {
    const byName = new Map(models)
    for (const [alias, id] of aliases) {
      const model = models.get(id)
      if (model !== undefined) byName.set(alias, model)
    }
    this.#byName = byName
    this.#models = models
  }

  /** The model of an identifier or alias. Names are exact. */
  find(name: string): Model | undefined {
    return this.#byName.get(name)
  }

  /** May this key use this model? The plan's list and the key's must both allow it; it does not matter by which name it is asked for. */
  allowed(key: Key, model: Model): boolean {
    return this.#allows(key.plan.models, model) && this.#allows(key.models, model)
  }

  /** All names that a key may use: models in the order of the file, then aliases. */
  list(key: Key): Listed[] {
    const listed: Listed[] = []
    for (const [id, model] of this.#byName) if (this.allowed(key, model)) listed.push({ id, model })
    return listed
  }

  /** The model, then its fallbacks in their order. */
  targets(model: Model): Model[] {
    const fallbacks = model.fallback.map(id => this.#models.get(id)).filter(target => target !== undefined)
    return [model, ...fallbacks]
  }

  #allows(list: readonly string[] | null, model: Model): boolean {
    if (list === null) return true
    let allowance = this.#allowances.get(list)
    if (allowance === undefined) {
      allowance = this.#allowance(list)
      this.#allowances.set(list, allowance)
    }
    return allowance.all || allowance.ids.has(model.id) || allowance.providers.has(model.provider.name)
  }

  #allowance(list: readonly string[]): Allowance {
    const ids = new Set<string>()
    const providers = new Set<string>()
    for (const entry of list) {
      if (entry.endsWith('/*')) providers.add(entry.slice(0, -2))
      else ids.add(this.#byName.get(entry)?.id ?? entry)
    }
    return { all: list.includes('*'), ids, providers }
  }
}

interface Allowance {
  readonly all: boolean
  readonly ids: ReadonlySet<string>
  readonly providers: ReadonlySet<string>
}
