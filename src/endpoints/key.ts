import type { Key } from '../config/config.js'
import type { JsonObject } from '../json.js'
import { keyRequests, keyRial, keyTokens } from '../ledger/counters.js'
import type { Counter, Reading } from '../ledger/ledger.js'
import type { Window, WindowKind } from '../ledger/windows.js'
import type { Page } from './page.js'

/** GET /v1/key: the ceilings of the key that asks, what it has used of them and what is left. `null`: no ceiling. */
export const keyPage: Page = {
  name: 'key',
  path: '/v1/key',
  async answer({ key, at }, _rest, { windows, iso }, { ledger }) {
    const window = (kind: WindowKind): Window => windows(kind, at)
    const rows = rowsOf(key, window)
    const readings = await ledger.read(rows.map(row => row.counter))
    const wallet = key.account === null ? null : await ledger.wallet(key.account)
    const limits: Record<string, number | null> = {}
    const usage: Record<string, number> = {}
    const remaining: Record<string, number | null> = {}
    for (const [i, row] of rows.entries()) {
      const { posted, pending } = readings[i] as Reading
      limits[row.limit] = row.ceiling === null ? null : Number(row.ceiling)
      usage[row.usage] = Number(posted)
      usage[row.held] = Number(pending)
      remaining[row.remaining] = row.ceiling === null ? null : Number(row.ceiling > posted ? row.ceiling - posted : 0n)
    }
    const resets = Object.fromEntries((['minute', 'hour', 'day', 'month'] as const).map(kind => [kind, iso(window(kind).end)]))
    return {
      object: 'key',
      plan: key.plan.name,
      limits,
      usage,
      remaining,
      wallet:
        wallet === null
          ? null
          : {
              balance_rial: Number(wallet.credited - wallet.posted),
              held_rial: Number(wallet.pending),
              available_rial: Number(wallet.credited - wallet.posted - wallet.pending),
            },
      resets,
    } satisfies JsonObject
  },
}

interface Row {
  readonly counter: Counter
  readonly ceiling: bigint | null
  readonly limit: string
  readonly usage: string
  readonly held: string
  readonly remaining: string
}

function rowsOf({ name, plan, budget }: Key, window: (kind: WindowKind) => Window): Row[] {
  const row = (counter: Counter, ceiling: bigint | null, limit: string, usage: string, remaining: string): Row => {
    return { counter, ceiling, limit, usage, held: `held_${usage}`, remaining }
  }
  const [minute, hour, day] = [window('minute'), window('hour'), window('day')]
  return [
    row(keyRequests(name, minute), plan.requests_per_minute, 'requests_per_minute', 'requests_this_minute', 'requests_this_minute'),
    row(keyRequests(name, hour), plan.requests_per_hour, 'requests_per_hour', 'requests_this_hour', 'requests_this_hour'),
    row(keyRequests(name, day), plan.requests_per_day, 'requests_per_day', 'requests_today', 'requests_today'),
    row(keyTokens(name, minute), plan.tokens_per_minute, 'tokens_per_minute', 'tokens_this_minute', 'tokens_this_minute'),
    row(keyTokens(name, day), budget.daily_tokens, 'daily_token_budget', 'tokens_today', 'tokens_today'),
    row(keyRial(name, day), budget.daily_rial, 'daily_budget_rial', 'spend_today_rial', 'budget_today_rial'),
    row(keyRial(name, window('month')), budget.monthly_rial, 'monthly_budget_rial', 'spend_mtd_rial', 'budget_rial'),
  ]
}
