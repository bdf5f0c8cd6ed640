import type { Findings } from './findings.js'
import type { Included } from './included.js'
import type { Path } from './problems.js'
import { showPath } from './problems.js'
import { didYouMean } from './suggest.js'

/** Says so if a name is not among those that it must be one of. `what` is what it should name: `plan`. */
export function checkReference(findings: Findings, path: Path, what: string, name: string, names: ReadonlySet<string>): boolean {
  if (names.has(name)) return true
  findings.wrong(path, `there is no ${what} ${JSON.stringify(name)}${didYouMean(name, names)}`)
  return false
}

/** The names of models, and what each alias stands for in the end. Dangling aliases, circles of them, and aliases that are models are reported. */
export class ModelNames {
  readonly models: ReadonlySet<string>
  readonly providers: ReadonlySet<string>
  readonly aliases: ReadonlyMap<string, string>
  readonly #known: ReadonlySet<string>
  readonly #unpriced: ReadonlySet<string>

  constructor(
    readonly findings: Findings,
    aliases: Readonly<Record<string, string>>,
    included: Included,
  ) {
    this.models = new Set([...findings.names('models'), ...included.served.keys()])
    this.#unpriced = new Set(included.unpriced.map(({ id }) => id))
    this.providers = findings.names('providers')
    this.#known = new Set([...this.models, ...findings.names('aliases')])
    const direct = new Map(Object.entries(aliases))
    const found = new Map<string, string>()
    for (const alias of direct.keys()) {
      const id = this.#follow(alias, direct)
      if (id !== undefined) found.set(alias, id)
    }
    this.aliases = found
  }

  /** The canonical identifier of a model or alias; `null`, and a problem at `path`, where there is none. */
  resolve(name: string, path: Path): string | null {
    if (this.models.has(name)) return name
    // What is wrong with an alias has been said where it stands.
    return this.#check(path, name) ? (this.aliases.get(name) ?? null) : null
  }

  /** Checks a list of identifiers, aliases, `<provider>/*` and `*`. */
  checkList(list: readonly string[] | null, path: Path): void {
    for (const [index, entry] of (list ?? []).entries()) {
      const at = [...path, index]
      if (entry === '*') continue
      if (entry.endsWith('/*')) checkReference(this.findings, at, 'provider', entry.slice(0, -2), this.providers)
      else if (entry.includes('*')) this.findings.wrong(at, 'a pattern is <provider>/* or *, nothing else')
      else this.resolve(entry, at)
    }
  }

  /** `asker`: the alias that names it, which can not have meant itself. */
  #check(path: Path, name: string, asker?: string): boolean {
    if (this.#known.has(name)) return true
    if (!this.#unpriced.has(name))
      return checkReference(this.findings, path, 'model or alias', name, new Set([...this.#known].filter(known => known !== asker)))
    this.findings.wrong(path, `${JSON.stringify(name)} is in the catalog, but prices has no whole price for it: it is not served`)
    return false
  }

  #follow(alias: string, direct: ReadonlyMap<string, string>): string | undefined {
    const path = ['aliases', alias]
    if (this.models.has(alias)) {
      this.findings.wrongName(path, `is the identifier of a model too (${showPath(['models', alias])}): which one counts?`)
      return undefined
    }
    const way = [alias]
    for (;;) {
      const next = direct.get(way.at(-1) as string)
      // An alias on the way that dangles, or has no value, is reported as itself.
      if (next === undefined) return undefined
      if (this.models.has(next)) return next
      const seen = way.indexOf(next)
      if (seen === 0) this.findings.wrong(path, `leads back to itself: ${[...way, next].join(' → ')}`)
      if (seen >= 0) return undefined
      if (way.length === 1 && !this.#check(path, next, alias)) return undefined
      way.push(next)
    }
  }
}
