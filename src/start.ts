import { type AdminOptions, newToken, type Places, startAdmin } from './admin/admin.js'
import { underWay } from './admin/live.js'
import { type Clock, steady, systemClock } from './clock.js'
import type { Address, Config } from './config/config.js'
import { type Watch, watchConfig } from './config/watch.js'
import type { Live, State } from './control/live.js'
import { type Control, startControl } from './control.js'
import type { Inner } from './http/inner.js'
import { type Listener, listen } from './http/listener.js'
import { type Check, startOps } from './http/ops.js'
import { Room } from './http/room.js'
import { keepRetention } from './keep-retention.js'
import { lasting } from './lasting.js'
import type { Ledger, OpenHold } from './ledger/ledger.js'
import type { Retention } from './ledger/retention.js'
import { openLedger, type SqliteLedger } from './ledger/sqlite.js'
import { sqliteVersion } from './ledger/sqlite-version.js'
import { Calibrations } from './metering/calibrations.js'
import { readConfig } from './read-config.js'
import type { Services } from './runtime.js'
import { createServices } from './services.js'
import { Serving } from './serving.js'
import { closeRuntime, openAccounts, type SetUpFacts, setUp } from './set-up.js'
import { collect } from './telemetry/gauges.js'
import { showHealth, tellHealth } from './telemetry/health.js'
import { labelsOf } from './telemetry/labels.js'
import type { Log } from './telemetry/log.js'
import { createMetrics, type Metrics } from './telemetry/metrics.js'
import { Recent } from './telemetry/recent.js'
import { Health } from './upstream/health.js'
import { VERSION } from './version.js'
import type { Crew } from './workers/crew.js'

export interface GatewayOptions {
  /** gateway.yaml. */
  readonly file: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** Makes the log, once the config is read. */
  readonly log: (config: Config) => Log
  readonly clock?: Clock
}

/** All that a gateway consists of. */
export interface Parts extends SetUpFacts {
  readonly ledger: Ledger
  readonly services: Services
  readonly options: GatewayOptions
  /** What a reload can not change. */
  readonly begun: ReadonlyMap<string, string>
  readonly warnings: readonly string[]
  readonly files: readonly string[]
  readonly metrics: Metrics
  readonly recent: Recent
  /** `null`: requests are served in this process. */
  readonly crew: Crew | null
  readonly serving: Serving | Crew
  readonly listener: Omit<Listener, 'stop'>
  readonly ops: Inner | null
  readonly admin: Inner | null
  readonly adminToken: string
  readonly places: Places
  readonly control: Control | null
  readonly retention: Retention | null
  readonly recovered: readonly OpenHold[]
  readonly watch: Watch
}

/** What parts ask of the gateway that they will be of: they may before it is there. */
export interface Whole {
  /** A file of the config has changed. */
  readonly changed: () => void
  readonly checks: () => readonly Check[]
}

