import { type AdminOptions, newToken, type Places, startAdmin } from './admin/admin.js'
import { underWay } from './admin/live.js'
import { type Clock, steady, systemClock } from './clock.js'
import type { Address, Config } from './config/config.js'
import type { Loaded } from './config/load.js'
import { ConfigError } from './config/problems.js'
import { type Watch, watchConfig } from './config/watch.js'
import type { Live, State } from './control/live.js'
import { type Control, startControl } from './control.js'
import type { Inner } from './http/inner.js'
import { type Listener, listen } from './http/listener.js'
import { type Check, startOps } from './http/ops.js'
import { Room } from './http/room.js'
import { keepRetention } from './keep-retention.js'
import { inWindowsOf, lasting } from './lasting.js'
import type { Ledger, OpenHold } from './ledger/ledger.js'
import type { Retention } from './ledger/retention.js'
import { openLedger, type SqliteLedger } from './ledger/sqlite.js'
import { sqliteVersion } from './ledger/sqlite-version.js'
import { Calibrations } from './metering/calibrations.js'
import { readConfig } from './read-config.js'
import type { Runtime, Services } from './runtime.js'
import { createServices } from './services.js'
import { Serving } from './serving.js'
import { closeRuntime, type SetUpFacts, setUp } from './set-up.js'
import { collect } from './telemetry/gauges.js'
import { showHealth, targetChecks, targetNames, tellHealth } from './telemetry/health.js'
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

interface Parts extends SetUpFacts {
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
  readonly listener: Listener
  readonly ops: Inner | null
  readonly admin: Inner | null
  readonly adminToken: string
  readonly places: Places
  readonly control: Control | null
  readonly retention: Retention | null
  readonly recovered: readonly OpenHold[]
  readonly watch: Watch
}

/** A gateway that serves: a config, wired into running parts. */
export class Gateway {
  readonly listener: Listener
  readonly ops: Inner | null
  /** Of the built-in page. */
  readonly admin: Inner | null
  /** What opens the page, where the config has no `admin_token`: to be shown to whoever started it, and to nobody else. */
  readonly adminToken: string
  readonly ledger: Ledger
  /** Of the config, for an operator's eyes. */
  readonly warnings: readonly string[]
  /** Holds that the last run left open, ended by this start. */
  readonly recovered: readonly OpenHold[]
  readonly #parts: Parts
  #files: readonly string[]
  #configProblem: string | null = null
  /** Settings of the file that differ from what runs. */
  #restart: readonly string[] = []
  #reloading: Promise<unknown> = Promise.resolve()
  #stopped: Promise<void> | null = null

