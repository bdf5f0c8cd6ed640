import type { UnderWay } from '../admin/live.js'
import type { Sample } from '../metering/calibrations.js'
import type { Metrics } from '../telemetry/metrics.js'
import type { RecentExchange } from '../telemetry/recent.js'
import type { Report } from '../upstream/health.js'
import type { Word } from './messages.js'

/** How often a worker tells what has happened; and while somebody watches. Milliseconds. */
const TELL_MS = 1000
const WATCHED_MS = 200

export interface TellerFacts {
  readonly metrics: Pick<Metrics, 'gather'>
  readonly underWay: () => UnderWay
  readonly health: () => readonly Report[]
  readonly say: (word: Word) => void
}

/** Tells the owner what has happened in a worker: not one by one, and nothing where nothing has. */
export class Teller {
  readonly #facts: TellerFacts
  #samples: Sample[] = []
  #ended: RecentExchange[] = []
  #used = process.cpuUsage()
  /** Of what was told last that is not told again while it is the same. */
  #shown = ''
  #timer: NodeJS.Timeout

  constructor(facts: TellerFacts) {
    this.#facts = facts
    this.#timer = this.#every(TELL_MS)
  }

  set watched(on: boolean) {
    clearInterval(this.#timer)
    this.#timer = this.#every(on ? WATCHED_MS : TELL_MS)
  }

  learned(sample: Sample): void {
    this.#samples.push(sample)
  }

  ended(exchange: RecentExchange): void {
    this.#ended.push(exchange)
  }

  /** Tells now, whatever there is. */
  tell(): void {
    this.#tell(true)
  }

  /** Tells for the last time. */
  close(): void {
    clearInterval(this.#timer)
    this.#tell(true)
  }

  #every(ms: number): NodeJS.Timeout {
    return setInterval(() => this.#tell(false), ms).unref()
  }

  #tell(all: boolean): void {
    const { metrics, underWay, health, say } = this.#facts
    if (this.#ended.length > 0) say({ kind: 'ended', exchanges: this.#ended })
    this.#ended = []
    const gathered = metrics.gather()
    const reports = health()
    const under = underWay()
    const shown = JSON.stringify([gathered.inFlight, reports.map(report => ({ ...report, waitMs: 0 })), under.count, under.oldest[0]?.id])
    const quiet = gathered.counters.length + gathered.histograms.length + this.#samples.length === 0 && shown === this.#shown
    if (quiet && !all) return
    this.#shown = shown
    const { user, system } = process.cpuUsage(this.#used)
    this.#used = process.cpuUsage()
    say({
      kind: 'tidings',
      gathered,
      underWay: under,
      health: reports,
      samples: this.#samples,
      cpuSeconds: (user + system) / 1e6,
      residentBytes: process.memoryUsage.rss(),
    })
    this.#samples = []
  }
}
