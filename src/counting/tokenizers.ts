import type { Config, Counter, Model } from '../config/config.js'
import { ConfigError, type PlacedProblem } from '../config/problems.js'
import { didYouMean } from '../config/suggest.js'
import { FAMILIES } from '../config/tokenizer-families.js'
import type { Surface } from '../endpoints/endpoint.js'
import { placed } from '../placed.js'
import { moduleUrl } from '../plugin.js'
import type { Question } from '../understand.js'
import { type Counted, Tokenizer } from './tokenizer.js'

/** Hears of every request that a module was asked for: what came of it. */
export type CountReport = (model: Model, counter: Counter, counted: Counted) => void

/** The modules that count tokens for a config's models, each on a thread of its own. */
export class Tokenizers {
  readonly #all: ReadonlyMap<string, Tokenizer>
  readonly #report: CountReport

  private constructor(all: ReadonlyMap<string, Tokenizer>, report: CountReport) {
    this.#all = all
    this.#report = report
  }

  /** Imports all of them. Throws a ConfigError with those that can not be had. `now`: milliseconds, monotonic. */
  static async start(config: Config, now: () => number, report: CountReport): Promise<Tokenizers> {
    const all = new Map<string, Tokenizer>()
    const problems: PlacedProblem[] = []
    const counters = [...config.models.values()].flatMap(({ counter }) => (counter === undefined ? [] : [counter]))
    for (const counter of counters) {
      if (all.has(counter.use)) continue
      try {
        const tokenizer = new Tokenizer(moduleUrl(counter.use, config.file), now)
        all.set(counter.use, tokenizer)
        await tokenizer.start()
      } catch (error) {
        const suggestion = didYouMean(counter.use, FAMILIES)
        const message = `tokenizer ${JSON.stringify(counter.use)} can not be loaded: ${(error as Error).message}${suggestion}`
        problems.push({ ...placed(counter.at), path: 'models', message })
      }
    }
    const tokenizers = new Tokenizers(all, report)
    if (problems.length === 0) return tokenizers
    await tokenizers.close()
    throw new ConfigError(placed(counters[0]?.at ?? '').file, problems)
  }

  /** Are there any? */
  get any(): boolean {
    return this.#all.size > 0
  }

  /**
   * Lets the modules count for the targets whose models name one. What can not be counted in time is left as it is estimated. `bytes`: the
   * client's body, in memory that may be shared.
   */
  async count(question: Question, surface: Surface, bytes: () => readonly Uint8Array[]): Promise<void> {
    const waiting = question.targets.map(async target => {
      const { counter, upstream } = target.model
      const tokenizer = counter === undefined ? undefined : this.#all.get(counter.use)
      if (counter === undefined || tokenizer === undefined) return
      const counted = await tokenizer.count({ surface, model: upstream, bytes: bytes() }, counter.timeout)
      if (counted.kind === 'counted') target.counted = counted.tokens
      this.#report(target.model, counter, counted)
    })
    await Promise.all(waiting)
  }

  async close(): Promise<void> {
    await Promise.all([...this.#all.values()].map(tokenizer => tokenizer.close()))
  }
}
