import type { Check } from '../http/ops.js'
import { targetChecks } from '../telemetry/health.js'
import type { Report } from '../upstream/health.js'

/*
 * Each worker learns from its own requests how targets are. Together: a target is up where any worker that has asked it sends requests there.
 */

/** What all workers that have asked a target say of it, as one. */
export function merged(workers: readonly (readonly Report[])[]): Report[] {
  return [...byTarget(workers).values()].map(reports => reports.find(({ up }) => up) ?? worst(reports))
}

/** The same for an operator's eyes: where some workers leave a target alone, how many. */
export function mergedChecks(workers: readonly (readonly Report[])[]): Check[] {
  return [...byTarget(workers).values()].flatMap(reports => {
    const out = reports.filter(({ up }) => !up)
    const checks = targetChecks([worst(reports)])
    if (out.length === 0 || workers.length < 2) return checks
    return checks.map(check => ({ ...check, reason: `in ${out.length} of ${workers.length} workers: ${check.reason}` }))
  })
}

function byTarget(workers: readonly (readonly Report[])[]): Map<string, Report[]> {
  const found = new Map<string, Report[]>()
  for (const report of workers.flat()) {
    const known = found.get(report.name)
    if (known === undefined) found.set(report.name, [report])
    else known.push(report)
  }
  return found
}

/** The one that is left alone for longest; where all are up, the one with the most failures. */
function worst(reports: readonly Report[]): Report {
  const [first] = [...reports].sort((a, b) => Number(a.up) - Number(b.up) || b.waitMs - a.waitMs || b.failures - a.failures)
  return first as Report
}
