import type { Key } from '../config/config.js'
import { keyRial, keyTokens } from '../ledger/counters.js'
import type { Counter, Reading } from '../ledger/ledger.js'
import type { SqliteLedger } from '../ledger/sqlite.js'
import type { Calibrations } from '../metering/calibrations.js'
import type { Runtime } from '../runtime.js'
import type { Collected } from './collect.js'

/** What a scrape reads of the ledger: of the budgets that have a ceiling, and of every configured wallet; and what the models have taught. `now`: ms since the epoch. */
export async function collect(
  { config, windows }: Runtime,
  ledger: SqliteLedger,
  calibrations: Calibrations,
  now: number,
): Promise<Collected> {
  const budgets = [...config.keys.values()].flatMap(key => budgetsOf(key, windows('day', now), windows('month', now)))
  const readings = await ledger.read(budgets.map(budget => budget.counter))
  const wallets: [string, bigint][] = []
  for (const name of config.accounts.keys()) {
    const { credited, posted } = await ledger.wallet(name)
    wallets.push([name, credited - posted])
  }
  const { open_holds, held_rial, oldest_hold_at, bytes, wal_bytes } = ledger.stats()
  return {
    holdsOpen: open_holds,
    heldRial: held_rial,
    oldestAgeSeconds: oldest_hold_at === null ? 0 : Math.max(0, (now - oldest_hold_at) / 1000),
    ledgerBytes: bytes,
    walBytes: wal_bytes,
    wallets,
    corrections: [...config.models.values()].map(model => [model.id, calibrations.of(model).upper]),
    keyBudgets: budgets.map(({ key, window, ceiling }, i) => [key, window, ratio(readings[i] as Reading, ceiling)]),
  }
}

interface BudgetCounter {
  readonly key: string
  readonly window: string
  readonly ceiling: bigint
  readonly counter: Counter
}

function budgetsOf({ name, budget }: Key, day: Counter['window'], month: Counter['window']): BudgetCounter[] {
  const all = [
    { window: 'day', ceiling: budget.daily_tokens, counter: keyTokens(name, day) },
    { window: 'day', ceiling: budget.daily_rial, counter: keyRial(name, day) },
    { window: 'month', ceiling: budget.monthly_rial, counter: keyRial(name, month) },
  ]
  return all.flatMap(({ window, ceiling, counter }) => (ceiling === null ? [] : [{ key: name, window, ceiling, counter }]))
}

/** How much of a ceiling is used: a figure to look at, not to decide by. */
function ratio({ posted }: Reading, ceiling: bigint): number {
  return ceiling === 0n ? 1 : Number(posted) / Number(ceiling)
}
