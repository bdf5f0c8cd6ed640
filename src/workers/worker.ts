import type { Duplex } from 'node:stream'
import { createSecureContext } from 'node:tls'
import { deserialize, serialize } from 'node:v8'
import { underWay } from '../admin/live.js'
import { steady, systemClock } from '../clock.js'
import type { Config } from '../config/config.js'
import { type Listener, listen } from '../http/listener.js'
import { BODIES_BYTES_MAX, Room } from '../http/room.js'
import { Calibrations } from '../metering/calibrations.js'
import type { Runtime, Services } from '../runtime.js'
import { createServices } from '../services.js'
import { Serving } from '../serving.js'
import { closeRuntime, type SetUpFacts, setUp } from '../set-up.js'
import { targetNames, tellHealth } from '../telemetry/health.js'
import { labelsOf } from '../telemetry/labels.js'
import { createLog, droppedLine, type Log } from '../telemetry/log.js'
import { createMetrics, type Metrics } from '../telemetry/metrics.js'
import { createOutput } from '../telemetry/output.js'
import { Recent } from '../telemetry/recent.js'
import { Health } from '../upstream/health.js'
import { loadNamedProviders } from '../upstream/kinds.js'
import type { Provider } from '../upstream/providers/provider.js'
import { VERSION } from '../version.js'
import type { Change } from './change.js'
import { FRAME, Frames } from './frames.js'
import type { Beginning, Order, Word } from './messages.js'
import { RemoteLedger } from './remote-ledger.js'
import { share } from './share.js'
import { Teller } from './teller.js'

/** Characters of log lines that may wait for the owner. */
const LOG_PENDING_MAX = 8 * 1024 * 1024
/** Between two times that lines go over. Milliseconds. */
const LOG_REST_MS = 20

/** What runs in a worker once it has begun. */
interface Parts {
  readonly workers: number
  readonly facts: SetUpFacts
  readonly services: Services
  readonly metrics: Metrics
  readonly serving: Serving
  readonly listener: Listener
  readonly log: Log
  readonly recent: Recent
  readonly teller: Teller
}

/** A process that answers requests. All that it knows it has from the owner: the config, the ledger, when to begin and when to end. */
export class Worker {
  readonly #owner: Duplex
  readonly #frames: Frames
  readonly #ledger: RemoteLedger
  #parts: Parts | null = null
  /** Made ready for a switch. */
  #prepared: { readonly change: number; readonly runtime: Runtime } | null = null
  #leave: (() => void) | null = null
  #ending = false
  /** Orders are carried out one after the other. */
  #order: Promise<void> = Promise.resolve()

  constructor(owner: Duplex) {
    this.#owner = owner
    this.#frames = new Frames(owner, (kind, payload) => this.#receive(kind, payload))
    this.#ledger = new RemoteLedger(text => this.#frames.text(FRAME.operations, text))
  }

  /** It was told to end. */
  get ending(): boolean {
    return this.#ending
  }

  #receive(kind: number, payload: Buffer): void {
    if (kind === FRAME.answers) {
      this.#ledger.answered(payload.toString('utf8'))
      return
    }
    const order = deserialize(payload) as Order
    if (this.#parts === null || !this.#obey(order, this.#parts)) this.#order = this.#order.then(() => this.#carryOut(order))
  }

  /** What is done in no time does not wait for what is not. False: it is none of these. */
  #obey(order: Order, parts: Parts): boolean {
    switch (order.kind) {
      case 'watch':
        this.#watch(order.on, parts)
        return true
      case 'learn':
        parts.services.calibrations.take(order.taught)
        return true
      case 'tell':
        parts.teller.tell()
        return true
      case 'stop':
        parts.listener.stop()
        return true
      case 'drain':
        void parts.serving.drain(order.timeoutMs).then(() => this.#say({ kind: 'drained' }))
        return true
      default:
        return false
    }
  }

