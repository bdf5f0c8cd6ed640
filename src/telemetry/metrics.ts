import { setImmediate as turn } from 'node:timers/promises'
import type { EndedBy, RecordState } from '../ledger/ledger.js'
import type { Usage } from '../metering/usage.js'
import { type Collect, collector } from './collect.js'
import { define } from './definitions.js'
import { CONTENT_TYPES, formatFor, openMetrics } from './exposition.js'
import {
  type CounterCell,
  CounterFamily,
  type GatheredCounter,
  type GatheredHistogram,
  type HistogramFamily,
  type Keep,
} from './families.js'
import { type Labels, labels } from './labels.js'
import { LoopLag } from './loop-lag.js'
import { addProcessMetrics, Registry } from './prometheus.js'
import { Routes } from './routes.js'

export interface MetricsOptions {
  /** What `build_info` says. */
  readonly version: string
  readonly node: string
  readonly sqlite: string
  readonly labels: Labels
  /** Called once per scrape for the gauges that are read, not kept. */
  readonly collect: Collect
  /** Hears why a scrape had to go without what `collect` gives. */
  readonly failed: (error: unknown) => void
  /** The process's own metrics (CPU, memory, garbage collection, event loop) too. Once per process is enough. */
  readonly process: boolean
}

/** An exchange that is over, however it ended. What it did not reach is `null`. Rial are whole, times milliseconds. */
export interface Finished {
  readonly surface: string
  readonly model: string | null
  /** The one that answered last. */
  readonly provider: string | null
  readonly key: string | null
  /** What the client got; 499 when it left. */
  readonly status: number
  readonly stream: boolean
  readonly durationMs: number
  /** First event of a stream. */
  readonly ttftMs: number | null
  /** Our own part of the duration. `null` where nothing was forwarded. */
  readonly overheadMs: number | null
  /** What was charged for. */
  readonly usage: Usage | null
  readonly costRial: bigint
  readonly overrunRial: bigint
  /** What became of its hold; `null` when there was none. */
  readonly ending: Exclude<RecordState, 'held'> | null
  readonly endedBy: EndedBy | null
  readonly estimatedInput: number | null
}

/**
 * All that the gateway counts. No method throws or waits, and whatever they are given, the series stay bounded: a label value that is not
 * in the config shows as `other`, one that there is none of as `none`.
 */
export interface Metrics {
  /** Once per exchange, at its very end. */
  finished(exchange: Finished): void
  /** A request was refused before a provider was asked, in whatever stage; `finished` does not count this. */
  refused(code: string, plan: string | null): void
  /** Requests came (+1, or more) or went (−1). */
  inFlight(surface: string, change: number): void
  /** One attempt ended: `ok`, `aborted` (the client left), or the code of the failure. */
  upstream(provider: string, result: string): void
  /** Another attempt follows a failed one, at this provider. */
  upstreamRetry(provider: string): void
  upstreamUp(provider: string, up: boolean): void
  /** A batch became durable. */
  ledgerCommit(seconds: number, operations: number): void
  /** Holds of a model that the start found open and released. */
  recovered(count: number, model: string | null): void
  /** What came of asking a tokenizer's module. */
  tokenizer(model: string, result: 'counted' | 'timeout' | 'failed' | 'resting'): void
  configReload(successful: boolean): void
  /** A config took over: its names are the label values from now on, and the series of all others are gone. */
  labels(labels: Labels): void
  /** What was counted since this was last called: for a process that another one shows the metrics of. */
  gather(): Gathered
  /** What another process has gathered; its requests under way are for `inFlight`. */
  add(gathered: Gathered): void
  /** A worker of this number came up, or ended. */
  worker(number: number, up: boolean): void
  /** Seconds of processor time that it took since the last call, and the bytes that it has in memory. */
  workerUse(number: number, cpuSeconds: number, bytes: number): void
  /** The exposition, in the format that `Accept` asks for. May be called at any time, also while another call is under way. */
  render(accept: string | undefined): Promise<{ readonly contentType: string; readonly body: string }>
}

/** By the names of families: see `define`. */
export interface Gathered {
  /** By surface, as it is: not what has changed. */
  readonly inFlight: readonly (readonly [surface: string, requests: number])[]
  readonly counters: readonly (readonly [name: string, gathered: readonly GatheredCounter[]])[]
  readonly histograms: readonly (readonly [name: string, gathered: readonly GatheredHistogram[]])[]
}

