import type { Definitions } from './definitions.js'
import type { KnownLabels } from './labels.js'

/** What is read when someone scrapes. Rial are whole. */
export interface Collected {
  readonly holdsOpen: number
  readonly heldRial: bigint
  /** 0 when no hold is open. */
  readonly oldestAgeSeconds: number
  readonly ledgerBytes: number
  readonly walBytes: number
  /** Account, and its credits less its spending. */
  readonly wallets: Iterable<readonly [account: string, rial: bigint]>
  /** Key, window, and which part of the budget is used (1: all of it). Of several for one window the greatest shows. */
  readonly keyBudgets: Iterable<readonly [key: string, window: string, ratio: number]>
  /** Model, and the factor that sizes its holds. */
  readonly corrections: Iterable<readonly [model: string, factor: number]>
}

export type Collect = () => Collected | Promise<Collected>

/** A scraper waits ten seconds as a rule; the other metrics must reach it all the same. */
const PATIENCE_MS = 2000

/**
 * Sets the gauges from what is collected. If that fails, or takes over two seconds, the gauges that depend on it are absent and
 * `collect_successful` is 0. Scrapes that come meanwhile share one reading.
 */
export function collector(
  gauges: Definitions['gauges'],
  { collect, failed }: { readonly collect: Collect; readonly failed: (error: unknown) => void },
): (known: KnownLabels) => Promise<void> {
  let reading: Promise<Collected> | undefined
  const read = (): Promise<Collected> => {
    reading ??= (async () => collect())().finally(() => {
      reading = undefined
    })
    return reading
  }
  return async known => {
    try {
      const collected = await within(PATIENCE_MS, read())
      clear(gauges)
      show(gauges, collected, known)
      gauges.collected.set(1)
    } catch (error) {
      clear(gauges)
      gauges.collected.set(0)
      failed(error)
    }
  }
}

async function within<Value>(ms: number, promise: Promise<Value>): Promise<Value> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`metrics: the ledger's gauges were not there within ${ms} ms.`)), ms)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

function clear({ holdsOpen, held, oldest, ledgerSize, walSize, wallet, keyBudget, correction }: Definitions['gauges']): void {
  for (const gauge of [holdsOpen, held, oldest, ledgerSize, walSize]) gauge.remove({})
  wallet.reset()
  keyBudget.reset()
  correction.reset()
}

function show(gauges: Definitions['gauges'], collected: Collected, known: KnownLabels): void {
  gauges.holdsOpen.set(collected.holdsOpen)
  gauges.held.set(Number(collected.heldRial))
  gauges.oldest.set(collected.oldestAgeSeconds)
  gauges.ledgerSize.set(collected.ledgerBytes)
  gauges.walSize.set(collected.walBytes)
  for (const [account, rial] of collected.wallets) {
    if (known.accounts.has(account)) gauges.wallet.set({ account }, Number(rial))
  }
  for (const [model, factor] of collected.corrections) {
    if (known.model(model) === model) gauges.correction.set({ model }, factor)
  }
  const used = new Map<string, number>()
  for (const [key, window, ratio] of collected.keyBudgets) {
    if (!known.keys.has(key)) continue
    const id = `${window}\0${key}`
    const most = Math.max(ratio, used.get(id) ?? 0)
    used.set(id, most)
    gauges.keyBudget.set({ key, window }, most)
  }
}
