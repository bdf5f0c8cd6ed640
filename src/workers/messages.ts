import type { UnderWay } from '../admin/live.js'
import type { Config } from '../config/config.js'
import type { KeptCalibration } from '../ledger/calibration-book.js'
import type { Sample } from '../metering/calibrations.js'
import type { Log } from '../telemetry/log.js'
import type { Gathered } from '../telemetry/metrics.js'
import type { RecentExchange } from '../telemetry/recent.js'
import type { Report } from '../upstream/health.js'

/*
 * What the owner and its workers say to each other, besides what is asked of the ledger and the lines of the log. Plain data: it goes over by structured
 * clone, so that amounts stay bigints and maps stay maps.
 */

/** What a worker begins with. It reads no file of its own: what runs may be older than what lies on the disk. */
export interface Beginning {
  readonly kind: 'begin'
  readonly config: Config
  /** How many there are. */
  readonly workers: number
  /** That the workers listen on, as the first of them was told: 0 stands for the same free one in all of them. */
  readonly port: number
  readonly form: Log['form']
  /** What the owner's clock shows. */
  readonly now: number
  readonly taught: readonly KeptCalibration[]
  readonly watched: boolean
}

/** What the owner tells a worker. */
export type Order =
  | Beginning
  /** Make all ready for this config, and say so. `change`: its number; what is said of it has the same one. */
  | { readonly kind: 'prepare'; readonly change: number; readonly config: Config }
  /** New requests run under what was made ready. */
  | { readonly kind: 'switch'; readonly change: number }
  /** What was made ready is not wanted. */
  | { readonly kind: 'abandon' }
  /** Somebody watches the requests as they end, or nobody does any more. */
  | { readonly kind: 'watch'; readonly on: boolean }
  /** What all have taught together. */
  | { readonly kind: 'learn'; readonly taught: readonly KeptCalibration[] }
  /** Tell what has happened since, now. */
  | { readonly kind: 'tell' }
  /** Take no new connections. */
  | { readonly kind: 'stop' }
  | { readonly kind: 'drain'; readonly timeoutMs: number }
  | { readonly kind: 'end' }

/** What a worker tells the owner. */
export type Word =
  | { readonly kind: 'listening'; readonly host: string; readonly port: number }
  /** It can not begin. */
  | { readonly kind: 'failed'; readonly message: string; readonly code?: string; readonly address?: string; readonly port?: number }
  /** `problem`: why it could not. */
  | { readonly kind: 'prepared'; readonly change: number; readonly problem: string | null }
  /** `done`: false where something else was made ready, or nothing. */
  | { readonly kind: 'switched'; readonly change: number; readonly done: boolean }
  | { readonly kind: 'ended'; readonly exchanges: readonly RecentExchange[] }
  | ({ readonly kind: 'tidings' } & Tidings)
  | { readonly kind: 'drained' }

/** What has happened in a worker since it last told. */
export interface Tidings {
  readonly gathered: Gathered
  readonly underWay: UnderWay
  /** Of all targets that it has asked. */
  readonly health: readonly Report[]
  readonly samples: readonly Sample[]
  readonly cpuSeconds: number
  readonly residentBytes: number
}
