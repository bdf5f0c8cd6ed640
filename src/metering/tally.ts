import type { Endpoint } from '../endpoints/endpoint.js'
import { FlatText } from '../flat-text.js'
import type { JsonObject } from '../json.js'
import { textTokens } from './estimate.js'
import { StreamUsage } from './meter.js'
import type { Family } from './tokenizers.js'
import { NO_USAGE, type Usage } from './usage.js'

/** Characters of output that are kept before they are counted. */
const UNCOUNTED_MAX = 65_536

/** What is charged where a provider does not say what was used. */
export interface Charge {
  /** Tokens of what was sent. */
  readonly input: number
  /** What a count of this model's tokens is typically off by: what was received is multiplied by it. */
  readonly factor: number
}

/** What one answer has used, from the chunks that were received of it (or the one whole answer). */
export class Tally {
  readonly #endpoint: Endpoint
  readonly #family: Family
  readonly #reported: StreamUsage
  readonly #uncounted = new FlatText()
  #counted = 0

  /** `family`: the tokenizer's, for counting where no usage is reported. `strict`: see `usageOf`. */
  constructor(endpoint: Endpoint, family: Family, strict: boolean) {
    this.#endpoint = endpoint
    this.#family = family
    this.#reported = new StreamUsage({ strict, inputOnly: endpoint.output === undefined })
  }

  /** `counted`: tokens of the chunk's output, where that is not in it any more. Gives what `StreamUsage.add` does. */
  readonly add = (chunk: JsonObject, counted = 0): Usage | null => {
    const joined = this.#reported.add(chunk)
    this.#counted += counted
    this.#uncounted.add(this.#endpoint.output?.(chunk) ?? '')
    if (this.#uncounted.length > UNCOUNTED_MAX) this.#count()
    return joined
  }

  /** The provider's figures where it gave them; else what was sent and received, counted. `whole`: nothing was cut off. */
  usage({ input, factor }: Charge, whole: boolean): Usage {
    const reported = this.#reported.usage
    // A usage that came before the cut does not cover what was received after it.
    if (reported !== null && whole) return reported
    if (reported === null && whole && this.#endpoint.unreported === 'nothing') return NO_USAGE
    this.#count()
    const output = Math.round(this.#counted * factor)
    if (reported === null) return { source: output > 0 ? 'counted' : 'estimate', input, cached: 0, output, reasoning: 0 }
    return { ...reported, output: Math.max(reported.output, output), source: 'counted' }
  }

  #count(): void {
    if (this.#uncounted.length > 0) this.#counted += textTokens(this.#uncounted.take(), this.#family)
  }
}
