/*
 * What other gateways cost that npm installs, beside the bare pipe and this one: test/bench/others/run [rounds]
 * Each passes whole answers through from the same provider; this one has everything on, the others are as they come. Streams are left out:
 * Portkey's gateway fails at them on Node.js 20 with a provider of one's own. Rounds are interleaved. Needs taskset and Debian's wrk.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AGENT, LONG, ORDINARY } from './http/bodies.js'
import { flood, median, oneByOne } from './http/load.js'
import { cpuOf, far, gateway, type Program, pipe, portkey, portkeyFields, rssOf } from './http/programs.js'

const rounds = Number(process.argv[2] ?? 3)
const SECONDS = 3
const WARM_SECONDS = 8

const WHAT = {
  'requests/s, 64 connections': 0,
  'failed requests/s': 0,
  'CPU per request, µs': 0,
  'one connection, p50, µs': 0,
  '1 MiB prompt, p50, µs': 0,
  '1 MiB prompt, CPU, µs': 0,
  '200 messages, 40 tools, p50, µs': 0,
  'memory idle, MB': 0,
  'memory after the load, MB': 0,
  'start to first answer, ms': 0,
} as const
type Figures = Record<keyof typeof WHAT, number[]>

process.setMaxListeners(0)
execFileSync('taskset', ['-cp', '1', String(process.pid)])
const folder = mkdtempSync(join(tmpdir(), 'gateway-others-'))
const provider = await far()
const origin = `http://127.0.0.1:${provider.port}`
const fields = portkeyFields(origin)
const programs: Program[] = [
  await pipe(origin),
  await gateway({ name: 'model-gateway', durability: 'process', folder, origin }),
  await portkey(),
]
const figures = new Map<Program, Figures>()
for (const program of programs) {
  const of = Object.fromEntries(Object.keys(WHAT).map(what => [what, [] as number[]])) as Figures
  figures.set(program, of)
  of['memory idle, MB'].push(rssOf(program.pid) / 1e6)
  const [first = Number.NaN] = await oneByOne(program.port, ORDINARY, 1, fields)
  of['start to first answer, ms'].push(program.startedMs + first / 1000)
  await flood(folder, program.port, ORDINARY, 64, WARM_SECONDS, fields)
  for (const body of [LONG, AGENT]) await oneByOne(program.port, body, 40, fields)
}
for (let round = 0; round < rounds; round++) for (const program of programs) await measure(program, figures.get(program) as Figures)
for (const [{ pid }, of] of figures) of['memory after the load, MB'].push(rssOf(pid) / 1e6)
for (const program of [...programs, provider]) await program.stop()
rmSync(folder, { recursive: true })

const lock = JSON.parse(readFileSync(join(import.meta.dirname, '../../../test/bench/others/package-lock.json'), 'utf8')) as {
  packages: Record<string, { version?: string }>
}
const version = lock.packages['node_modules/@portkey-ai/gateway']?.version
process.stdout.write(`| | ${programs.map(({ name }) => name).join(' | ')} |\n| --- |${' ---: |'.repeat(programs.length)}\n`)
for (const what of Object.keys(WHAT) as (keyof typeof WHAT)[]) {
  const row = programs.map(program => median((figures.get(program) as Figures)[what]).toFixed(0))
  process.stdout.write(`| ${what} | ${row.join(' | ')} |\n`)
}
process.stdout.write(`\nMedian of ${rounds} rounds. portkey: @portkey-ai/gateway ${version}. Node.js ${process.version}.\n`)

async function measure({ port, pid, name }: Program, of: Figures): Promise<void> {
  const before = cpuOf(pid)
  const { perSecond, errors } = await flood(folder, port, ORDINARY, 64, SECONDS, fields)
  if (errors > 0 && name !== 'portkey') throw new Error(`${name}: ${errors} requests failed`)
  of['failed requests/s'].push(errors / SECONDS)
  of['CPU per request, µs'].push((cpuOf(pid) - before) / 1000 / (perSecond * SECONDS))
  of['requests/s, 64 connections'].push(perSecond)
  of['one connection, p50, µs'].push(median(await oneByOne(port, ORDINARY, 400, fields)))
  const then = cpuOf(pid)
  const long = await oneByOne(port, LONG, 15, fields)
  of['1 MiB prompt, CPU, µs'].push((cpuOf(pid) - then) / 1000 / long.length)
  of['1 MiB prompt, p50, µs'].push(median(long))
  of['200 messages, 40 tools, p50, µs'].push(median(await oneByOne(port, AGENT, 60, fields)))
}