  #say(word: Word): void {
    this.#frames.bytes(FRAME.word, serialize(word))
  }

  /** Does not reject: what it could not do, it says. */
  async #carryOut(order: Order): Promise<void> {
    if (order.kind === 'begin') {
      await this.#begin(order).catch(error => this.#say(failure(error)))
      return
    }
    const parts = this.#parts
    if (parts === null || this.#obey(order, parts)) return
    if (order.kind === 'prepare') await this.#prepare(order, parts)
    else if (order.kind === 'switch') this.#say({ kind: 'switched', change: order.change, done: this.#switch(order.change, parts) })
    else if (order.kind === 'abandon') await this.#abandon()
    else await this.#end(parts)
  }

  async #begin({ config: whole, workers, port, form, now, taught, watched }: Beginning): Promise<void> {
    const config = share(whole, workers)
    const log = this.#log(form, config)
    const clock = steady(systemClock, now)
    const health = new Health(report => tellHealth(report, log))
    const calibrations = new Calibrations(
      taught,
      async () => {},
      () => {},
      sample => teller.learned(sample),
    )
    const services = createServices({
      ledger: this.#ledger,
      clock,
      log,
      health,
      calibrations,
      bodies: new Room(Math.floor(BODIES_BYTES_MAX / workers)),
      metrics: () => metrics,
    })
    const facts: SetUpFacts = { ledger: this.#ledger, log, services }
    const runtime = await setUp(config, await kindsOf(config), facts)
    const metrics = createMetrics({
      version: VERSION,
      node: process.version,
      sqlite: '',
      labels: labelsOf(runtime),
      // The owner shows them.
      collect: () => Promise.reject(new Error('a worker shows no metrics')),
      failed: () => {},
      process: false,
    })
    const recent = new Recent()
    const serving = new Serving(runtime, { services, log, metrics, recent })
    const teller = new Teller({
      metrics,
      underWay: () => underWay(serving.live),
      health: () => health.reports(clock.monotonic()),
      say: word => this.#say(word),
    })
    const listener = await listen({
      address: { ...config.listen, port },
      tls: config.tls,
      connectionsMax: config.limits.connections,
      shared: true,
      handle: serving.handle,
      newId: () => services.newId(clock.now()),
    })
    this.#parts = { workers, facts, services, metrics, serving, listener, log, recent, teller }
    this.#watch(watched, this.#parts)
    this.#say({ kind: 'listening', host: listener.host, port: listener.port })
  }

  /** Its lines go to the owner, which writes those of all: no line ends up within another. */
  #log({ format, color }: Beginning['form'], { log: { level } }: Config): Log {
    const now = Date.now
    const output = createOutput(
      { write: (text, done) => this.#frames.text(FRAME.lines, text, () => done()) },
      { pendingMax: LOG_PENDING_MAX, rest: LOG_REST_MS, dropped: droppedLine(format, color, now) },
    )
    return createLog({ format, level, color, output, now })
  }

  async #prepare({ change, config: whole }: Change, { workers, facts, serving }: Parts): Promise<void> {
    await this.#abandon()
    try {
      const config = share(whole, workers)
      // A switch can not fail any more.
      if (config.tls !== null) createSecureContext({ cert: config.tls.cert_pem, key: config.tls.key_pem, ca: config.tls.client_ca?.pem })
      this.#prepared = { change, runtime: await setUp(config, await kindsOf(config), facts, serving.runtime) }
      this.#say({ kind: 'prepared', change, problem: null })
    } catch (error) {
      this.#say({ kind: 'prepared', change, problem: (error as Error).message })
    }
  }

  /** False: this change is not the one that was made ready. */
  #switch(change: number, { serving, listener, metrics, log, services, facts }: Parts): boolean {
    if (this.#prepared?.change !== change) return false
    const { runtime } = this.#prepared
    this.#prepared = null
    const before = serving.runtime
    const { config } = runtime
    if (config.tls !== null) listener.secure(config.tls)
    listener.limit(config.limits.connections)
    log.setLevel(config.log.level)
    metrics.labels(labelsOf(runtime))
    services.health.keep(targetNames(runtime, before))
    void serving
      .switch(runtime)
      .then(() => closeRuntime(before))
      .catch(error => facts.services.fault('what an older config had set up could not be closed', error))
    return true
  }

  async #abandon(): Promise<void> {
    const prepared = this.#prepared
    this.#prepared = null
    if (prepared !== null) await closeRuntime(prepared.runtime)
  }

  #watch(on: boolean, { recent, teller }: Parts): void {
    teller.watched = on
    if (on) this.#leave ??= recent.watch(exchange => teller.ended(exchange))
    else this.#leave?.()
    if (!on) this.#leave = null
  }

  /** All that it has to say is said; the owner has the rest. */
  async #end({ listener, serving, services, teller, log }: Parts): Promise<void> {
    this.#ending = true
    await listener.close()
    await this.#abandon()
    await closeRuntime(serving.runtime)
    await services.offload.close()
    await this.#ledger.close()
    teller.close()
    await log.drained()
    this.#owner.end()
  }
}

async function kindsOf({ providers }: Config): Promise<ReadonlyMap<string, Provider>> {
  const kinds = new Set([...providers.values()].map(({ kind }) => kind))
  return (await loadNamedProviders([...kinds].join('\n'))).providers
}

function failure(error: unknown): Word {
  const { message, code, address, port } = error as NodeJS.ErrnoException & { readonly address?: string; readonly port?: number }
  return {
    kind: 'failed',
    message,
    ...(code === undefined ? {} : { code }),
    ...(address === undefined ? {} : { address }),
    ...(port === undefined ? {} : { port }),
  }
}