/** A process makes one. Nothing of prom-client shows. */
export function createMetrics(options: MetricsOptions): Metrics {
  const registry = new Registry()
  const { families, gauges } = define(registry)
  const lag = options.process ? new LoopLag() : null
  const addProcess = lag === null ? null : later(() => addProcessMetrics(registry, lag), PROCESS_MS)
  let known = labels(options.labels)
  let routes = new Routes(families, known)
  let keys = new Map<string | null, KeyCells>()
  const inFlight = new Map<string, number>()
  const collect = collector(gauges, options)

  gauges.build.set({ version: options.version, node: options.node, sqlite: options.sqlite }, 1)
  gauges.reloaded.set(1)
  for (const ending of ['settled', 'partial', 'voided', 'recovered']) families.holds.cell(ending)
  for (const result of ['ok', 'failed']) families.configReloads.cell(result)

  function keyCells(key: string | null): KeyCells {
    const found = keys.get(key)
    if (found !== undefined) return found
    const label = known.key(key)
    const cells = { requests: families.keyRequests.cell(label), spend: families.keySpend.cell(label) }
    if (key === null || label === key) keys.set(key, cells)
    return cells
  }

  return {
    finished(exchange) {
      const key = keyCells(exchange.key)
      key.requests.add(1)
      const cost = Number(exchange.costRial)
      key.spend.add(cost)
      routes.of(exchange.surface, exchange.model, exchange.provider).finished(exchange, cost)
      if (exchange.ending !== null) families.holds.cell(exchange.ending).add(1)
      if (exchange.stream && exchange.endedBy !== null && exchange.endedBy !== 'provider')
        families.streamsAborted.cell(exchange.endedBy).add(1)
    },
    refused(code, plan) {
      families.refusals.cell(known.code(code), known.plan(plan)).add(1)
    },
    inFlight(surface, change) {
      const label = known.surface(surface)
      inFlight.set(label, (inFlight.get(label) ?? 0) + change)
      lag?.inFlight(change)
    },
    upstream(provider, result) {
      families.upstreamRequests.cell(known.provider(provider), known.result(result)).add(1)
    },
    upstreamRetry(provider) {
      families.upstreamRetries.cell(known.provider(provider)).add(1)
    },
    upstreamUp(provider, up) {
      if (known.provider(provider) === provider) gauges.upstreamUp.set({ provider }, up ? 1 : 0)
    },
    ledgerCommit(seconds, operations) {
      families.ledgerCommit.cell().observe(seconds)
      families.ledgerBatch.cell().observe(operations)
    },
    recovered(count, model) {
      families.recovered.cell(known.model(model)).add(count)
      families.holds.cell('recovered').add(count)
    },
    tokenizer(model, result) {
      families.tokenizer.cell(known.model(model), result).add(1)
    },
    configReload(successful) {
      families.configReloads.cell(successful ? 'ok' : 'failed').add(1)
      gauges.reloaded.set(successful ? 1 : 0)
    },
    labels(values) {
      const before = known
      known = labels(values)
      const keep: Keep = (label, value) => known.keeps(label, value)
      for (const family of Object.values(families)) family.retain(keep)
      for (const provider of before.providers) if (!keep('provider', provider)) gauges.upstreamUp.remove({ provider })
      routes = new Routes(families, known)
      keys = new Map()
    },
    gather() {
      const counters: [string, GatheredCounter[]][] = []
      const histograms: [string, GatheredHistogram[]][] = []
      for (const [name, family] of Object.entries(families)) {
        if (family instanceof CounterFamily) {
          const gathered = family.gather()
          if (gathered.length > 0) counters.push([name, gathered])
        } else {
          const gathered = family.gather()
          if (gathered.length > 0) histograms.push([name, gathered])
        }
      }
      return { counters, histograms, inFlight: [...inFlight] }
    },
    add({ counters, histograms }) {
      const keep: Keep = (label, value) => known.keeps(label, value)
      const byName: Readonly<Record<string, CounterFamily | HistogramFamily>> = families
      for (const [name, gathered] of counters) (byName[name] as CounterFamily).add(gathered, keep)
      for (const [name, gathered] of histograms) (byName[name] as HistogramFamily).add(gathered, keep)
    },
    worker(number, up) {
      const worker = String(number)
      gauges.workerUp.set({ worker }, up ? 1 : 0)
      families.workerEnds.cell(worker).add(up ? 0 : 1)
    },
    workerUse(number, cpuSeconds, bytes) {
      const worker = String(number)
      families.workerCpu.cell(worker).add(cpuSeconds)
      gauges.workerMemory.set({ worker }, bytes)
    },
    async render(accept) {
      addProcess?.()
      await collect(known)
      for (const [surface, count] of inFlight) gauges.inFlight.set({ surface }, count)
      const text = (await printed(registry)).replaceAll(' Nan\n', ' NaN\n')
      const format = formatFor(accept)
      return { contentType: CONTENT_TYPES[format], body: format === 'text' ? text : openMetrics(text) }
    },
  }
}

/** As `registry.metrics()` prints it, but others have their turn after each family: one with a series for each of 10,000 keys takes 20 ms. */
async function printed(registry: Registry): Promise<string> {
  const texts: string[] = []
  for (const { name } of registry.getMetricsAsArray()) {
    texts.push(await registry.getSingleMetricAsString(name))
    await turn()
  }
  return `${texts.join('\n\n')}\n`
}

/** The metrics of the process wait until the gateway has begun to answer, or the first scrape: reading them takes 30 ms. Milliseconds. */
const PROCESS_MS = 1_000

interface KeyCells {
  readonly requests: CounterCell
  readonly spend: CounterCell
}

/** Does it after so many milliseconds, or when called before that; once. */
function later(what: () => void, ms: number): () => void {
  let done = false
  const run = (): void => {
    if (!done) what()
    done = true
    clearTimeout(timer)
  }
  const timer = setTimeout(run, ms).unref()
  return run
}
