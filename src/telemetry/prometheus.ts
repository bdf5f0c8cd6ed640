import { createRequire } from 'node:module'
import type * as client from 'prom-client'

/*
 * Of prom-client what counts, each by its own file. Its entry also reads what pushes, gathers clusters and asks for tracing: nine tenths of its
 * time, and a seventh of a start.
 */

const require = createRequire(import.meta.url)

export type Registry = client.Registry
export const Registry: typeof client.Registry = require('prom-client/lib/registry.js')
export type Counter = client.Counter
export const Counter: typeof client.Counter = require('prom-client/lib/counter.js')
export const Gauge: typeof client.Gauge = require('prom-client/lib/gauge.js')
export const Histogram: typeof client.Histogram = require('prom-client/lib/histogram.js')

/**
 * The metrics of the process. Without what prom-client lists of handles and requests: those are arrays of every open socket, made at each
 * scrape, and gauges that are called `_total`.
 */
export function addProcessMetrics(registry: Registry): void {
  const collect: typeof client.collectDefaultMetrics = require('prom-client/lib/defaultMetrics.js')
  collect({ register: registry, eventLoopMonitoringPrecision: 20 })
  for (const what of ['handles', 'requests', 'resources']) {
    registry.removeSingleMetric(`nodejs_active_${what}`)
    registry.removeSingleMetric(`nodejs_active_${what}_total`)
  }
}