  /** Starts one. Throws a ConfigError, or an Error of the ledger or a listener, and leaves nothing running. */
  static async start(options: GatewayOptions): Promise<Gateway> {
    const clock = steady(options.clock ?? systemClock)
    // Before the file is read: a change while the gateway starts must not be missed.
    let gateway: Gateway | undefined
    let changed = false
    const watch = watchConfig(options.file, [], () => {
      changed = true
      void gateway?.reload()
    })
    const undo: (() => unknown)[] = [() => watch.close()]
    try {
      const { loaded, providers } = await readConfig(options.file, options.env, watch.read)
      const { config, warnings, files } = loaded
      watch.follow(files)
      const log = options.log(config)
      let metrics: Metrics | undefined
      const ledger = await openLedger({
        ...config.ledger,
        observe: { commit: (seconds, operations) => metrics?.ledgerCommit(seconds, operations) },
      })
      undo.unshift(() => ledger.close())
      const recovered = await ledger.recover(clock.now())
      // At once: of a start that fails, the next one finds nothing to tell of.
      for (const hold of recovered) tellReleased(hold, 'a hold that the last run left open was released', log)
      const health = new Health(report => {
        tellHealth(report, log)
        showTargets()
      })
      const showTargets = (): void => {
        if (metrics !== undefined) showHealth(serving.runtime.config, crew ?? health, metrics, clock.monotonic())
      }
      let crew: Crew | null = null
      const calibrations = new Calibrations(await ledger.calibrations(), kept => ledger.keep(kept), unkept(log))
      const services = createServices({ ledger, clock, log, health, calibrations, bodies: new Room(), metrics: () => metrics })
      const facts: SetUpFacts = { ledger, log, services }
      const runtime = await setUp(config, providers, facts)
      // Not closed over: what lives on here would keep the first config with it.
      undo.unshift(closeRuntime.bind(null, runtime))
      metrics = createMetrics({
        version: VERSION,
        node: process.version,
        sqlite: sqliteVersion(),
        labels: labelsOf(runtime),
        collect: () => collect(serving.runtime, ledger, calibrations, clock.now()),
        failed: error => log.warn('a scrape went without the figures of the ledger', { error }),
        process: true,
      })
      for (const { record } of recovered) metrics.recovered(1, record.model)
      showHealth(config, health, metrics, clock.monotonic())
      const recent = new Recent(on => crew?.watch(on))
      if (config.workers > 1) {
        crew = await startCrew(config, runtime, {
          ledger,
          clock,
          log,
          metrics,
          recent,
          calibrations,
          released: hold => {
            metrics?.recovered(1, hold.record.model)
            tellReleased(hold, 'a hold that a worker left open was released', log)
          },
          healthTold: () => gateway !== undefined && showTargets(),
        })
      }
      const serving: Serving | Crew = crew ?? new Serving(runtime, { services, log, metrics, recent })
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
      const checks = (): readonly Check[] => gateway?.checks() ?? []
      const failed = (error: unknown): void => log.warn('the ops listener failed to answer', { error })
      const ops =
        config.ops === null
          ? null
          : await startOps({ address: config.ops, metrics: crew === null ? metrics : ofAll(crew, metrics), checks, failed })
      undo.unshift(async () => ops?.close())
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
      undo.unshift(async () => admin?.close())
      const state = (): State => {
        const { open_holds, held_rial, oldest_hold_at } = ledger.stats()
        return { at: clock.now(), version: VERSION, in_flight: serving.inFlight, open_holds, held_rial, oldest_hold_at }
      }
      const control = await openControl(ledger, config, { recent, state }, log)
      const begun = lasting(config)
      const retention = keepRetention(config, { ledger, clock, log, runtime: () => serving.runtime })
      undo.unshift(() => retention?.close())
      gateway = new Gateway({
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
      })
      if (changed) void gateway.reload()
      return gateway
    } catch (error) {
      for (const step of undo) await step()
      throw error
    }
  }

  private constructor(parts: Parts) {
    const { listener, ops, admin, adminToken, ledger, warnings, files, recovered } = parts
    this.#parts = parts
    this.listener = listener
    this.ops = ops
    this.admin = admin
    this.adminToken = adminToken
    this.ledger = ledger
    this.warnings = warnings
    this.recovered = recovered
    this.#files = files
  }

  /** The one that new requests run under. */
  get config(): Config {
    return this.#parts.serving.runtime.config
  }

