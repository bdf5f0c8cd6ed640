import type { Clock } from './clock.js'
import type { Room } from './http/room.js'
import { requestIds, ulids } from './ids.js'
import type { RequestLedger } from './ledger/ledger.js'
import type { Calibrations } from './metering/calibrations.js'
import { Offload } from './offload/offload.js'
import type { Services } from './runtime.js'
import type { Log } from './telemetry/log.js'
import type { Metrics } from './telemetry/metrics.js'
import { Drains } from './upstream/drains.js'
import type { Health } from './upstream/health.js'

export interface ServiceFacts {
  readonly ledger: RequestLedger
  readonly clock: Clock
  readonly log: Log
  readonly health: Health
  readonly calibrations: Calibrations
  readonly bodies: Room
  /** `undefined` as long as nothing is counted. */
  readonly metrics: () => Metrics | undefined
}

/** What outlives configs, in a process that answers requests. */
export function createServices({ ledger, clock, log, health, calibrations, bodies, metrics }: ServiceFacts): Services {
  return {
    ledger,
    clock,
    newId: requestIds(ulids()),
    drains: new Drains(),
    health,
    random: Math.random,
    bodies,
    offload: new Offload(),
    calibrations,
    counted: (model, { use }, counted) => {
      metrics()?.tokenizer(model.id, counted.kind)
      if (counted.kind === 'timeout' || counted.kind === 'failed')
        log.warn(`tokenizer ${use} did not count: ${counted.reason}; its estimate is held`, { model: model.id })
    },
    fault: (message, error, fields) => log.error(message, { ...fields, error }),
  }
}
