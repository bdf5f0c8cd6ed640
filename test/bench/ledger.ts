/*
 * What holding and settling costs: node dist/test/bench/ledger.js [folder]
 * The folder is where the ledger's file lies (default: the system's temporary folder), so it decides what a sync costs.
 */
import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { requestIds, ulids } from '../../src/ids.js'
import { accountRial, keyRequests, keyRial, keyTokens } from '../../src/ledger/counters.js'
import type { Claim, Ledger } from '../../src/ledger/ledger.js'
import { openLedger } from '../../src/ledger/sqlite.js'
import { windows } from '../../src/ledger/windows.js'
import { admissionRecord, endingRecord } from '../ledger/figures.js'

const newId = requestIds(ulids())
const windowOf = windows('Asia/Tehran', 'gregorian')
const folder = await mkdtemp(join(process.argv[2] ?? tmpdir(), 'ledger-bench-'))

function claims(at: number, key: string): Claim[] {
  const minute = windowOf('minute', at)
  const day = windowOf('day', at)
  const ceiling = 10n ** 15n
  return [
    { counter: keyRequests(key, minute), amount: 1n, ceiling, code: 'rate_limit_rpm', ends: 'counted' },
    { counter: keyRequests(key, windowOf('hour', at)), amount: 1n, ceiling, code: 'rate_limit_rph', ends: 'counted' },
    { counter: keyRequests(key, day), amount: 1n, ceiling, code: 'rate_limit_rpd', ends: 'counted' },
    { counter: keyTokens(key, minute), amount: 1000n, ceiling, code: 'rate_limit_tpm' },
    { counter: keyTokens(key, day), amount: 1000n, ceiling, code: 'key_daily_token_budget_reached' },
    { counter: keyRial(key, day), amount: 630n, ceiling, code: 'key_daily_budget_reached' },
    { counter: keyRial(key, windowOf('month', at)), amount: 630n, ceiling, code: 'monthly_cap_reached' },
    { counter: accountRial('acme'), amount: 630n, ceiling: 'credits', code: 'insufficient_balance' },
  ]
}

async function request(ledger: Ledger, key: string): Promise<void> {
  const at = Date.now()
  const id = newId(at)
  const admission = await ledger.hold({ id, at, claims: claims(at, key), record: admissionRecord({ key, held_rial: 630n }) })
  if (!admission.admitted) throw new Error(`refused: ${admission.refused.code}`)
  const record = endingRecord({ ended_at: at, cost_rial: 315n })
  await ledger.settle(id, { state: 'settled', actual: { tokens: 500n, rial: 315n }, record })
}

async function measure(durability: 'power' | 'process', concurrency: number, seconds: number): Promise<void> {
  const ledger = await openLedger({ path: join(folder, `${durability}-${concurrency}.db`), durability, create: true })
  await ledger.credit({ id: 'bench', account: 'acme', amount: 10n ** 12n, note: '', at: Date.now() })
  const run = async (until: number, times: number[]) => {
    const one = async (key: string) => {
      while (performance.now() < until) {
        const started = performance.now()
        await request(ledger, key)
        times.push(performance.now() - started)
      }
    }
    await Promise.all(Array.from({ length: concurrency }, (_, i) => one(`app-${i % 16}`)))
  }
  await run(performance.now() + 300, [])
  const times: number[] = []
  const cpu = process.cpuUsage()
  const started = performance.now()
  await run(started + seconds * 1000, times)
  const took = performance.now() - started
  const { user, system } = process.cpuUsage(cpu)
  const share = (microseconds: number) => (microseconds / times.length).toFixed(1)
  console.log(
    `${durability.padEnd(8)} ${String(concurrency).padStart(3)} at once: hold + settle p50 ${percentile(times, 0.5)} µs, p99 ${percentile(times, 0.99)} µs,`,
    `${Math.round((times.length / took) * 1000)}/s, ${share(took * 1000)} µs and ${share(user + system)} µs of CPU each`,
  )
  await ledger.close()
}

function percentile(times: number[], part: number): string {
  return ((times.sort((a, b) => a - b)[Math.floor(times.length * part)] ?? 0) * 1000).toFixed(0)
}

async function measureSync(): Promise<void> {
  const file = await open(join(folder, 'sync'), 'w')
  const times: number[] = []
  for (let i = 0; i < 300; i++) {
    await file.write(Buffer.alloc(12_000, i))
    const started = performance.now()
    await file.datasync()
    times.push(performance.now() - started)
  }
  await file.close()
  console.log(`one fdatasync of 12 kB: p50 ${percentile(times, 0.5)} µs, p99 ${percentile(times, 0.99)} µs`)
}

try {
  for (const durability of ['process', 'power'] as const) for (const concurrency of [1, 64]) await measure(durability, concurrency, 3)
  await measureSync()
} finally {
  await rm(folder, { recursive: true })
}
