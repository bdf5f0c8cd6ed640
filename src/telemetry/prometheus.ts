import { createRequire } from 'node:module'
import type * as client from 'prom-client'
import type { LoopLag } from './loop-lag.js'

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
 * What prom-client tells of a process. Without handles and requests: those are arrays of every open socket, made at each scrape, and gauges that are
 * called `_total`. The event loop it would ask fifty times a second for ever, and tell how long it waited in between, not how late it was.
 */
const PROCESS = [
  'processCpuTotal',
  'processStartTime',
  'osMemoryHeap',
  'processOpenFileDescriptors',
  'processMaxFileDescriptors',
  'heapSizeAndUsed',
  'heapSpacesSizeAndUsed',
  'version',
  'gc',
]

/** The metrics of the process, under the names that prom-client gives them. */
export function addProcessMetrics(registry: Registry, lag: LoopLag): void {
  for (const name of PROCESS) (require(`prom-client/lib/metrics/${name}.js`) as (registry: Registry) => void)(registry)
  const registers = [registry]
  // Asked in their order: the first sets the others.
  new Gauge({
    name: 'nodejs_eventloop_lag_seconds',
    help: 'How late the event loop was when it was last looked at, while requests were under way.',
    registers,
    collect() {
      const lags = lag.take()
      this.set(lags.last)
      for (const [name, gauge] of gauges) gauge.set(lags[name])
    },
  })
  const gauges = (['min', 'max', 'mean', 'stddev', 'p50', 'p90', 'p99'] as const).map(name => {
    const help = `How late the event loop was since the last scrape, while requests were under way: ${name}.`
    return [name, new Gauge({ name: `nodejs_eventloop_lag_${name}_seconds`, help, registers })] as const
  })
}
