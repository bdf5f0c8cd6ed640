import t from 'tap'
import concurrency from '../../policies/concurrency.js'
import { asked, host, keyOf, tehran } from '../support/exchanges.js'

t.test('claims a place of the key, and one of the plan where it is named; a name that no key has is told', async t => {
  const key = keyOf({ name: 'a', plan: { name: 'small' } })
  const there = host([key])
  const place = (subject: string, ceiling: bigint) => ({
    counter: { meter: 'in_flight', subject, window: tehran('all', 0) },
    amount: 1n,
    ceiling,
    code: 'too_many_concurrent',
    ends: 'released',
  })
  const both = concurrency({ per_key: 2, per_plan: { small: 20, unknown: 3 } }, there)
  t.strictSame(both.admit?.(asked({ key })), [place('key:a', 2n), place('plan:small', 20n)])
  t.strictSame(there.logged, [['per_plan names a plan that no key has', { plan: 'unknown' }]])
  const named = concurrency({ per_plan: { large: 5 } }, host([key]))
  t.strictSame(named.admit?.(asked({ key })), [])
  t.strictSame(concurrency({ per_key: 2 }, host([key])).admit?.(asked({ key })), [place('key:a', 2n)])
})