/** Starts all of it. Throws a ConfigError, or an Error of the ledger or a listener, and leaves nothing running. */
export async function start(options: GatewayOptions, { changed, checks }: Whole): Promise<Parts> {
  let told: Log | undefined
  const clock = steady(options.clock ?? systemClock, undefined, ms => told?.warn(setBack(ms)))
  // Before the file is read: a change while the gateway starts must not be missed.
  const watch = watchConfig(options.file, [], changed)
  const undo: (() => unknown)[] = [() => watch.close()]
  try {
    const { loaded, providers } = await readConfig(options.file, options.env, watch.read)
    const { config, warnings, files } = loaded
    watch.follow(files)
    const log = options.log(config)
    told = log
    let counting: Metrics | undefined
    const ledger = await openLedger({
      ...config.ledger,
      observe: { commit: (seconds, operations) => counting?.ledgerCommit(seconds, operations) },
    })
    undo.unshift(() => ledger.close())
    const recovered = await ledger.recover(clock.now())
    // At once: of a start that fails, the next one finds nothing to tell of.
    for (const hold of recovered) tellReleased(hold, 'a hold that the last run left open was released', log)
    const health = new Health(report => {
      tellHealth(report, log)
      showTargets()
    })
    const calibrations = new Calibrations(await ledger.calibrations(), kept => ledger.keep(kept), unkept(log))
    const services = createServices({ ledger, clock, log, health, calibrations, bodies: new Room(), metrics: () => counting })
    const facts = { ledger, log, services }
    const runtime = await setUp(config, providers, facts)
    // Not closed over: what lives on here would keep the first config with it.
    undo.unshift(closeRuntime.bind(null, runtime))
    const metrics = createMetrics({
      version: VERSION,
      node: process.version,
      sqlite: sqliteVersion(),
      labels: labelsOf(runtime),
      collect: () => collect(serving.runtime, ledger, calibrations, clock.now()),
      failed: error => log.warn('a scrape went without the figures of the ledger', { error }),
      process: true,
    })
    counting = metrics
    for (const { record } of recovered) metrics.recovered(1, record.model)
    const recent = new Recent(on => crew?.watch(on))
    const crew =
      config.workers === 1
        ? null
        : await makeCrew(config, runtime, {
            ledger,
            clock,
            log,
            metrics,
            recent,
            calibrations,
            released: hold => {
              metrics.recovered(1, hold.record.model)
              tellReleased(hold, 'a hold that a worker left open was released', log)
            },
            healthTold: () => showTargets(),
          })
    undo.unshift(() => crew?.close())
    const serving: Serving | Crew = crew ?? new Serving(runtime, { services, log, metrics, recent })
    const showTargets = (): void => showHealth(serving.runtime.config, crew ?? health, metrics, clock.monotonic())
    showTargets()
    const ops =
      config.ops === null
        ? null
        : await startOps({
            address: config.ops,
            metrics: crew === null ? metrics : ofAll(crew, metrics),
            checks,
            failed: error => log.warn('the ops listener failed to answer', { error }),
          })
    undo.unshift(() => ops?.close())
    const adminToken = newToken()
    const places: Places = { at: loaded.at }
    const admin = await openAdmin(config.admin, {
      token: () => serving.runtime.config.admin_token ?? adminToken,
      recent,
      serving,
      underWay: () => (serving instanceof Serving ? underWay(serving.live) : serving.underWay()),
      ledger,
      health: crew ?? health,
      clock,
      places,
      failed: error => log.warn('the page failed to answer', { error }),
    })
    undo.unshift(() => admin?.close())
    const state = (): State => {
      const { open_holds, held_rial, oldest_hold_at } = ledger.stats()
      return { at: clock.now(), version: VERSION, in_flight: serving.inFlight, open_holds, held_rial, oldest_hold_at }
    }
    const control = await openControl(ledger, config, { recent, state }, log)
    undo.unshift(() => control?.close())
    const retention = keepRetention(config, { ledger, clock, log, runtime: () => serving.runtime })
    undo.unshift(() => retention?.close())
    // Accounts are opened once every address is had, and before the ledger is asked for anything by who comes to this one.
    const open = openAccounts.bind(null, config, ledger, clock.now())
    const listener =
      serving instanceof Serving
        ? await listen({
            address: config.listen,
            tls: config.tls,
            connectionsMax: config.limits.connections,
            handle: serving.handle,
            newId: () => services.newId(clock.now()),
          })
        : serving
    undo.unshift(() => listener.close())
    await (crew === null ? open() : crew.start(open))
    const begun = lasting(config)
    return {
      ...facts,
      services,
      options,
      begun,
      warnings,
      files,
      metrics,
      recent,
      crew,
      serving,
      listener,
      ops,
      admin,
      adminToken,
      places,
      control,
      retention,
      recovered,
      watch,
    }
  } catch (error) {
    for (const step of undo) await step()
    throw error
  }
}

function setBack(ms: number): string {
  return `the clock was set back by ${Math.round(ms / 1000)} s: windows go on from where it was, at half the pace, until it is there again; if it had been wrong, a restart goes by what it says now`
}

/** Tells of a hold that nobody was left to end. */
function tellReleased({ id, record: { model, key, held_rial } }: OpenHold, message: string, log: Log): void {
  log.warn(message, { request_id: id, model, rial: held_rial, ...(key === null ? {} : { key }) })
}

/** Requests go on without it: the next start begins with what was kept before. */
export function unkept(log: Log): (error: unknown) => void {
  return error => log.error('what models have taught could not be kept', { error })
}

/** A disk may have no sockets: that keeps the command line from a running gateway, and nobody else. */
async function openControl(ledger: SqliteLedger, config: Config, live: Live, log: Log): Promise<Control | null> {
  try {
    const failed = (error: unknown): void => log.warn('the control socket failed to answer', { error })
    return await startControl({ ledger, path: config.ledger.path, live, failed })
  } catch (error) {
    log.warn('there is no control socket: the command line can reach the ledger only while the gateway is stopped', { error })
    return null
  }
}

async function openAdmin(address: Address | null, options: Omit<AdminOptions, 'address'>): Promise<Inner | null> {
  if (address !== null) return startAdmin({ ...options, address })
  options.places.at = () => ''
  return null
}

/** Read when it is needed: most gateways are one process. */
async function makeCrew(...of: ConstructorParameters<typeof Crew>): Promise<Crew> {
  const { Crew } = await import('./workers/crew.js')
  return new Crew(...of)
}

/** The metrics of all workers, as those of one process. */
function ofAll(crew: Crew, metrics: Metrics): Pick<Metrics, 'render'> {
  return {
    render: async accept => {
      await crew.gather()
      return metrics.render(accept)
    },
  }
}
