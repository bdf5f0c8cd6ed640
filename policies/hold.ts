import { accountRial } from '../src/ledger/counters.js'
import type { Policy, PolicyFactory } from '../src/policy.js'

/*
 * hold: the wallet. The most that a request can cost is held from the account's credits before the request is forwarded. Takes no options.
 */
export default ((): Policy => ({
  name: 'hold',
  admit({ key, estimateRial }) {
    if (key.account === null) return []
    return [{ counter: accountRial(key.account), amount: estimateRial, ceiling: 'credits', code: 'insufficient_balance' }]
  },
})) satisfies PolicyFactory
