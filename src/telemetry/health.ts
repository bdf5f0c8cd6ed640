import type { Config } from '../config/config.js'
import type { Check } from '../http/ops.js'
import type { Runtime } from '../runtime.js'
import type { Health, Report } from '../upstream/health.js'
import type { Log } from './log.js'
import type { Metrics } from './metrics.js'

/** A line of the log where a target goes out or comes back. */
export function tellHealth({ name, provider, up, failures, waitMs, limited, why }: Report, log: Pick<Log, 'info' | 'warn'>): void {
  if (up) log.info('a target takes requests again', { target: name, provider })
  else
    log.warn('a target is left alone', {
      target: name,
      provider,
      reason: reasonOf(failures, limited, why),
      ms: Math.round(waitMs),
    })
}

function reasonOf(failures: number, limited: boolean, why: string): string {
  if (limited) return 'at its rate limit'
  return `${failures} failures in a row${why === '' ? '' : `, the last: ${why}`}`
}

/** A provider is up unless all of its targets that were asked are being left alone. */
export function showHealth(
  { providers }: Pick<Config, 'providers'>,
  health: Pick<Health, 'reports'>,
  metrics: Pick<Metrics, 'upstreamUp'>,
  now: number,
): void {
  const reports = health.reports(now)
  for (const name of providers.keys()) {
    const own = reports.filter(({ provider }) => provider === name)
    metrics.upstreamUp(name, own.length === 0 || own.some(({ up }) => up))
  }
}

/** Targets that are out, for an operator's eyes: none of them makes the gateway unready. */
export function targetChecks(reports: readonly Report[]): Check[] {
  return reports.map(({ name, up, failures, waitMs, limited, why }) => {
    if (up) return { name: `target ${name}`, ok: true }
    const next = waitMs === 0 ? 'the next request that comes to it tries it' : `left alone for ${Math.ceil(waitMs / 1000)} s`
    return { name: `target ${name}`, ok: true, reason: `${reasonOf(failures, limited, why)}; ${next}` }
  })
}

/** The targets of a config that are where they were before: what is known of any other is out of date. */
export function targetNames({ config, catalog, upstreams }: Runtime, before: Runtime): Set<string> {
  const targets = [...config.models.values()].flatMap(model => catalog.targets(model))
  const same = targets.filter(({ model }) => upstreams.keeps(model.provider.name, before.upstreams))
  return new Set(same.map(({ name }) => name))
}
