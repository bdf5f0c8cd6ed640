import type { Price } from '../../src/config/config.js'
import type { Random } from './random.js'

/** Tokens that must be billed. `null`: what was reported can not be, so what was sent and received is counted. */
export type Due = { readonly input: number; readonly cached: number; readonly output: number } | null

/** A usage as a provider writes it, and what it must be taken for. */
export interface Reported {
  readonly kind: string
  /** JSON; `null` where nothing is reported. A text, since some of it (1e400) is nothing that JSON.stringify would write. */
  readonly json: string | null
  readonly due: Due
}

/** Usages of every kind: honest ones, ones that disagree with themselves, and ones that can not be. */
export function reported(random: Random): Reported {
  const input = random.from(0, 60)
  const output = random.from(0, 40)
  const usage = (fields: object) => JSON.stringify({ prompt_tokens: input, completion_tokens: output, ...fields })
  const kind = random.weighted({ honest: 12, cached: 4, nothing: 3, odd: 4, overrun: 3, absurd: 5 })
  switch (kind) {
    case 'honest':
      return { kind, json: usage({ total_tokens: input + output }), due: { input, cached: 0, output } }
    case 'cached': {
      const cached = random.from(0, input)
      return { kind, json: usage({ prompt_tokens_details: { cached_tokens: cached } }), due: { input, cached, output } }
    }
    case 'nothing':
      return { kind, json: null, due: null }
    case 'overrun': {
      const much = random.from(1000, 50_000)
      return { kind, json: usage({ completion_tokens: much, total_tokens: input + much }), due: { input, cached: 0, output: much } }
    }
    case 'odd':
      return random.pick(odd(input, output))
    case 'absurd': {
      const value = random.pick(['-1', '0.5', '"17"', '1e400', '9007199254740993', '9007199254740991', '1e15', '-0.1', 'true', '[]', '{}'])
      const field = random.pick(['prompt_tokens', 'completion_tokens', 'total_tokens'])
      const json = `{${['prompt_tokens', 'completion_tokens', 'total_tokens'].map(name => `"${name}":${name === field ? value : input}`).join()}}`
      return { kind: `absurd ${value}`, json, due: null }
    }
  }
}

/** Usages that disagree with themselves, or say less than all. */
function odd(input: number, output: number): readonly Reported[] {
  const part = (kind: string, fields: object, due: Due): Reported => ({ kind, json: JSON.stringify(fields), due })
  return [
    // Reasoning that stands beside the completion is in the total alone.
    part(
      'total above the sum',
      { prompt_tokens: input, completion_tokens: output, total_tokens: input + output + 5 },
      { input, cached: 0, output: output + 5 },
    ),
    part('total below the sum', { prompt_tokens: input, completion_tokens: output, total_tokens: 0 }, { input, cached: 0, output }),
    part('zeros', { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }, { input: 0, cached: 0, output: 0 }),
    part('input alone', { prompt_tokens: input }, { input, cached: 0, output: 0 }),
    part('nulls', { prompt_tokens: null, completion_tokens: output, total_tokens: null }, { input: 0, cached: 0, output }),
    part(
      'cached beside the prompt',
      { prompt_tokens: input, completion_tokens: output, prompt_tokens_details: { cached_tokens: input + 7 } },
      { input: 2 * input + 7, cached: input + 7, output },
    ),
    part('no object', [input, output], null),
  ]
}

/** The reference price, worked out in another way than the gateway's: each token's share, carried as whole and rest. */
export function costOf(price: Price | null, { input, cached, output }: NonNullable<Due>): bigint {
  if (price === null) return 0n
  let whole = 0n
  let rest = 0n
  for (const [tokens, each] of [
    [input - cached, price.input],
    [cached, price.cached_input],
    [output, price.output],
  ] as const) {
    const product = BigInt(tokens) * each
    whole += product / 1_000_000n
    rest += product % 1_000_000n
  }
  while (rest > 0n) {
    whole += 1n
    rest -= 1_000_000n
  }
  return whole + price.request
}
