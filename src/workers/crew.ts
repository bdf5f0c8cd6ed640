import cluster from 'node:cluster'
import type { UnderWay } from '../admin/live.js'
import { RUNNING } from '../admin/live.js'
import type { Clock } from '../clock.js'
import type { Config } from '../config/config.js'
import type { Check } from '../http/ops.js'
import type { OpenHold } from '../ledger/ledger.js'
import type { SqliteLedger } from '../ledger/sqlite.js'
import type { Calibrations } from '../metering/calibrations.js'
import type { Runtime } from '../runtime.js'
import type { Log } from '../telemetry/log.js'
import type { Metrics } from '../telemetry/metrics.js'
import type { Recent } from '../telemetry/recent.js'
import type { Report } from '../upstream/health.js'
import { prepareAll, switchAll } from './change.js'
import { merged, mergedChecks } from './health.js'
import type { Order, Tidings, Word } from './messages.js'
import { Post } from './post.js'
import { WorkerProcess } from './worker-process.js'

/** Before one that ended too soon is started again; it doubles each time. Milliseconds. */
const PAUSE_MS = 100
const PAUSE_MAX_MS = 30_000
/** One that has lived for so long is started again at once. Milliseconds. */
const LIVED_MS = 10_000
/** For a worker to begin, to make ready for a config, and to run it. Milliseconds. */
const PREPARE_MS = 30_000
/** For a worker to end, once it has drained. Milliseconds. */
const END_MS = 5_000
/** For workers to tell what has happened, before a scrape goes on without. Milliseconds. */
const TELL_MS = 1_000
/** How often it is looked whether each worker still answers, and how long it may not have. It is counted in looks: who stood still may have been this process. Milliseconds. */
const LOOK_MS = 2_000
const SILENT_MS = 20_000

export interface CrewFacts {
  readonly ledger: SqliteLedger
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  readonly recent: Recent
  readonly calibrations: Calibrations
  /** A hold that a worker has left open was released. */
  readonly released: (hold: OpenHold) => void
  /** What workers say of targets has changed, or may have. */
  readonly healthTold: () => void
}

/**
 * The workers of a gateway, at their owner's: keeps so many running, has all of them change their config or none, and knows together what each knows. The
 * address is the owner's, and each connection is given to the worker whose turn it is: it ends with the owner.
 */
export class Crew {
  readonly #facts: CrewFacts
  readonly #posts: readonly Post[]
  #config: Config
  /** How many changes of it there were. */
  #changes = 0
  #runtime: Runtime
  /** What workers are told to listen on. */
  #port: number
  #address = { host: '', port: 0 }
  /** Whom to tell that it is had. */
  #bound: (() => void) | null = null
  #draining = false
  /** A post whose worker has ended is taken by another one. */
  #keeps = false
  #closing = false
  readonly #pauses = new Set<NodeJS.Timeout>()
  readonly #looks = setInterval(() => this.#look(), LOOK_MS).unref()

  /** `runtime`: the owner's own, no request runs under it. */
  constructor(config: Config, runtime: Runtime, facts: CrewFacts) {
    if (!cluster.isPrimary) throw new Error('workers: more than one can not be had in a process that is a worker of another program itself')
    this.#facts = facts
    this.#config = config
    this.#runtime = runtime
    this.#port = config.listen.port
    this.#posts = Array.from({ length: config.workers }, (_, i) => new Post(i + 1))
  }

