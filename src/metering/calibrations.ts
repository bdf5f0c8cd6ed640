import type { Model } from '../config/config.js'
import type { Estimate } from '../endpoints/endpoint.js'
import type { KeptCalibration } from '../ledger/calibration-book.js'
import { Calibration, type Correction, UNCORRECTED } from './calibration.js'
import { familyOf } from './tokenizers.js'
import type { Usage } from './usage.js'

/** Raised when raw estimates change: what was learned of others does not hold for them. */
const ESTIMATES = 2

/** So many samples of a model may be lost by a crash. */
const SAMPLES_UNKEPT_MAX = 32

interface Entry {
  readonly model: string
  readonly basis: string
  calibration: Calibration
  unkept: number
}

/** What a request has taught: what its provider reported over what was estimated. */
export interface Sample {
  readonly model: string
  readonly basis: string
  readonly ratio: number
}

/** The corrections of all models, learned while requests are settled. One for the process; it outlives configs. */
export class Calibrations {
  readonly #entries = new Map<string, Entry>()
  readonly #known = new WeakMap<Model, Entry | null>()
  readonly #keep: (kept: readonly KeptCalibration[]) => Promise<void>
  readonly #failed: (error: unknown) => void
  readonly #learned: (sample: Sample) => void

  /**
   * `kept`: what earlier runs have learned; what can not be read of it is learned anew. `keep` makes it durable; `failed` hears why it did not. `learned`
   * hears of each sample.
   */
  constructor(
    kept: Iterable<KeptCalibration>,
    keep: (kept: readonly KeptCalibration[]) => Promise<void>,
    failed: (error: unknown) => void,
    learned: (sample: Sample) => void = () => {},
  ) {
    this.#keep = keep
    this.#failed = failed
    this.#learned = learned
    this.take(kept)
  }

  /** What another has learned of these models: it counts from now on, and nothing else does. */
  take(kept: Iterable<KeptCalibration>): void {
    for (const { model, basis, state } of kept) {
      const calibration = Calibration.read(state)
      if (calibration === null) continue
      const known = this.#entries.get(keyOf(model, basis))
      if (known === undefined) this.#entries.set(keyOf(model, basis), { model, basis, calibration, unkept: 0 })
      else known.calibration = calibration
    }
  }

  /** All that was learned, for another process to begin with. */
  all(): KeptCalibration[] {
    return [...this.#entries.values()].map(written)
  }

  /** Samples of other processes. Returns what their models have come to, for those processes to take. */
  teach(samples: readonly Sample[]): KeptCalibration[] {
    const taught = new Set<Entry>()
    for (const { model, basis, ratio } of samples) {
      const entry = this.#entryOf(model, basis)
      this.#learn(entry, ratio)
      taught.add(entry)
    }
    return [...taught].map(written)
  }

  /** The factors for a model's raw estimates. */
  of(model: Model): Correction {
    return this.#entry(model)?.calibration.correction ?? UNCORRECTED
  }

  /** The factors, and how many requests they are made of; `null` where nothing has been learned. */
  learned(model: Model): (Correction & { readonly samples: number }) | null {
    const calibration = this.#entry(model)?.calibration
    return calibration === undefined || calibration.samples === 0 ? null : { ...calibration.correction, samples: calibration.samples }
  }

  /**
   * A settled request: what was estimated of it, and what it used. Where the provider reported nothing, or where a part was counted by rule
   * (an image's ratio says nothing of texts), it teaches nothing.
   */
  learn(model: Model, estimate: Estimate, usage: Usage): void {
    if (usage.source !== 'provider' || usage.input === 0 || estimate.input === 0 || (estimate.fixed ?? 0) > 0) return
    const entry = this.#entry(model)
    if (entry === null) return
    this.#learn(entry, usage.input / estimate.input)
  }

  #learn(entry: Entry, ratio: number): void {
    entry.calibration.learn(ratio)
    this.#learned({ model: entry.model, basis: entry.basis, ratio })
    if (++entry.unkept >= SAMPLES_UNKEPT_MAX) this.#write([entry]).catch(this.#failed)
  }

  /** Keeps what has been learned and is not kept yet. */
  async flush(): Promise<void> {
    await this.#write([...this.#entries.values()].filter(entry => entry.unkept > 0))
  }

  async #write(entries: readonly Entry[]): Promise<void> {
    if (entries.length === 0) return
    for (const entry of entries) entry.unkept = 0
    await this.#keep(entries.map(written))
  }

  /** `null`: its estimate is a bound, not a guess. */
  #entry(model: Model): Entry | null {
    const known = this.#known.get(model)
    if (known !== undefined) return known
    const entry = familyOf(model) === 'bytes' ? null : this.#entryOf(model.id, `${ESTIMATES} ${familyOf(model)} ${model.upstream}`)
    this.#known.set(model, entry)
    return entry
  }

  #entryOf(model: string, basis: string): Entry {
    const key = keyOf(model, basis)
    const entry = this.#entries.get(key) ?? { model, basis, calibration: new Calibration(), unkept: 0 }
    this.#entries.set(key, entry)
    return entry
  }
}

function written({ model, basis, calibration }: Entry): KeptCalibration {
  return { model, basis, state: calibration.write() }
}

function keyOf(model: string, basis: string): string {
  return `${model}\n${basis}`
}
