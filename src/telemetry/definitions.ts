import { CounterFamily, HistogramFamily } from './families.js'
import { Gauge, type Registry } from './prometheus.js'

const PREFIX = 'model_gateway_'

/** The bounds of OpenTelemetry's conventions for generative models, where there are some. Seconds. */
const REQUEST = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
const FIRST_TOKEN = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]
const OUTPUT_TOKEN = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5]
const OVERHEAD = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1]
const COMMIT = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]
const BATCH = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
const ESTIMATE = [0.25, 0.5, 0.75, 0.9, 1, 1.1, 1.25, 1.5, 2, 3, 5, 10]

/** Every metric of the gateway's own: name, meaning, labels, bounds. `families` are those with cells, `gauges` the rest. */
export function define(registry: Registry) {
  const counter = (name: string, help: string, ...labels: string[]) => new CounterFamily(registry, PREFIX + name, help, labels)
  const histogram = (name: string, help: string, bounds: readonly number[], ...labels: string[]) =>
    new HistogramFamily(registry, PREFIX + name, help, labels, bounds)
  const gauge = (name: string, help: string, ...labels: string[]) =>
    new Gauge({ name: PREFIX + name, help, labelNames: labels, registers: [registry] })

  return {
    families: {
      requests: counter('requests_total', 'Requests that ended, by the status that was answered.', 'surface', 'model', 'status'),
      refusals: counter('refusals_total', 'Requests that were refused before a provider was asked.', 'code', 'plan'),
      duration: histogram(
        'request_duration_seconds',
        'From the request header to the last byte of the answer.',
        REQUEST,
        'surface',
        'model',
        'provider',
      ),
      firstToken: histogram(
        'time_to_first_token_seconds',
        'From the request header to the first event of a stream.',
        FIRST_TOKEN,
        'model',
        'provider',
      ),
      outputToken: histogram(
        'time_per_output_token_seconds',
        'Mean time between the tokens of a stream after its first.',
        OUTPUT_TOKEN,
        'model',
        'provider',
      ),
      overhead: histogram('overhead_seconds', 'Time of a request that was spent in the gateway itself.', OVERHEAD, 'surface'),
      tokens: counter(
        'tokens_total',
        'Tokens used; input includes cached_input, output includes reasoning.',
        'model',
        'provider',
        'type',
        'source',
      ),
      spend: counter('spend_rial_total', 'Rial charged.', 'model', 'provider'),
      keySpend: counter('key_spend_rial_total', 'Rial charged to a key.', 'key'),
      keyRequests: counter('key_requests_total', 'Requests of a key that ended, refused ones included.', 'key'),
      holds: counter('holds_total', 'Holds that ended, by how.', 'ending'),
      overrun: counter('hold_overrun_rial_total', 'Rial charged above what was held.', 'model'),
      recovered: counter('holds_recovered_total', 'Holds found open at a start, or left open by a worker, and released.', 'model'),
      estimate: histogram(
        'estimate_error_ratio',
        'Held input tokens over those that the provider reported; 1 is exact, below 1 too low.',
        ESTIMATE,
        'model',
      ),
      tokenizer: counter(
        'tokenizer_requests_total',
        'Requests whose input a module was to count, by result: counted, timeout, failed, resting (not asked, since it failed often).',
        'model',
        'result',
      ),
      upstreamRequests: counter('upstream_requests_total', 'Attempts at a provider, by result.', 'provider', 'result'),
      upstreamRetries: counter('upstream_retries_total', 'Attempts that followed a failed one of the same request.', 'provider'),
      streamsAborted: counter('streams_aborted_total', 'Streams that did not reach their end, by who ended them.', 'by'),
      ledgerCommit: histogram('ledger_commit_seconds', 'Time until a batch of the ledger was durable.', COMMIT),
      ledgerBatch: histogram('ledger_batch_size', 'Operations in one batch of the ledger.', BATCH),
      workerEnds: counter('worker_ends_total', 'Workers that ended by themselves, or were ended; another took the place.', 'worker'),
      workerCpu: counter(
        'worker_cpu_seconds_total',
        'Processor time of a worker; that of the process that owns the ledger is process_cpu_seconds_total.',
        'worker',
      ),
      configReloads: counter('config_reloads_total', 'Reloads of the config after the start.', 'result'),
    },
    gauges: {
      upstreamUp: gauge(
        'upstream_up',
        'Whether a provider gets requests: 0 while all of its targets that were asked are left alone after trouble.',
        'provider',
      ),
      workerUp: gauge('worker_up', 'Whether a worker takes requests; there are workers from workers: 2 on.', 'worker'),
      workerMemory: gauge('worker_resident_memory_bytes', 'Resident memory of a worker.', 'worker'),
      inFlight: gauge('requests_in_flight', 'Requests under way.', 'surface'),
      keyBudget: gauge('key_budget_used_ratio', 'Used part of the budget of a key that is nearest to its end.', 'key', 'window'),
      wallet: gauge('wallet_balance_rial', 'Credits of an account less what it has spent; open holds are not taken off.', 'account'),
      correction: gauge(
        'estimate_correction',
        'Factor that sizes holds: what few inputs of a model come to more than, over their raw estimate; 1 until enough has been reported.',
        'model',
      ),
      holdsOpen: gauge('holds_open', 'Holds that have not ended.'),
      held: gauge('held_rial', 'Rial in holds that have not ended.'),
      oldest: gauge('hold_oldest_age_seconds', 'Age of the oldest open hold; 0 when there is none.'),
      ledgerSize: gauge('ledger_bytes', 'Size of the ledger file.'),
      walSize: gauge('ledger_wal_bytes', 'Size of the write-ahead log of the ledger.'),
      collected: gauge('collect_successful', 'Whether this scrape could read the ledger; without it, its gauges are missing.'),
      reloaded: gauge('config_last_reload_successful', 'Whether the config file, as it was last seen, is the one in force.'),
      build: gauge('build_info', 'What is running.', 'version', 'node', 'sqlite'),
    },
  }
}

export type Definitions = ReturnType<typeof define>
