import { keyRial, keyTokens } from '../src/ledger/counters.js'
import type { Policy, PolicyFactory } from '../src/policy.js'

/*
 * budget: what a key may spend. Tokens a day, Rial a day, Rial a month, as set on the key; a day ends at local midnight. Raising a ceiling is
 * the only way to make room before. Takes no options.
 */
export default ((_options, host): Policy => ({
  name: 'budget',
  admit({ key, at, estimate, estimateRial }) {
    const day = host.window('day', at)
    return [
      {
        counter: keyTokens(key.name, day),
        amount: BigInt(estimate.input + estimate.output),
        ceiling: key.budget.daily_tokens,
        code: 'key_daily_token_budget_reached',
      },
      { counter: keyRial(key.name, day), amount: estimateRial, ceiling: key.budget.daily_rial, code: 'key_daily_budget_reached' },
      {
        counter: keyRial(key.name, host.window('month', at)),
        amount: estimateRial,
        ceiling: key.budget.monthly_rial,
        code: 'monthly_cap_reached',
      },
    ]
  },
})) satisfies PolicyFactory
