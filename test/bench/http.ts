/*
 * What the gateway costs beside what there is without it: npm run bench [-- rounds]
 * Needs two cores, taskset, and Debian's wrk and nginx. The program under measurement has the first core to itself; the provider and the load
 * share the second. Rounds are interleaved, so that whatever else the machine does falls on all of them.
 */
import { execFileSync } from 'node:child_process'
import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AGENT, LONG, ORDINARY, streaming } from './http/bodies.js'
import { flood, median, oneByOne, type Spread, slowStreams, spread, streams } from './http/load.js'
import { cpuOf, far, gateway, nginx, type Program, pipe, rssOf } from './http/programs.js'

const rounds = Number(process.argv[2] ?? 3)
const SECONDS = 3
/** Each kind of load makes the compiler think again about what the others have taught it: after four rounds of all kinds it is done. */
const WARM_ROUNDS = 4
/** The programs in Node.js between load and provider. */
const BETWEEN: readonly string[] = ['pipe', 'process', 'power']
const BURST = { lines: 8, streams: 10, chunks: 400 }
const SLOW = 1000

interface Row {
  readonly perSecond: number[]
  /** Microseconds of CPU. */
  readonly cpu: number[]
  readonly chunkCpu: number[]
  readonly longCpu: number[]
  readonly agentCpu: number[]
  readonly chunksPerSecond: number[]
  /** Microseconds, at one connection. */
  readonly one: Spread[]
  readonly first: Spread[]
  readonly chunk: Spread[]
  readonly long: Spread[]
  readonly agent: Spread[]
  /** Milliseconds from the start of the process to its first answer. */
  readonly cold: number[]
  /** Bytes. */
  idle: number
  most: number
  /** What slow streams add. */
  readonly slow: number[]
}

process.setMaxListeners(0)
execFileSync('taskset', ['-cp', '1', String(process.pid)])
const folder = await mkdtemp(join(tmpdir(), 'gateway-bench-'))
const provider = await far()
const origin = `http://127.0.0.1:${provider.port}`
const starts: Readonly<Record<string, () => Promise<Program>>> = {
  nginx: () => nginx(folder, origin),
  pipe: () => pipe(origin),
  process: () => gateway({ name: 'process', durability: 'process', folder, origin }),
  power: () => gateway({ name: 'power', durability: 'power', folder, origin }),
}
const rows = new Map<string, Row>()
const programs: Program[] = [{ ...provider, name: 'provider' }]
for (const [name, start] of Object.entries(starts)) {
  const program = await start()
  programs.push(program)
  rows.set(name, emptyRow())
}
rows.set('provider', emptyRow())

for (const program of programs) {
  row(program).idle = rssOf(program.pid)
  for (let i = 0; i < WARM_ROUNDS && isBetween(program); i++) {
    say(`warming up, ${i + 1} of ${WARM_ROUNDS}: ${program.name}`)
    await measure(program, emptyRow())
  }
}
for (let round = 0; round < rounds; round++) {
  for (const program of programs) {
    say(`round ${round + 1} of ${rounds}: ${program.name}`)
    await measure(program, row(program))
  }
}
for (const program of programs) {
  row(program).most = rssOf(program.pid)
  // A process of Node has garbage from the load that it would give back meanwhile: those are asked when they are new, below.
  if (!isBetween(program)) row(program).slow.push(await slowStreamsAdd(program))
}
for (const program of programs) await program.stop()
const again = await far()
for (let i = 0; i < 2 * rounds + 1; i++) {
  for (const name of BETWEEN) {
    say(`start ${i + 1}: ${name}`)
    const program =
      name === 'pipe'
        ? await pipe(`http://127.0.0.1:${again.port}`)
        : await gateway({ name: `${name}-${i}`, durability: name as 'process', folder, origin: `http://127.0.0.1:${again.port}` })
    const [answer = Number.NaN] = await oneByOne(program.port, ORDINARY, 1)
    const into = rows.get(name) as Row
    into.cold.push(program.startedMs + answer / 1000)
    if (i < rounds) into.slow.push(await slowStreamsAdd(program))
    await program.stop()
  }
}
await again.stop()
const sync = await datasync(folder)
await rm(folder, { recursive: true })
print()

/** Is compiled by what it is asked itself, and grows with it. */
function isBetween({ name }: Program): boolean {
  return BETWEEN.includes(name)
}

async function slowStreamsAdd({ pid, port }: Program): Promise<number> {
  const before = rssOf(pid)
  const close = await slowStreams(port, SLOW)
  const added = rssOf(pid) - before
  await close()
  return added
}

