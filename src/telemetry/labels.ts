import { ENDPOINTS } from '../endpoints/endpoints.js'
import { CODES } from '../errors.js'
import { ANONYMOUS } from '../exchange.js'
import type { Runtime } from '../runtime.js'

/** A set or a map of names; a Config's maps will do. */
export interface Names {
  has(name: string): boolean
  keys(): Iterable<string>
}

/** The names that may show as label values, besides the gateway's own error codes. `{...config, surfaces, codes}` is one. */
export interface Labels {
  readonly models: Names
  readonly providers: Names
  readonly keys: Names
  readonly plans: Names
  readonly accounts: Names
  readonly surfaces: Names
  /** Codes that policies refuse with, beyond those of the gateway. */
  readonly codes: Names
}

/** The label value for a name that may be unknown or absent. */
export type Labeller = (name: string | null) => string

export interface KnownLabels {
  readonly model: Labeller
  readonly provider: Labeller
  readonly key: Labeller
  readonly plan: Labeller
  readonly surface: Labeller
  readonly code: Labeller
  readonly result: Labeller
  readonly providers: Iterable<string>
  readonly accounts: Names
  readonly keys: Names
  /** May this label still show this value? */
  keeps(label: string, value: string): boolean
}

/** What a running config bounds them to. */
export function labelsOf({ config, chain }: Runtime): Labels {
  return { ...config, surfaces: new Set([...ENDPOINTS.map(endpoint => endpoint.surface), 'key', 'models']), codes: chain.codes }
}

export const OTHER = 'other'
export const NONE = 'none'

/** Bounds the label values to these names, as they are now: later changes of the maps do not show. */
export function labels(names: Labels): KnownLabels {
  const models = new Set(names.models.keys())
  const providers = new Set(names.providers.keys())
  const keys = new Set([ANONYMOUS.name, ...names.keys.keys()])
  const plans = new Set([ANONYMOUS.plan.name, ...names.plans.keys()])
  const surfaces = new Set(names.surfaces.keys())
  const codes = new Set([...CODES.keys(), ...names.codes.keys()])
  const results = new Set(['ok', 'aborted', ...CODES.keys()])
  const sets = new Map([
    ['model', models],
    ['provider', providers],
    ['key', keys],
    ['plan', plans],
    ['surface', surfaces],
    ['code', codes],
  ])
  return {
    model: labeller(models),
    provider: labeller(providers),
    key: labeller(keys),
    plan: labeller(plans),
    surface: labeller(surfaces),
    code: labeller(codes),
    result: labeller(results),
    providers,
    accounts: new Set(names.accounts.keys()),
    keys,
    keeps(label, value) {
      const set = sets.get(label)
      return set === undefined || value === OTHER || value === NONE || set.has(value)
    },
  }
}

function labeller(names: ReadonlySet<string>): Labeller {
  return name => (name === null ? NONE : names.has(name) ? name : OTHER)
}

const STATUSES: ReadonlySet<number> = new Set([200, ...[...CODES.values()].map(({ status }) => status)])

/** A status that the gateway itself answers with as it is, any other by its class: `4xx`. */
export function statusLabel(status: number): string {
  if (STATUSES.has(status)) return String(status)
  return status >= 100 && status < 600 ? `${Math.floor(status / 100)}xx` : OTHER
}
