import type { Claim } from '../src/ledger/ledger.js'
import type { Policy, PolicyFactory } from '../src/policy.js'

/*
 * concurrency: how many requests may be under way at one time. Refuses with 429 `too_many_concurrent`, and says to come back in a second.
 *
 *     policies: [auth, rate, {use: concurrency, with: {per_key: 8, per_plan: {free: 20}}}, budget, hold]
 *
 * per_key: of each key. per_plan: of all keys of a plan together, by its name; a plan that is not named has no ceiling. A place is taken with
 * the admission, and given back when the request ends, whatever came of it; a crash gives all of them back at the next start.
 */

export const options = {
  type: 'object',
  minProperties: 1,
  additionalProperties: false,
  properties: {
    per_key: { type: 'integer', minimum: 1, maximum: 1_000_000 },
    per_plan: { type: 'object', additionalProperties: { type: 'integer', minimum: 1, maximum: 1_000_000 } },
  },
}

interface Options {
  readonly per_key?: number
  readonly per_plan?: Readonly<Record<string, number>>
}

export default (({ per_key, per_plan = {} }, host): Policy => {
  const plans = new Map(Object.entries(per_plan))
  const used = new Set([...host.keys.values()].map(key => key.plan.name))
  for (const name of plans.keys()) if (!used.has(name)) host.log('per_plan names a plan that no key has', { plan: name })
  return {
    name: 'concurrency',
    admit({ key, at }) {
      const claims: Claim[] = []
      const claim = (subject: string, ceiling: number | undefined): void => {
        if (ceiling === undefined) return
        const counter = { meter: 'in_flight', subject, window: host.window('all', at) }
        claims.push({ counter, amount: 1n, ceiling: BigInt(ceiling), code: 'too_many_concurrent', ends: 'released' })
      }
      claim(`key:${key.name}`, per_key)
      claim(`plan:${key.plan.name}`, plans.get(key.plan.name))
      return claims
    },
  }
}) satisfies PolicyFactory<Options>
