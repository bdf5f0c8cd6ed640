import auth from '../../policies/auth.js'
import budget from '../../policies/budget.js'
import hold from '../../policies/hold.js'
import rate from '../../policies/rate.js'
import { Chain } from '../../src/chain.js'
import { Catalog } from '../../src/config/catalog.js'
import type { Config } from '../../src/config/config.js'
import { Tokenizers } from '../../src/counting/tokenizers.js'
import { GatewayError } from '../../src/errors.js'
import { Room } from '../../src/http/room.js'
import { requestIds, ulids } from '../../src/ids.js'
import { openLedger, type SqliteLedger } from '../../src/ledger/sqlite.js'
import { windows } from '../../src/ledger/windows.js'
import { isoTime, zone } from '../../src/ledger/zone.js'
import { Calibrations } from '../../src/metering/calibrations.js'
import { Offload } from '../../src/offload/offload.js'
import type { Host, Policy, PolicyFactory } from '../../src/policy.js'
import type { Runtime, Services } from '../../src/runtime.js'
import { Drains } from '../../src/upstream/drains.js'
import { Health } from '../../src/upstream/health.js'
import { Upstreams } from '../../src/upstream/upstream.js'
import type { Books } from './books.js'
import type { SteeredClock } from './clock.js'
import { Disk } from './faults.js'
import { FarEnd } from './provider.js'
import type { Random } from './random.js'
import { type Inspector, Watched } from './watched.js'

export interface Birth {
  readonly path: string
  /** Where its files go when it dies. */
  readonly next: string
  readonly seed: number
  readonly clock: SteeredClock
  readonly books: Books
  readonly inspector: Inspector
  readonly random: Random
}

/** One run of the gateway's process: all state that a kill takes away, on a file that it does not. */
export class Life {
  readonly disk: Disk
  readonly farEnd: FarEnd
  readonly file: SqliteLedger
  readonly watched: Watched
  readonly services: Services
  /** What the gateway would have logged as an error. */
  readonly faults: string[] = []
  declare runtime: Runtime

  static async begin(birth: Birth, config: Config): Promise<Life> {
    const disk = new Disk(birth.path, birth.next, birth.random)
    const file = await openLedger({ path: birth.path, durability: 'process', create: true, disk: disk.wrap })
    disk.begun()
    const life = new Life(birth, disk, file)
    await life.reload(config)
    return life
  }

  private constructor(birth: Birth, disk: Disk, file: SqliteLedger) {
    this.disk = disk
    this.file = file
    this.farEnd = new FarEnd(birth.seed, () => disk.dead)
    this.watched = new Watched(file, birth.books, birth.inspector, () => disk.dead)
    this.services = {
      ledger: this.watched.ledger,
      clock: birth.clock,
      newId: requestIds(ulids(bytes => birth.random.bytes(bytes))),
      drains: new Drains(),
      health: new Health(),
      random: () => birth.random.next(),
      bodies: new Room(),
      calibrations: untaught(),
      offload: new Offload(),
      counted: () => {},
      fault: (message, error) => {
        if (!disk.dead)
          this.faults.push(`${message}: ${error instanceof Error ? `${error.stack} ${String(error.cause ?? '')}` : String(error)}`)
      },
    }
  }

  /** Another config; what is under way goes on under its own. */
  async reload(config: Config): Promise<void> {
    this.runtime = await this.#runtime(config, this.runtime)
  }

  /** What has broken the ledger of a process that is still there. */
  get broken(): boolean {
    return this.file.failure !== null
  }

  async #runtime(config: Config, before: Runtime | undefined): Promise<Runtime> {
    const find = windows(config.timezone, config.month)
    const place = zone(config.timezone)
    const host: Host = {
      keys: config.keys,
      window: find,
      now: () => this.services.clock.now(),
      read: counters => this.services.ledger.read(counters),
      error: (code, message, options) => new GatewayError(code, message, options),
      log: () => {},
    }
    const factories: readonly PolicyFactory[] = [auth, rate, budget, hold]
    const policies = factories.map(factory => factory({} as never, host) as Policy)
    return {
      config,
      chain: new Chain(policies, (policy, hook, error) => this.services.fault(`${policy} ${hook}`, error)),
      tokenizers: await Tokenizers.start(
        config,
        () => 0,
        () => {},
      ),
      catalog: new Catalog(config),
      upstreams: await Upstreams.start(config, new Map([['simulated', this.farEnd.kind()]]), () => {}, before?.upstreams),
      windows: find,
      iso: at => isoTime(at, place),
    }
  }
}

/** The reference bill is made from raw estimates: nothing is learned here. */
function untaught(): Calibrations {
  const calibrations = new Calibrations(
    [],
    async () => {},
    () => {},
  )
  calibrations.learn = () => {}
  return calibrations
}
