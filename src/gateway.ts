import type { Config } from './config/config.js'
import type { Loaded } from './config/load.js'
import { ConfigError } from './config/problems.js'
import type { Inner } from './http/inner.js'
import type { Check } from './http/ops.js'
import { inWindowsOf, lasting } from './lasting.js'
import type { Ledger, OpenHold } from './ledger/ledger.js'
import { readConfig } from './read-config.js'
import type { Runtime } from './runtime.js'
import { closeRuntime, openAccounts, setUp } from './set-up.js'
import { type GatewayOptions, type Parts, start, unkept } from './start.js'
import { showHealth, targetChecks, targetNames } from './telemetry/health.js'
import { labelsOf } from './telemetry/labels.js'

/** A gateway that serves: a config, wired into running parts. */
export class Gateway {
  readonly listener: Parts['listener']
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
    let gateway: Gateway | undefined
    let changed = false
    const parts = await start(options, {
      changed: () => {
        changed = true
        void gateway?.reload()
      },
      checks: () => gateway?.checks() ?? [{ name: 'start', ok: false, reason: 'the gateway is starting' }],
    })
    gateway = new Gateway(parts)
    if (changed) void gateway.reload()
    return gateway
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
      // Not closed over: what waits for the last request under the config before would keep this one with it.
      const open = this.#open.bind(this, config)
      await (crew === null ? open() : crew.change(config, open))
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

  async #open(config: Config): Promise<void> {
    this.#goesOn()
    await openAccounts(config, this.#parts.ledger, this.#parts.services.clock.now())
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
