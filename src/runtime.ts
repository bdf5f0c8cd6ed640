import type { Chain } from './chain.js'
import type { Clock } from './clock.js'
import type { Catalog } from './config/catalog.js'
import type { Config } from './config/config.js'
import type { CountReport, Tokenizers } from './counting/tokenizers.js'
import type { Room } from './http/room.js'
import type { NewId } from './ids.js'
import type { RequestLedger } from './ledger/ledger.js'
import type { Windows } from './ledger/windows.js'
import type { Calibrations } from './metering/calibrations.js'
import type { Offload } from './offload/offload.js'
import type { Drains } from './upstream/drains.js'
import type { Health } from './upstream/health.js'
import type { Upstreams } from './upstream/upstream.js'

/** All that a config has set up. A request keeps the one that it began with, whatever is reloaded meanwhile. */
export interface Runtime {
  readonly config: Config
  readonly catalog: Catalog
  readonly chain: Chain
  readonly tokenizers: Tokenizers
  readonly upstreams: Upstreams
  readonly windows: Windows
  /** A moment (ms since the epoch) as ISO 8601 in the configured zone. */
  readonly iso: (at: number) => string
}

/** What outlives configs. */
export interface Services {
  readonly ledger: RequestLedger
  readonly clock: Clock
  readonly newId: NewId
  readonly drains: Drains
  readonly health: Health
  /** From 0 up to, not including, 1: for which target is tried first, and how long a pause is. */
  readonly random: () => number
  /** For the bodies of all requests under way. */
  readonly bodies: Room
  readonly offload: Offload
  readonly calibrations: Calibrations
  /** Hears of every request that a tokenizer's module was asked for. */
  readonly counted: CountReport
  /** A bug, or a fault whose consequence the client does not see. Never with a secret, a prompt or an answer. */
  readonly fault: (message: string, error: unknown, fields?: Readonly<Record<string, unknown>>) => void
}
