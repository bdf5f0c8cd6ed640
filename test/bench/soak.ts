/*
 * Whether memory grows while the gateway is busy: node dist/test/bench/soak.js [minutes [connections]]
 * Single and streamed requests all the time, a few large bodies among them, and a config that changes and is read again each ten seconds. What
 * is resident, and what V8 holds, are sampled each second; a line through the least of each ten says how much is added in a minute, and how far
 * they lie from it says how much of that may be chance. Fails where more is. Ten minutes is what counts; two are for trying.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { LONG, ORDINARY, streaming } from './http/bodies.js'
import { Line, request, streamed, whole } from './http/load.js'
import { far, type GatewayFacts, gateway, rssOf, yaml } from './http/programs.js'
import { type Slope, slope } from './http/slope.js'

const minutes = Number(process.argv[2] ?? 10)
const connections = Number(process.argv[3] ?? 12)
const RELOAD_MS = 10_000
const SAMPLE_MS = 1_000
/** Of each connection, so that two cores have time for more than this. */
const PAUSE_MS = 40
/** The first part is code that is compiled and memory that fills for the first time. */
const WARM = 0.3
/** Each this-many-th request of a connection is a large one. */
const LARGE_EVERY = 200
const MB = 1e6

interface Sample {
  readonly minute: number
  readonly resident: number
  /** In V8's heap and beside it, garbage included. */
  readonly heap: number
}

process.setMaxListeners(0)
execFileSync('taskset', ['-cp', '1', String(process.pid)])
const folder = mkdtempSync(join(tmpdir(), 'gateway-soak-'))
const provider = await far()
const facts: GatewayFacts = {
  name: 'soaked',
  durability: 'process',
  folder,
  origin: `http://127.0.0.1:${provider.port}`,
  keys: 100,
  models: 20,
}
const program = await gateway(facts)
const until = performance.now() + minutes * 60_000
let requests = 0
let reloads = 0

const samples: Sample[] = []
await Promise.all([...Array.from({ length: connections }, (_, i) => ask(i)), reload(), watch()])
const reloaded = readFileSync(join(folder, 'logs', 'soaked.log'), 'utf8').match(/"message":"the config was reloaded"/g)?.length ?? 0
await program.stop()
await provider.stop()
rmSync(folder, { recursive: true })

const counted = samples.filter(({ minute }) => minute > minutes * WARM)
const lines = {
  'resident memory': slope(counted.map(({ minute, resident }) => [minute, resident / MB])),
  'held by V8': slope(counted.map(({ minute, heap }) => [minute, heap / MB])),
}
process.stdout.write(`${requests} requests, ${reloaded} reloads in ${minutes} minutes. Node.js ${process.version}.\n\n`)
process.stdout.write('| | at first, MB | at the end, MB | MB a minute |\n| --- | ---: | ---: | ---: |\n')
for (const [name, { first, last, perUnit, error }] of Object.entries(lines)) {
  process.stdout.write(`| ${name} | ${first.toFixed(0)} | ${last.toFixed(0)} | ${perUnit.toFixed(2)} ± ${(2 * error).toFixed(2)} |\n`)
}
if (reloaded < reloads) throw new Error(`of ${reloads} changes of the config ${reloaded} were read`)
const rising = Object.entries(lines).filter(([, line]) => rises(line))
if (rising.length > 0) throw new Error(`${rising.map(([name]) => name).join(' and ')} grows`)

/** More than chance explains: two standard errors, and a megabyte in all, since no two stretches of a process are quite alike. */
function rises({ perUnit, error }: Slope): boolean {
  return perUnit > 2 * error && (perUnit - 2 * error) * minutes * (1 - WARM) > 1
}

/** One connection: whole answers and streams in turn. */
async function ask(connection: number): Promise<void> {
  const line = await Line.open(program.port)
  for (let i = connection; performance.now() < until; i++) {
    const stream = i % 2 === 0
    const body = i % LARGE_EVERY === 0 ? LONG : stream ? streaming(20, 1) : ORDINARY
    const answer = await line.ask(request(body), stream && body !== LONG ? streamed : whole)
    if (!answer.startsWith('HTTP/1.1 200')) throw new Error(answer.slice(0, 300))
    requests++
    await sleep(PAUSE_MS)
  }
  line.close()
}

async function reload(): Promise<void> {
  await sleep(RELOAD_MS)
  // The last change is read before the end.
  while (performance.now() < until - RELOAD_MS / 2) {
    reloads++
    writeFileSync(join(folder, 'soaked.yaml'), yaml({ ...facts, models: 20 + (reloads % 2) }))
    await sleep(RELOAD_MS)
  }
}

async function watch(): Promise<void> {
  while (performance.now() < until) {
    await sleep(SAMPLE_MS)
    const resident = rssOf(program.pid)
    const page = await (await fetch(`http://127.0.0.1:${program.ops}/metrics`)).text()
    const figure = (name: string): number => Number(new RegExp(`^${name} (\\S+)`, 'm').exec(page)?.[1])
    const heap = figure('nodejs_heap_size_used_bytes') + figure('nodejs_external_memory_bytes')
    if (!Number.isFinite(heap)) throw new Error('the metrics do not say what is in the heap')
    samples.push({ minute: minutes - (until - performance.now()) / 60_000, resident, heap })
    if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${requests} requests, ${(resident / MB).toFixed(0)} MB`)
  }
}
