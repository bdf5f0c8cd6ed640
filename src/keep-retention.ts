import type { Clock } from './clock.js'
import type { Config } from './config/config.js'
import { Retention } from './ledger/retention.js'
import type { SqliteLedger } from './ledger/sqlite.js'
import type { Runtime } from './runtime.js'
import type { Log } from './telemetry/log.js'

interface Keeping {
  readonly ledger: SqliteLedger
  readonly clock: Clock
  readonly log: Log
  readonly runtime: () => Runtime
}

/** Sums up what is past its time, as the config of the start has it; `null`: everything is kept. */
export function keepRetention({ ledger: { retention } }: Config, { ledger, clock, log, runtime }: Keeping): Retention | null {
  if (retention === null) return null
  return new Retention({
    ledger,
    retention,
    dayOf: at => runtime().windows('day', at),
    now: () => clock.now(),
    busy: () => ledger.stats().open_holds,
    pruned: (records, before) => log.info(`usage records from before ${runtime().iso(before)} were summed up by day`, { count: records }),
    failed: error => log.error('usage records that are past their time could not be summed up', { error }),
  })
}
