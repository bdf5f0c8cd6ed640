/*
 * What more workers cost, and bring: node dist/test/bench/workers.js [rounds [seconds]]
 * One gateway with everything on, as in `npm run bench`, with 1 worker and with 2, in turn, under 64 connections. Two cores are not enough for two workers, a
 * provider and a load generator; so what counts is the processor time of all of the gateway's processes for a request. Of it follows how many requests two
 * cores of their own would answer, beside what one process answers on one.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { programFile } from '../support/paths.js'
import { ORDINARY } from './http/bodies.js'
import { flood, median, oneByOne, spread } from './http/load.js'
import { far, yaml } from './http/programs.js'

interface Round {
  readonly perSecond: number
  /** Microseconds of processor time for a request: of all processes, and of the one that owns the ledger, if that is another. */
  readonly cpu: number
  readonly owner: number
  /** Microseconds, one connection. */
  readonly alone: number
}

/** Each worker has to be compiled by its own part of the requests. */
const WARM_SECONDS = 25

const [rounds = '5', seconds = '6'] = process.argv.slice(2)
const provider = await far()
const results = new Map<string, Round[]>()
const settings: readonly { readonly name: string; readonly workers: number; readonly env?: Record<string, string> }[] = [
  { name: '1', workers: 1 },
  { name: '2', workers: 2 },
  { name: '2, each accepts by itself', workers: 2, env: { NODE_CLUSTER_SCHED_POLICY: 'none' } },
]
for (let round = 0; round < Number(rounds); round++) {
  for (const { name, workers, env = {} } of settings) {
    results.set(name, [...(results.get(name) ?? []), await measured(workers, env)])
  }
}
await provider.stop()

const one = median((results.get('1') ?? []).map(({ cpu }) => cpu))
console.log(
  '| workers | requests/s | CPU per request, µs | of it the owner, µs | one connection, p50, µs | two cores against one process on one |',
)
console.log('| --- | ---: | ---: | ---: | ---: | ---: |')
for (const [name, found] of results) {
  const of = (figure: keyof Round): string => {
    const values = found.map(round => round[figure])
    return `${Math.round(median(values))} (${Math.round(Math.min(...values))}-${Math.round(Math.max(...values))})`
  }
  const ratio = name === '1' ? '1.00' : ((2 * one) / median(found.map(({ cpu }) => cpu))).toFixed(2)
  console.log(`| ${name} | ${of('perSecond')} | ${of('cpu')} | ${name === '1' ? '' : of('owner')} | ${of('alone')} | ${ratio} |`)
}

async function measured(workers: number, env: Record<string, string>): Promise<Round> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-workers-'))
  const text = yaml({ name: 'gateway', durability: 'process', folder, origin: `http://127.0.0.1:${provider.port}` })
  writeFileSync(join(folder, 'gateway.yaml'), `workers: ${workers}\n${text}`)
  const log = join(folder, 'gateway.log')
  const child = spawn(process.execPath, [programFile(), 'serve', '-c', join(folder, 'gateway.yaml')], {
    env: { ...process.env, ...env },
    stdio: ['ignore', openSync(log, 'w'), 'inherit'],
  })
  const pid = child.pid as number
  const ended = new Promise(resolve => child.once('exit', resolve))
  try {
    const port = await listening(log)
    await flood(folder, port, ORDINARY, 64, WARM_SECONDS)
    const before = processes(pid).map(ticks)
    const { perSecond, errors } = await flood(folder, port, ORDINARY, 64, Number(seconds))
    if (errors > 0)
      throw new Error(
        `${errors} requests failed: ${readFileSync(log, 'utf8')
          .split('\n')
          .filter(line => !line.includes('"status":200'))
          .slice(0, 3)
          .join('\n')}`,
      )
    const spent = processes(pid).map((one, i) => ticks(one) - (before[i] ?? 0))
    const requests = perSecond * Number(seconds)
    const cpu = (1e4 * spent.reduce((sum, one) => sum + one, 0)) / requests
    const alone = spread(await oneByOne(port, ORDINARY, 2000)).p50
    return { perSecond, cpu, owner: (1e4 * (spent[0] ?? 0)) / requests, alone }
  } finally {
    child.kill('SIGTERM')
    await ended
    rmSync(folder, { recursive: true })
  }
}

async function listening(log: string): Promise<number> {
  for (;;) {
    const port = /"message":"listening","address":"http:\/\/127.0.0.1:(\d+)"/.exec(readFileSync(log, 'utf8'))?.[1]
    if (port !== undefined) return Number(port)
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}

/** The process and its children, itself first. */
function processes(pid: number): number[] {
  const children = readdirSync('/proc')
    .filter(name => /^\d+$/.test(name) && parent(Number(name)) === pid)
    .map(Number)
  return [pid, ...children.sort((a, b) => a - b)]
}

function parent(pid: number): number {
  return Number(fields(pid)[1] ?? 0)
}

/** Of a hundredth of a second: in the program, and in the system for it. */
function ticks(pid: number): number {
  const found = fields(pid)
  return Number(found[11]) + Number(found[12])
}

/** What /proc says after the name, which may hold anything. */
function fields(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'latin1')
      .replace(/^.*\) /s, '')
      .split(' ')
  } catch {
    return []
  }
}