  /**
   * Starts them, and resolves when all listen. Rejects with what one of them could not do, and leaves none running. `open` is called when the address is had,
   * before anything that comes there has asked the ledger; what it rejects with, this does.
   */
  async start(open: () => Promise<void>): Promise<void> {
    const opened = new Promise<void>(resolve => {
      this.#bound = () => resolve(open())
    })
    try {
      await Promise.all([opened, ...this.#posts.map(post => this.#begun(post))])
      this.#keeps = true
    } catch (error) {
      await this.#kill()
      throw error
    }
  }

  get host(): string {
    return this.#address.host
  }

  get port(): number {
    return this.#address.port
  }

  get runtime(): Runtime {
    return this.#runtime
  }

  get draining(): boolean {
    return this.#draining
  }

  get inFlight(): number {
    return this.underWay().count
  }

  /** As it was told last: at most a second ago, or 200 ms while somebody watches. */
  underWay(): UnderWay {
    const all = this.#posts.flatMap(({ tidings }) => tidings?.underWay ?? [])
    const oldest = all.flatMap(({ oldest }) => oldest).sort((a, b) => a.at - b.at)
    return { count: all.reduce((sum, { count }) => sum + count, 0), oldest: oldest.slice(0, RUNNING) }
  }

  /** What the workers know of targets, as one. `now`: of the monotonic clock. */
  reports(now: number): Report[] {
    return merged(this.#reports(now))
  }

  /** Ready, while any worker takes requests: one that is started anew must not take the others along. */
  checks(now: number): Check[] {
    const up = this.#posts.filter(({ state }) => state === 'up').length
    const all = this.#posts.length
    const reason = up === all ? {} : { reason: `${up} of ${all} take requests` }
    return [{ name: 'workers', ok: up > 0, ...reason }, ...mergedChecks(this.#reports(now))]
  }

  /**
   * Makes all workers run this config. Rejects with what keeps one of them from it; then all go on as they were. `open` is called when they are sure to, before
   * anything has asked the ledger under it; what it rejects with, this does.
   */
  async change(config: Config, open: () => Promise<void>): Promise<void> {
    const change = ++this.#changes
    await prepareAll(this.#posts, { change, config }, PREPARE_MS)
    // In the same turn: who begins from now on begins with it, and nobody has begun with the one before who is not ready.
    this.#config = config
    const [, behind] = await Promise.all([open(), switchAll(this.#posts, change, PREPARE_MS)])
    for (const post of behind) {
      this.#facts.log.error('a worker does not run the new config, and is ended once its requests have', { worker: post.number })
      void this.#leave(post)
    }
  }

  /** The owner's own runtime from now on. */
  switch(runtime: Runtime): Promise<void> {
    this.#runtime = runtime
    return Promise.resolve()
  }

  /** Somebody watches requests as they end, or nobody does any more. */
  watch(on: boolean): void {
    for (const { process } of this.#posts) process?.tell({ kind: 'watch', on })
  }

  /** Resolves when all workers have told what has happened so far, or have been too slow to. */
  async gather(): Promise<void> {
    const up = this.#posts.filter(({ state }) => state === 'up')
    await Promise.all(up.map(post => post.asked({ kind: 'tell' }, 'tidings', TELL_MS)))
  }

  /** As `Serving` does, in all of them. */
  async drain(timeoutMs: number): Promise<void> {
    this.#draining = true
    this.#keeps = false
    for (const pause of this.#pauses) clearTimeout(pause)
    await Promise.all(
      this.#posts.map(async post => {
        if (post.state === 'starting') post.process?.kill()
        else if (post.state === 'leaving') await post.gone()
        else if (post.state === 'up') await drained(post, timeoutMs)
      }),
    )
  }

  /** Ends them. */
  async close(): Promise<void> {
    this.#keeps = false
    this.#closing = true
    clearInterval(this.#looks)
    await Promise.all(
      this.#posts.map(async post => {
        if (post.state === 'up') await over(post)
        else post.process?.kill()
        await post.gone()
      }),
    )
  }

  // Each worker does these for its own part of the address, by the config that it runs.
  secure(): void {}
  limit(): void {}

  #reports(now: number): Report[][] {
    return this.#posts.flatMap(({ tidings, told }) => {
      if (tidings === null) return []
      return [tidings.health.map(report => ({ ...report, waitMs: Math.max(0, report.waitMs - (now - told)) }))]
    })
  }

  /** Starts the worker of a post. Resolves when it listens; rejects with what it could not do. */
  #begun(post: Post): Promise<void> {
    const { ledger, clock, log, calibrations, recent } = this.#facts
    // Those that are left share what the first was told; a free port of the system's is another one once none is left.
    if (this.#address.port !== 0 && this.#posts.every(({ state }) => state !== 'up')) this.#port = this.#address.port
    post.state = 'starting'
    post.ready = 0
    post.silent = 0
    post.since = clock.monotonic()
    const process = new WorkerProcess({
      number: post.number,
      ledger,
      now: () => clock.now(),
      word: word => this.#heard(post, word),
      lines: text => log.lines(text),
      gone: (how, left) => this.#ended(post, how, left),
    })
    post.process = process
    const begun = post.begun()
    const taught = calibrations.all()
    process.tell({
      kind: 'begin',
      config: this.#config,
      workers: this.#posts.length,
      port: this.#port,
      form: log.form,
      now: clock.now(),
      taught,
      watched: recent.on,
    })
    return begun
  }

  #heard(post: Post, word: Word): void {
    const { metrics, recent, calibrations, clock, healthTold } = this.#facts
    post.silent = 0
    switch (word.kind) {
      case 'listening':
        if (this.#address.port === 0) {
          this.#address = { host: word.host, port: word.port }
          this.#bound?.()
          this.#bound = null
        }
        // Another free port than the others had, who all ended in the meantime.
        if (word.port !== this.#address.port) {
          post.process?.kill()
          return
        }
        post.state = 'up'
        metrics.worker(post.number, true)
        break
      case 'ended':
        if (recent.on) for (const exchange of word.exchanges) recent.take(exchange)
        break
      case 'tidings': {
        this.#flights(post.tidings, word)
        metrics.add(word.gathered)
        metrics.workerUse(post.number, word.cpuSeconds, word.residentBytes)
        post.tidings = word
        post.told = clock.monotonic()
        healthTold()
        if (word.samples.length === 0) break
        const order: Order = { kind: 'learn', taught: calibrations.teach(word.samples) }
        for (const { process, state } of this.#posts) if (state === 'up') process?.tell(order)
        break
      }
      default:
        break
    }
    post.heard(word)
  }

  /** A worker that hangs keeps its connections waiting, and is given new ones: it is ended, and another takes its place. */
  #look(): void {
    for (const post of this.#posts) {
      if (post.process === null) continue
      const patienceMs = post.state === 'starting' ? PREPARE_MS : SILENT_MS
      // Once: what it has left open may take its time to end.
      if (++post.silent === patienceMs / LOOK_MS) {
        this.#facts.log.error('a worker does not answer, and is ended', { worker: post.number, ms: patienceMs })
        post.process.kill()
      } else if (post.silent > 1 && post.state !== 'starting') post.process.tell({ kind: 'tell' })
    }
  }

  /** Its worker takes no more connections, and ends when what it has under way has: another one takes its place then. */
  async #leave(post: Post): Promise<void> {
    post.state = 'leaving'
    post.process?.tell({ kind: 'stop' })
    await drained(post, this.#config.drain_timeout)
    await over(post)
  }

  #flights(before: Tidings | null, now: Tidings | null): void {
    const change = new Map<string, number>()
    for (const [surface, count] of now?.gathered.inFlight ?? []) change.set(surface, count)
    for (const [surface, count] of before?.gathered.inFlight ?? []) change.set(surface, (change.get(surface) ?? 0) - count)
    // Of one that came and went between two tellings, too: its series is 0 from then on, as in one process.
    for (const [surface, by] of change) this.#facts.metrics.inFlight(surface, by)
  }

  /** A worker has ended. Unless it was to, another one takes its post. */
  #ended(post: Post, how: string, left: readonly OpenHold[] | Error): void {
    const { log, metrics, clock, released } = this.#facts
    if (left instanceof Error)
      log.error('what a worker has left open could not be released: the next start does it', { worker: post.number, error: left })
    else for (const hold of left) released(hold)
    this.#flights(post.tidings, null)
    const begun = post.state !== 'starting'
    post.state = 'ended'
    post.process = null
    post.tidings = null
    post.heard(null)
    if (this.#closing) return
    metrics.worker(post.number, false)
    const lived = clock.monotonic() - post.since
    post.pauseMs = begun && lived >= LIVED_MS ? 0 : Math.min(PAUSE_MAX_MS, Math.max(PAUSE_MS, post.pauseMs * 2))
    log.error('a worker has ended', { worker: post.number, reason: how, ms: post.pauseMs })
    if (this.#keeps) this.#again(post)
  }

  #again(post: Post): void {
    const pause = setTimeout(() => {
      this.#pauses.delete(pause)
      this.#begun(post).then(
        () => this.#facts.log.info('a worker has taken the place of one that had ended', { worker: post.number }),
        error => {
          // Where the process has ended, that has been told, and another try is on its way.
          this.#facts.log.error('a worker could not begin', { worker: post.number, error })
          post.process?.kill()
        },
      )
    }, post.pauseMs)
    this.#pauses.add(pause)
  }

  async #kill(): Promise<void> {
    this.#closing = true
    clearInterval(this.#looks)
    for (const { process } of this.#posts) process?.kill()
    await Promise.all(this.#posts.map(post => post.gone()))
  }
}

/** Its worker has let end what was under way, or is ended where it does not. */
async function drained(post: Post, timeoutMs: number): Promise<void> {
  const answer = await post.asked({ kind: 'drain', timeoutMs }, 'drained', timeoutMs + END_MS)
  if (answer === 'late') post.process?.kill()
}

/** Has its worker end. Resolves when nobody has the post. */
async function over(post: Post): Promise<void> {
  const late = setTimeout(() => post.process?.kill(), END_MS)
  post.process?.tell({ kind: 'end' })
  await post.gone()
  clearTimeout(late)
}