async function measure(program: Program, into: Row): Promise<void> {
  const { port, pid } = program
  const cpu = async <T>(times: number[], work: () => Promise<T>, count: (result: T) => number): Promise<T> => {
    const before = cpuOf(pid)
    const result = await work()
    times.push((cpuOf(pid) - before) / 1000 / count(result))
    return result
  }
  const flooded = await cpu(
    into.cpu,
    () => flood(folder, port, ORDINARY, 64, SECONDS),
    ({ perSecond }) => perSecond * SECONDS,
  )
  if (flooded.errors > 0) throw new Error(`${program.name}: ${flooded.errors} requests failed`)
  into.perSecond.push(flooded.perSecond)
  into.one.push(spread(await oneByOne(port, ORDINARY, 1000)))
  const { first, delays } = await streams(port, streaming(100, 2), 10)
  into.first.push(spread(first))
  into.chunk.push(spread(delays))
  const started = performance.now()
  const count = BURST.lines * BURST.streams * BURST.chunks
  const burst = (): Promise<unknown> =>
    Promise.all(Array.from({ length: BURST.lines }, () => streams(port, streaming(BURST.chunks, 0), BURST.streams)))
  await cpu(into.chunkCpu, burst, () => count)
  into.chunksPerSecond.push((count / (performance.now() - started)) * 1000)
  into.long.push(
    spread(
      await cpu(
        into.longCpu,
        () => oneByOne(port, LONG, 15),
        ({ length }) => length,
      ),
    ),
  )
  into.agent.push(
    spread(
      await cpu(
        into.agentCpu,
        () => oneByOne(port, AGENT, 60),
        ({ length }) => length,
      ),
    ),
  )
}

function row(program: Program): Row {
  return rows.get(program.name) as Row
}

function emptyRow(): Row {
  return {
    perSecond: [],
    cpu: [],
    chunkCpu: [],
    longCpu: [],
    agentCpu: [],
    chunksPerSecond: [],
    one: [],
    first: [],
    chunk: [],
    long: [],
    agent: [],
    cold: [],
    idle: 0,
    most: 0,
    slow: [],
  }
}

/** Microseconds that the disk takes to make 12 kB durable. */
async function datasync(where: string): Promise<number> {
  const file = await open(join(where, 'sync'), 'w')
  const taken: number[] = []
  for (let i = 0; i < 100; i++) {
    await file.write(Buffer.alloc(12_288, i), 0, 12_288, (i % 50) * 12_288)
    const from = performance.now()
    await file.datasync()
    taken.push((performance.now() - from) * 1000)
  }
  await file.close()
  return median(taken)
}

function print(): void {
  const bare = rows.get('pipe') as Row
  const figure = (values: readonly number[], digits = 0): string =>
    values.length === 0
      ? ''
      : `${median(values).toFixed(digits)} (${Math.min(...values).toFixed(digits)}-${Math.max(...values).toFixed(digits)})`
  const p50s = (spreads: readonly Spread[]): string => `${figure(spreads.map(({ p50 }) => p50))} / ${figure(spreads.map(({ p99 }) => p99))}`
  const mb = (bytes: number): string => (bytes / 1e6).toFixed(0)
  const lines: [string, (of: Row) => string][] = [
    ['requests/s, 64 connections', of => figure(of.perSecond)],
    ['… of the bare pipe', of => (median(of.perSecond) / median(bare.perSecond)).toFixed(2)],
    ['CPU per request, µs', of => figure(of.cpu)],
    ['one connection, p50 / p99, µs', of => p50s(of.one)],
    ['first chunk, p50 / p99, µs', of => p50s(of.first)],
    ['delay of a chunk, p50 / p99, µs', of => p50s(of.chunk)],
    ['chunks/s, 8 streams', of => figure(of.chunksPerSecond)],
    ['CPU per chunk, µs', of => figure(of.chunkCpu, 1)],
    ['1 MiB prompt, p50 / p99, µs', of => p50s(of.long)],
    ['1 MiB prompt, CPU, µs', of => figure(of.longCpu)],
    ['200 messages, 40 tools, p50 / p99, µs', of => p50s(of.agent)],
    ['200 messages, 40 tools, CPU, µs', of => figure(of.agentCpu)],
    ['memory idle, MB', of => mb(of.idle)],
    ['memory after the load, MB', of => mb(of.most)],
    ['1,000 slow streams add, MB', of => figure(of.slow.map(bytes => bytes / 1e6))],
    ['start to first answer, ms', of => figure(of.cold)],
  ]
  const names = ['provider', ...Object.keys(starts)]
  const text = [`| | ${names.join(' | ')} |`, `| --- |${' ---: |'.repeat(names.length)}`]
  for (const [what, of] of lines) text.push(`| ${what} | ${names.map(name => of(rows.get(name) as Row)).join(' | ')} |`)
  process.stdout.write(
    `\n${text.join('\n')}\n\nMedian (least-most) of ${rounds} rounds. One fdatasync of 12 kB: ${sync.toFixed(0)} µs. Node.js ${process.version}.\n`,
  )
  const parsed = parseTime()
  process.stdout.write(`One JSON.parse of the 1 MiB prompt: ${parsed.toFixed(0)} µs.\n`)
}

function parseTime(): number {
  const taken: number[] = []
  for (let i = 0; i < 30; i++) {
    const from = performance.now()
    JSON.parse(LONG)
    taken.push((performance.now() - from) * 1000)
  }
  return median(taken)
}

function say(what: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${what}`)
}