  /** What has to hold for requests to be sent here. A provider that is down is not among it: that would take its pod with it. */
  checks(): readonly Check[] {
    const { serving, ledger, services, crew } = this.#parts
    const { failure } = ledger
    const now = services.clock.monotonic()
    return [
      { name: 'config', ok: true, ...this.#configReason() },
      failure === null ? { name: 'ledger', ok: true } : { name: 'ledger', ok: false, reason: failure },
      serving.draining ? { name: 'draining', ok: false, reason: 'the gateway is stopping' } : { name: 'draining', ok: true },
      ...(crew === null ? targetChecks(services.health.reports(now)) : crew.checks(now)),
    ]
  }

  #configReason(): { readonly reason?: string } {
    if (this.#configProblem !== null) return { reason: `the file on disk is bad, an older config runs: ${this.#configProblem}` }
    if (this.#restart.length > 0) return { reason: `the file on disk changes what takes a restart: ${this.#restart.join(', ')}` }
    return {}
  }

  /** Reads the config again. False: it is bad, which is logged, and everything stays as it was. Reloads run one after the other. */
  reload(): Promise<boolean> {
    const done = this.#reloading.then(() => this.#reload())
    this.#reloading = done
    return done
  }

  async #reload(): Promise<boolean> {
    const { options, serving, crew, metrics, log, watch } = this.#parts
    if (this.#stopped !== null) return false
    let files = this.#files
    let runtime: Runtime | undefined
    try {
      const { loaded, providers } = await readConfig(options.file, options.env, watch.read)
      files = loaded.files
      watch.follow([...this.#files, ...files])
      this.#goesOn()
      const before = serving.runtime
      const config = inWindowsOf(before.config, loaded.config)
      runtime = await setUp(config, providers, this.#parts, before)
      this.#goesOn()
      if (crew !== null) await crew.change(config)
      this.#goesOn()
      this.#put(loaded, runtime)
      void serving.switch(runtime).then(() => this.#close(before))
      log.info('the config was reloaded', { file: loaded.config.file })
      return true
    } catch (error) {
      if (runtime !== undefined) await this.#close(runtime)
      if (this.#stopped !== null) return false
      // A change of a file that the bad config names may mend it.
      const named = error instanceof ConfigError ? error.files : []
      watch.follow([...this.#files, ...files, ...named])
      this.#configProblem = (error as Error).message
      metrics.configReload(false)
      for (const line of this.#configProblem.split('\n')) log.error(`the config was not reloaded: ${line}`)
      return false
    }
  }

  /** Throws once the gateway stops: what is closed by then must not be put to use. */
  #goesOn(): void {
    if (this.#stopped !== null) throw new Error('the gateway is stopping')
  }

  /** Never rejects: whoever closes it goes on in any case. */
  async #close(runtime: Runtime): Promise<void> {
    await closeRuntime(runtime).catch(error => this.#parts.services.fault('what a config had set up could not be closed', error))
  }

  /** What lies outside of a runtime becomes as this config says. */
  #put(loaded: Loaded, runtime: Runtime): void {
    const { begun, serving, crew, metrics, log, listener, watch, services, places } = this.#parts
    const { config, files, warnings, at } = loaded
    if (this.admin !== null) places.at = at
    if (config.tls !== null) listener.secure(config.tls)
    listener.limit(config.limits.connections)
    for (const warning of warnings) log.warn(warning)
    this.#restart = [...lasting(config)].filter(([setting, text]) => begun.get(setting) !== text).map(([setting]) => setting)
    for (const setting of this.#restart) log.warn(`a change of ${setting} takes a restart; the old value stays`)
    log.setLevel(config.log.level)
    metrics.labels(labelsOf(runtime))
    services.health.keep(targetNames(runtime, serving.runtime))
    showHealth(config, crew ?? services.health, metrics, services.clock.monotonic())
    this.#files = files
    watch.follow(files)
    this.#configProblem = null
    metrics.configReload(true)
  }

  /** Lets what is under way end (`drain_timeout`), a reload too, then stops everything. Called again, it is the same stop. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop()
    return this.#stopped
  }

  async #stop(): Promise<void> {
    const { serving, listener, ops, admin, control, retention, ledger, log, watch, services } = this.#parts
    watch.close()
    await retention?.close().catch(() => {})
    const { drain_timeout } = serving.runtime.config
    const reloaded = within(drain_timeout, this.#reloading)
    await serving.drain(drain_timeout)
    await listener.close()
    await reloaded
    await this.#close(serving.runtime)
    await services.offload.close()
    await control?.close()
    await services.calibrations.flush().catch(unkept(log))
    await ledger.close()
    await admin?.close()
    await ops?.close()
    await log.drained()
  }
}

/** Resolves when this has, or after so many milliseconds: a policy may never come to be made. */
async function within(ms: number, done: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>(resolve => {
    timer = setTimeout(resolve, ms)
  })
  await Promise.race([done, late])
  clearTimeout(timer)
}

/** Tells of a hold that nobody was left to end. */
function tellReleased({ id, record: { model, key, held_rial } }: OpenHold, message: string, log: Log): void {
  log.warn(message, { request_id: id, model, rial: held_rial, ...(key === null ? {} : { key }) })
}

/** Requests go on without it: the next start begins with what was kept before. */
function unkept(log: Log): (error: unknown) => void {
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
async function startCrew(...of: Parameters<typeof Crew.start>): Promise<Crew> {
  const { Crew } = await import('./workers/crew.js')
  return Crew.start(...of)
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
