import t from 'tap'
import budget from '../../policies/budget.js'
import hold from '../../policies/hold.js'
import { accountRial, keyRial, keyTokens } from '../../src/ledger/counters.js'
import { AT, asked, host, keyOf, tehran } from '../support/exchanges.js'

t.test('budget claims the estimate of the day in tokens and Rial, and of the month in Rial', async t => {
  const [day, month] = [tehran('day', AT), tehran('month', AT)]
  const claims = (ceilings: object) => budget({} as never, host()).admit?.(asked({ key: keyOf({ budget: ceilings }) }))
  t.strictSame(claims({ daily_tokens: 1n, daily_rial: 2n, monthly_rial: 3n }), [
    { counter: keyTokens('a', day), amount: 19n, ceiling: 1n, code: 'key_daily_token_budget_reached' },
    { counter: keyRial('a', day), amount: 400n, ceiling: 2n, code: 'key_daily_budget_reached' },
    { counter: keyRial('a', month), amount: 400n, ceiling: 3n, code: 'monthly_cap_reached' },
  ])
  t.match(claims({}), [{ ceiling: null }, { ceiling: null }, { ceiling: null }], 'no ceiling is counted all the same')
  t.equal(day.end, Date.UTC(2026, 10, 21, 20, 30), 'a day ends at midnight in Tehran')
})

t.test('hold claims the most that the request can cost of the account, if there is one', async t => {
  const policy = hold()
  t.strictSame(policy.admit?.(asked()), [{ counter: accountRial('acme'), amount: 400n, ceiling: 'credits', code: 'insufficient_balance' }])
  t.strictSame(policy.admit?.(asked({ key: keyOf({ account: null }) })), [])
})
