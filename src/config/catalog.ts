import type { Config, Key, Model } from './config.js'

/** One name that a key may use: an identifier, or an alias of the model. */
export interface Listed {
  readonly id: string
  readonly model: Model
}

/** Where a request may be sent. */
export interface Place {
  /** `<provider>/<model>`: what logs, metrics, health and usage records call it. */
  readonly name: string
  readonly model: Model
  /** Within its rank. */
  readonly weight: number
  /** 0: the model itself; 1: its first fallback, and so on. A rank is tried when those before it have failed. */
  readonly rank: number
}

/**
 * Finds models by name, and says which of them a key may use. Lookups take the same time for one model and for a thousand; what a list of
 * models allows is worked out when it is first asked for, and kept as long as the list is.
 */
export class Catalog {
  readonly #byName: ReadonlyMap<string, Model>
  readonly #models: ReadonlyMap<string, Model>
  readonly #places = new WeakMap<Model, readonly Place[]>()
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

  /** Where the model is answered, then where its fallbacks are, in their order. The same list whenever it is asked for. */
  targets(model: Model): readonly Place[] {
    let places = this.#places.get(model)
    if (places === undefined) {
      const fallbacks = model.fallback.map(id => this.#models.get(id)).filter(target => target !== undefined)
      places = [model, ...fallbacks].flatMap(placesOf)
      this.#places.set(model, places)
    }
    return places
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

function placesOf(model: Model, rank: number): Place[] {
  if (model.targets === undefined) return [{ name: model.id, model, weight: 1, rank }]
  return model.targets.map(target => ({ ...target, rank }))
}

interface Allowance {
  readonly all: boolean
  readonly ids: ReadonlySet<string>
  readonly providers: ReadonlySet<string>
}
