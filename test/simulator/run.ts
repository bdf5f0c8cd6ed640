import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { type History, World } from './world.js'

/*
 * node dist/test/simulator/run.js SEEDS [FROM]: that many histories, each of one seed, from the seed FROM on (1). A history that goes wrong is told with
 * its last operations, and happens again with `run.js 1 ITS_SEED`.
 */

/** What was told of one seed. */
export interface Told extends Omit<History, 'log'> {
  /** What went wrong, and before it the last operations. */
  readonly failure: string | null
  /** Of all that was done: equal where a seed has lived the same history. */
  readonly digest: string
}

const OPERATIONS = 600
const LAST = 40
/** Every so manieth seed is lived once more, and has to come to the same. */
const TWICE = 50

/** One history from its seed to its end. Never rejects. */
export async function simulate(seed: number, operations = OPERATIONS): Promise<Told> {
  // In memory where that can be: what is tested is the order of writes, not the disk.
  const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'simulator-'))
  let world: World | undefined
  try {
    world = new World(seed, folder)
    const { log, ...told } = await world.live(operations)
    const timers = process.getActiveResourcesInfo().filter(kind => kind === 'Timeout').length
    return { ...told, digest: digestOf(log), failure: timers === 0 ? null : `${timers} timers are left when all is over` }
  } catch (error) {
    const { log = [], ...told } = world?.history ?? empty(seed)
    return { ...told, digest: digestOf(log), failure: [...log.slice(-LAST), (error as Error).stack ?? String(error)].join('\n') }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function digestOf(log: readonly string[]): string {
  return createHash('sha256').update(log.join('\n')).digest('hex')
}

function empty(seed: number): History {
  return { seed, operations: 0, requests: 0, admitted: 0, reconciled: 0, differenceRial: 0n, recovered: 0, pruned: 0, faults: {}, log: [] }
}

interface Share {
  readonly from: number
  readonly until: number
  readonly step: number
}

async function work({ from, until, step }: Share): Promise<void> {
  for (let seed = from; seed < until; seed += step) {
    const told = await simulate(seed)
    parentPort?.postMessage(told)
    if (seed % TWICE !== 0 || told.failure !== null) continue
    const again = await simulate(seed)
    if (again.digest !== told.digest) parentPort?.postMessage({ ...again, failure: 'lived once more, it was another history' })
  }
}

async function main(seeds: number, from: number): Promise<void> {
  const workers = Math.min(availableParallelism(), seeds)
  const all: Told[] = []
  const began = performance.now()
  await Promise.all(
    Array.from({ length: workers }, (_, i) => {
      const worker = new Worker(fileURLToPath(import.meta.url), { workerData: { from: from + i, until: from + seeds, step: workers } })
      worker.on('message', (told: Told) => {
        all.push(told)
        if (told.failure !== null) console.log(`seed ${told.seed} went wrong:\n${told.failure}\n`)
      })
      return new Promise((resolve, reject) => worker.once('error', reject).once('exit', resolve))
    }),
  )
  const total = (of: (told: Told) => number): number => all.reduce((sum, told) => sum + of(told), 0)
  const faults: Record<string, number> = {}
  for (const told of all) for (const [kind, count] of Object.entries(told.faults)) faults[kind] = (faults[kind] ?? 0) + count
  const failed = all.filter(({ failure }) => failure !== null).map(({ seed }) => seed)
  const figures = {
    seeds: all.length,
    seconds: Math.round((performance.now() - began) / 1000),
    operations: total(told => told.operations),
    requests: total(told => told.requests),
    admitted: total(told => told.admitted),
    'received in full and reconciled': total(told => told.reconciled),
    'difference in Rial': String(all.reduce((sum, told) => sum + told.differenceRial, 0n)),
    'holds recovered': total(told => told.recovered),
    'records pruned into sums': total(told => told.pruned),
    ...faults,
    'histories lived twice': Math.floor((from + seeds - 1) / TWICE) - Math.floor((from - 1) / TWICE),
    'seeds that went wrong': failed.join(' ') || 'none',
  }
  for (const [name, figure] of Object.entries(figures)) console.log(`${name.padEnd(40)}${figure}`)
  process.exitCode = failed.length === 0 && all.length === seeds ? 0 : 1
}

if (!isMainThread) await work(workerData as Share)
else if (process.argv[1] === fileURLToPath(import.meta.url)) await main(Number(process.argv[2] ?? 100), Number(process.argv[3] ?? 1))
