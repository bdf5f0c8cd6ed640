/*
 * What providers report for a model's input teaches how far its raw estimate is off. The ratios reported / estimated are kept as a histogram in
 * log space: each sample counts once, in a bin of 2 %, between a floor and a ceiling; so no sample, however wrong, weighs more than any other.
 */

/** Ratios beyond these count as these, and no correction goes beyond them. */
export const RATIO_MIN = 0.5
export const RATIO_MAX = 3

/** Until so many samples are there, nothing is corrected. */
export const SAMPLES_MIN = 32

/** When so many are there, all counts are halved: what was learned of late counts more, and what is over is forgotten. */
export const SAMPLES_MAX = 1024

/** Factors for a raw estimate, each from RATIO_MIN to RATIO_MAX; `typical` is never above `upper`. */
export interface Correction {
  /** The median: what an input most likely comes to. */
  readonly typical: number
  /** What few inputs come to more than: one in two hundred, if those that come are like those that were. */
  readonly upper: number
}

export const UNCORRECTED: Correction = { typical: 1, upper: 1 }

const WIDTH = 0.02
const BINS = Math.ceil(Math.log(RATIO_MAX / RATIO_MIN) / WIDTH)
/** The middle of each bin, and where it ends. */
const MIDDLES = Array.from({ length: BINS }, (_, bin) => RATIO_MIN * Math.exp((bin + 0.5) * WIDTH))
const EDGES = Array.from({ length: BINS }, (_, bin) => RATIO_MIN * Math.exp((bin + 1) * WIDTH))
const UPPER = 0.995
/** On top of the largest that was seen: the next may be larger. With 50 samples it leaves some 0.5 % of inputs above the hold, where 5 % were. */
const MARGIN = 1.07
/** How far `upper` may be from the median, in steps from there to the nine tenths: what lies beyond is an accident or a lie, not a tail. */
const STEPS = 3
const STEP_MIN = 0.02

/** What one model's inputs have taught. */
export class Calibration {
  readonly #counts = new Uint16Array(BINS)
  #samples = 0
  #correction: Correction | null = UNCORRECTED

  /** A ratio that is no positive number teaches nothing. */
  learn(ratio: number): void {
    if (!(ratio > 0)) return
    if (this.#samples >= SAMPLES_MAX) this.#halve()
    this.#add(binOf(ratio), 1)
  }

  /** How many samples count now; it falls by half when there are SAMPLES_MAX. */
  get samples(): number {
    return this.#samples
  }

  get correction(): Correction {
    this.#correction ??= this.#samples < SAMPLES_MIN ? UNCORRECTED : this.#corrected()
    return this.#correction
  }

  /** For `read`: the bins that are not empty, as JSON: `[[bin, count], …]`. */
  write(): string {
    return JSON.stringify([...this.#counts].map((count, bin) => [bin, count]).filter(([, count]) => count !== 0))
  }

  /** What `write` has written; `null` where it has not. */
  static read(text: string): Calibration | null {
    const calibration = new Calibration()
    for (const pair of pairsOf(text) ?? [null]) {
      if (!Array.isArray(pair) || pair.length !== 2) return null
      const [bin, count] = pair as unknown[]
      if (!isWhole(bin, 0, BINS - 1) || !isWhole(count, 1, SAMPLES_MAX - calibration.#samples)) return null
      calibration.#add(bin, count)
    }
    return calibration
  }

  #add(bin: number, count: number): void {
    this.#counts[bin] = (this.#counts[bin] as number) + count
    this.#samples += count
    this.#correction = null
  }

  #halve(): void {
    this.#samples = 0
    for (let bin = 0; bin < BINS; bin++) this.#samples += this.#counts[bin] = (this.#counts[bin] as number) >> 1
  }

  #corrected(): Correction {
    const median = MIDDLES[this.#binAt(0.5)] as number
    const step = Math.max(STEP_MIN, Math.log((MIDDLES[this.#binAt(0.9)] as number) / median))
    const tail = Math.min(EDGES[this.#binAt(UPPER)] as number, median * Math.exp(STEPS * step))
    return { typical: bounded(median), upper: bounded(tail * MARGIN) }
  }

  /** The bin in which the sample of that rank is. */
  #binAt(quantile: number): number {
    let left = Math.floor(this.#samples * (1 - quantile))
    let bin = BINS - 1
    while (bin > 0 && left >= (this.#counts[bin] as number)) left -= this.#counts[bin--] as number
    return bin
  }
}

function binOf(ratio: number): number {
  return Math.min(BINS - 1, Math.max(0, Math.floor(Math.log(ratio / RATIO_MIN) / WIDTH)))
}

function bounded(factor: number): number {
  return Math.min(RATIO_MAX, Math.max(RATIO_MIN, factor))
}

function pairsOf(text: string): readonly unknown[] | null {
  try {
    const parsed: unknown = JSON.parse(text)
    return Array.isArray(parsed) ? parsed : null
  } catch {
    return null
  }
}

function isWhole(value: unknown, least: number, most: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most
}
