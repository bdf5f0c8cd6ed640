import type { Runtime } from '../runtime.js'
import type { Health } from '../upstream/health.js'
import { type Pulse, quantile, type Sample } from './pulse.js'

export interface TargetView {
  /** `<provider>/<its own name>`. */
  readonly name: string
  /** Models that it answers, by their public names. */
  readonly models: readonly string[]
  readonly up: boolean
  /** Failed requests in a row. */
  readonly failures: number
  /** Left alone for its rate limit. */
  readonly limited: boolean
  /** Until it is tried again. */
  readonly wait_ms: number
  /** The last tries: how many, how many of them did not answer, and since when. */
  readonly tries: number
  readonly failed: number
  readonly since: number | null
  readonly median_ms: number | null
  readonly p95_ms: number | null
  readonly first_ms: number | null
  /** Output tokens per second, the median. */
  readonly pace: number | null
  /** The last 60 tries, oldest first: milliseconds, negative where it failed. */
  readonly trace: readonly number[]
}

export interface ProviderView {
  readonly name: string
  readonly kind: string
  readonly targets: readonly TargetView[]
  /** How many there are, shown or not. */
  readonly target_count: number
}

const TARGETS_SHOWN = 40
const TRACE = 60

/** Providers in the order of the config, and how each target has answered lately: those in trouble first, then those that were asked last. `at`: of the monotonic clock. */
export function providers({ config, catalog }: Runtime, health: Pick<Health, 'reports'>, pulse: Pulse, at: number): ProviderView[] {
  const reports = new Map(health.reports(at).map(report => [report.name, report]))
  const targets = new Map<string, { readonly provider: string; readonly models: string[] }>()
  for (const model of config.models.values()) {
    for (const place of catalog.targets(model)) {
      // Fallbacks are models of their own, and come by themselves.
      if (place.rank > 0) continue
      const known = targets.get(place.name)
      if (known === undefined) targets.set(place.name, { provider: place.model.provider.name, models: [model.id] })
      else if (!known.models.includes(model.id)) known.models.push(model.id)
    }
  }
  return [...config.providers.values()].map(({ name, kind }) => {
    const own = [...targets].filter(([, { provider }]) => provider === name)
    const views = own.map(([target, { models }]): TargetView => {
      const report = reports.get(target)
      return {
        name: target,
        models: models.slice(0, 5),
        up: report?.up ?? true,
        failures: report?.failures ?? 0,
        limited: report?.limited ?? false,
        wait_ms: report?.waitMs ?? 0,
        ...figures(pulse.samples(target)),
      }
    })
    const order = (view: TargetView): number => (view.up ? 0 : 1e15) + (view.since === null ? 0 : 1e14) + view.tries
    views.sort((a, b) => order(b) - order(a))
    return { name, kind, targets: views.slice(0, TARGETS_SHOWN), target_count: views.length }
  })
}

function figures(samples: readonly Sample[]) {
  const answered = samples.filter(({ result }) => result === 'answered')
  const times = answered.map(({ ms }) => ms)
  const present = (values: readonly (number | null)[]): number[] => values.filter(value => value !== null)
  return {
    tries: samples.length,
    failed: samples.length - answered.length,
    since: samples[0]?.at ?? null,
    median_ms: quantile(times, 0.5),
    p95_ms: quantile(times, 0.95),
    first_ms: quantile(present(answered.map(({ first_ms }) => first_ms)), 0.5),
    pace: quantile(present(answered.map(({ pace }) => pace)), 0.5),
    trace: samples.slice(-TRACE).map(({ result, ms }) => (result === 'answered' ? 1 : -1) * Math.max(1, Math.round(ms))),
  }
}
