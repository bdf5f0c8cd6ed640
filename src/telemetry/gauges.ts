import type { Key } from '../config/config.js'
import { keyRial, keyTokens } from '../ledger/counters.js'
import type { Reading } from '../ledger/ledger.js'
import type { Look } from '../ledger/reports.js'
import type { SqliteLedger } from '../ledger/sqlite.js'
import type { Window } from '../ledger/windows.js'
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
  const [day, month] = [windows('day', now), windows('month', now)]
  const keyBudgets = await ledger.survey(config.keys.values(), (key, look) => budgetsOf(key, { day, month }, look))
  const wallets = await ledger.survey(config.accounts.keys(), (name, look): [string, bigint] => {
    const { credited, posted } = look.wallet(name)
    return [name, credited - posted]
  })
  const { open_holds, held_rial, oldest_hold_at, bytes, wal_bytes } = ledger.stats()
  return {
    holdsOpen: open_holds,
    heldRial: held_rial,
    oldestAgeSeconds: oldest_hold_at === null ? 0 : Math.max(0, (now - oldest_hold_at) / 1000),
    ledgerBytes: bytes,
    walBytes: wal_bytes,
    wallets,
    corrections: [...config.models.values()].map(model => [model.id, calibrations.of(model).upper]),
    keyBudgets: keyBudgets.flat(),
  }
}

type Budget = readonly [key: string, window: string, ratio: number]

function budgetsOf({ name, budget }: Key, { day, month }: { readonly day: Window; readonly month: Window }, look: Look): Budget[] {
  const all = [
    { ceiling: budget.daily_tokens, counter: keyTokens(name, day) },
    { ceiling: budget.daily_rial, counter: keyRial(name, day) },
    { ceiling: budget.monthly_rial, counter: keyRial(name, month) },
  ]
  return all.flatMap(({ ceiling, counter }) =>
    ceiling === null ? [] : [[name, counter.window.kind, ratio(look.reading(counter), ceiling)] as const],
  )
}

/** How much of a ceiling is used: a figure to look at, not to decide by. */
function ratio({ posted }: Reading, ceiling: bigint): number {
  return ceiling === 0n ? 1 : Number(posted) / Number(ceiling)
}
