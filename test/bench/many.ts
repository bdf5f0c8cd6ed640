/*
 * What a request costs the more keys and models there are: node dist/test/bench/many.js [rounds]
 * Gateways that differ in nothing else are asked in turn, so that what else the machine does falls on all. Of each, the round with the least CPU
 * counts. Fails where the largest costs a fifth more than the smallest. Needs taskset and Debian's wrk.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ORDINARY } from './http/bodies.js'
import { flood } from './http/load.js'
import { cpuOf, far, gateway, type Program, rssOf } from './http/programs.js'

const rounds = Number(process.argv[2] ?? 9)
const SECONDS = 2
const WARM_SECONDS = 6
const CONNECTIONS = 32
const BAR = 1.2

const SIZES = [
  { keys: 10, models: 1 },
  { keys: 1_000, models: 1 },
  { keys: 10_000, models: 1 },
  { keys: 10, models: 100 },
  { keys: 10, models: 1_000 },
] as const

interface Measured {
  readonly keys: number
  readonly models: number
  readonly program: Program
  /** Bytes. */
  readonly idle: number
  /** Microseconds of CPU for a request, the least of all rounds. */
  cpu: number
}

process.setMaxListeners(0)
execFileSync('taskset', ['-cp', '1', String(process.pid)])
const folder = mkdtempSync(join(tmpdir(), 'gateway-many-'))
const provider = await far()
const origin = `http://127.0.0.1:${provider.port}`
const all: Measured[] = []
for (const { keys, models } of SIZES) {
  const program = await gateway({ name: `many-${keys}-${models}`, durability: 'process', folder, origin, keys, models })
  all.push({ keys, models, program, idle: rssOf(program.pid), cpu: Number.POSITIVE_INFINITY })
}
for (const { program } of all) await flood(folder, program.port, ORDINARY, CONNECTIONS, WARM_SECONDS)
for (let round = 0; round < rounds; round++) {
  for (const measured of all) {
    const before = cpuOf(measured.program.pid)
    const { perSecond, errors } = await flood(folder, measured.program.port, ORDINARY, CONNECTIONS, SECONDS)
    if (errors > 0) throw new Error(`${errors} requests failed`)
    measured.cpu = Math.min(measured.cpu, (cpuOf(measured.program.pid) - before) / 1000 / (perSecond * SECONDS))
  }
}
for (const { program } of all) await program.stop()
await provider.stop()
rmSync(folder, { recursive: true })

const least = (all[0] as Measured).cpu
process.stdout.write(
  '| keys | models | start, ms | memory idle, MB | CPU per request, µs | ratio |\n| ---: | ---: | ---: | ---: | ---: | ---: |\n',
)
for (const { keys, models, program, idle, cpu } of all) {
  const figures = [program.startedMs.toFixed(0), (idle / 1e6).toFixed(0), cpu.toFixed(0), (cpu / least).toFixed(2)]
  process.stdout.write(`| ${keys} | ${models} | ${figures.join(' | ')} |\n`)
}
process.stdout.write(`\nLeast of ${rounds} rounds. Node.js ${process.version}.\n`)
const dear = all.filter(({ cpu }) => cpu > BAR * least)
if (dear.length > 0)
  throw new Error(`${dear.map(({ keys, models }) => `${keys} keys and ${models} models`).join(', ')}: more than ${BAR} times as dear`)
