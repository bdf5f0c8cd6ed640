import type { HealthSettings } from '../config/config.js'
import type { Trouble } from './trouble.js'

/** A target, as health knows it. */
export interface Patient {
  readonly name: string
  readonly provider: string
  /** `null`: it is never left alone. */
  readonly settings: HealthSettings | null
}

/**
 * `up`: it takes requests. `probe`: its time is over, and the next request may try it. `out`: it is left alone. `doubtful`: likewise, but for
 * failures that may have been the requests' own fault: it is asked when nobody else is left.
 */
export type Condition = 'up' | 'probe' | 'doubtful' | 'out'

/** What became of a request, as its target's health is concerned. `null`: nothing can be said. */
export type Finding = 'well' | Trouble | null

/** One target after a change, for logs, metrics and pages. */
export interface Report {
  readonly name: string
  readonly provider: string
  readonly up: boolean
  /** Failed requests in a row. */
  readonly failures: number
  /** Milliseconds until it is tried again; 0 where it is up. */
  readonly waitMs: number
  /** Left alone for its rate limit. */
  readonly limited: boolean
  /** Of the last failure, in one or two words; empty where there was none. */
  readonly why: string
}

/** Times the first ejection that the longest may be. */
const LONGEST = 32
/** A provider that asks to be left alone for longer is asked again all the same. Milliseconds. */
const LIMITED_MAX_MS = 3_600_000

interface State {
  readonly provider: string
  failures: number
  /** Of the monotonic clock; `null` while it is up. */
  until: number | null
  ejectionMs: number
  firm: boolean
  limited: boolean
  why: string
  probing: boolean
}

/**
 * What is known of targets from the requests that went there, and from nothing else: no request is made to find out. A target that fails so
 * often in a row is left alone for a time; then one request may try it, and what becomes of that decides. `now`: milliseconds, monotonic.
 */
export class Health {
  readonly #states = new Map<string, State>()
  readonly #changed: (report: Report) => void

  /** `changed` hears of each target that goes out or comes back. */
  constructor(changed: (report: Report) => void = () => {}) {
    this.#changed = changed
  }

  condition(name: string, now: number): Condition {
    const state = this.#states.get(name)
    if (state === undefined || state.until === null) return 'up'
    if (now < state.until || state.probing) return state.firm ? 'out' : 'doubtful'
    return 'probe'
  }

  /** A request goes there. Whoever is told of it has to tell of its end, once. */
  enter(patient: Patient, now: number): Visit {
    const { name } = patient
    let state = this.#states.get(name)
    if (state === undefined) {
      state = { provider: patient.provider, failures: 0, until: null, ejectionMs: 0, firm: false, limited: false, why: '', probing: false }
      this.#states.set(name, state)
    }
    const probe = this.condition(name, now) === 'probe'
    if (probe) state.probing = true
    return new Visit(this, patient, state, probe)
  }

  /** For visits alone: what became of one. */
  left(patient: Patient, state: State, finding: Finding, at: number, probe: boolean): void {
    if (probe) state.probing = false
    if (finding === 'well') this.#well(patient.name, state)
    else if (finding !== null) this.#ill(patient, state, finding, at, probe)
  }

  /** Milliseconds until the target takes requests again; 0 where it does, or is being tried. */
  waitMs(name: string, now: number): number {
    const until = this.#states.get(name)?.until ?? null
    return until === null ? 0 : Math.max(0, until - now)
  }

  /** Is it its rate limit that it is left alone for? */
  limited(name: string): boolean {
    const state = this.#states.get(name)
    return state !== undefined && state.until !== null && state.limited
  }

  /** Every target that was asked so far. */
  reports(now: number): Report[] {
    return [...this.#states].map(([name, state]) => reportOf(name, state, now))
  }

  /** Forgets targets that are no more. */
  keep(names: ReadonlySet<string>): void {
    for (const name of this.#states.keys()) if (!names.has(name)) this.#states.delete(name)
  }

  #well(name: string, state: State): void {
    const wasOut = state.until !== null
    state.failures = 0
    state.until = null
    state.ejectionMs = 0
    state.limited = false
    if (wasOut) this.#changed(reportOf(name, state, 0))
  }

  #ill({ name, settings }: Patient, state: State, trouble: Trouble, now: number, probe: boolean): void {
    if (settings === null || trouble.against === null) return
    state.why = trouble.why ?? ''
    const wasUp = state.until === null
    if (trouble.against === 'limit') {
      if (trouble.waitS === undefined) return
      const until = now + Math.min(LIMITED_MAX_MS, Math.ceil(trouble.waitS * 1000))
      if (state.until !== null && state.until >= until) return
      Object.assign(state, { until, firm: true, limited: true })
    } else {
      state.failures++
      // A request that was under way when it went out says nothing new.
      if (!wasUp && !probe) return
      if (wasUp && state.failures < settings.failures) return
      const longest = settings.ejection * LONGEST
      state.ejectionMs = wasUp || state.ejectionMs === 0 ? settings.ejection : Math.min(longest, state.ejectionMs * 2)
      Object.assign(state, { until: now + state.ejectionMs, firm: trouble.against === 'firm', limited: false })
    }
    if (wasUp) this.#changed(reportOf(name, state, now))
  }
}

/** A request that is at a target. */
export class Visit {
  readonly #health: Health
  readonly #patient: Patient
  readonly #state: State
  readonly #probe: boolean
  #over = false

  constructor(health: Health, patient: Patient, state: State, probe: boolean) {
    this.#health = health
    this.#patient = patient
    this.#state = state
    this.#probe = probe
  }

  /** It is over. Only the first word counts. */
  leave(finding: Finding, now: number): void {
    if (this.#over) return
    this.#over = true
    this.#health.left(this.#patient, this.#state, finding, now, this.#probe)
  }
}

function reportOf(name: string, { provider, failures, until, limited, why }: State, now: number): Report {
  return { name, provider, up: until === null, failures, waitMs: until === null ? 0 : Math.max(0, until - now), limited, why }
}
