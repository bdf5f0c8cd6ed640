import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openLedger } from '../../src/ledger/sqlite.js'
import { bare } from '../support/program.js'
import { disk } from '../support/slow-disk.js'

/*
 * A ledger's process is killed at the entry of a system call that touches its files, or that call fails; which one is drawn at random, again and again on one
 * file: in the midst of a checkpoint, of pruning, of a backup, of opening and closing. `node dist/test/promises/kill-points.js 60`. What was answered is
 * there, no start is refused, and whatever bears a backup's name is whole.
 */

export interface KillPoints {
  readonly kills: number
  readonly diskFaults: number
  /** What the process was at. */
  readonly at: Readonly<Record<string, number>>
  /** Settlements that were answered, and found again. */
  readonly reconciled: number
  /** What all settlements that were found are billed, less what they cost. */
  readonly differenceRial: bigint
  /** Records that are in sums by day. */
  readonly pruned: number
  /** Found whole. */
  readonly backups: number
  readonly faults: readonly string[]
}

const CHILD = fileURLToPath(new URL('../ledger/child.js', import.meta.url))
const ALL = { by: [], timezone: 'UTC', calendar: 'gregorian' } as const
/** What each of its settlements costs. */
const COST = 450n

/** System calls, what becomes of one, and up to which one of its kind the process may live: some three cycles of its work. */
const POINTS = [
  ['pwrite64', 'signal=KILL', 400],
  ['fdatasync', 'error=EIO', 40],
  ['fdatasync', 'signal=KILL', 40],
  ['pwrite64', 'error=ENOSPC', 400],
  ['ftruncate', 'signal=KILL', 14],
  ['pwrite64', 'error=EIO', 400],
  ['fsync', 'signal=KILL', 8],
  ['ftruncate', 'error=EIO', 14],
  ['unlink', 'signal=KILL', 5],
  ['fsync', 'error=EIO', 8],
] as const

/** `folder`: an empty one. */
export async function killPoints(folder: string, rounds: number): Promise<KillPoints> {
  const path = join(folder, 'ledger.db')
  const faults: string[] = []
  const at: Record<string, number> = {}
  const settled = new Set<string>()
  let found = { pruned: 0, differenceRial: 0n }
  let kills = 0
  let backups = 0
  for (let round = 0; round < rounds; round++) {
    const [call, how, most] = POINTS[round % POINTS.length] as (typeof POINTS)[number]
    const when = randomInt(1, most)
    const killed = how === 'signal=KILL'
    const said = await ended(path, call, `${how}:when=${when}${killed ? '' : '+'}`)
    const phase = said.findLast(line => line.startsWith('at '))?.slice(3) ?? 'starting'
    const fault = (words: string) => faults.push(`round ${round + 1}, ${how} of ${call} ${when}, at ${phase}: ${words}`)
    if (killed) kills++
    at[phase] = (at[phase] ?? 0) + 1
    for (const line of said) if (line.startsWith('settled ')) settled.add(line.slice(8))
    // A disk that fails is told; a kill is not heard of.
    if (killed) for (const line of said) if (line.startsWith('! ')) fault(line.slice(2))
    try {
      found = await look(path, said, settled, fault)
      backups += await lookAtCopies(path, said)
    } catch (error) {
      fault((error as Error).message)
    }
  }
  return { kills, diskFaults: rounds - kills, at, reconciled: settled.size, ...found, backups, faults }
}

/** What the process said before its end. */
async function ended(path: string, call: string, how: string): Promise<string[]> {
  // Not --seccomp-bpf: with it, strace 6.1 injects no signals.
  const strace = ['strace', '-D', '-f', '-qq', '-o', '/dev/null', '-e', `trace=${call}`, '-e', `inject=${call}:${how}`]
  const [command = '', ...rest] = bare([...strace, process.execPath, CHILD, 'cycles', path])
  const child = spawn(command, rest, { stdio: ['ignore', 'pipe', 'pipe'] })
  let text = ''
  child.stdout.on('data', chunk => (text += chunk))
  child.stderr.on('data', chunk => (text += `! ${String(chunk).replaceAll('\n', ' ').slice(0, 400)}\n`))
  // A call that this machine's SQLite makes less often than expected.
  const patience = setTimeout(() => child.kill('SIGKILL'), 20_000)
  await once(child, 'close')
  clearTimeout(patience)
  return text.split('\n')
}

/** Opens what was left. Adds to `settled` what it finds so. */
async function look(path: string, said: readonly string[], settled: Set<string>, fault: (words: string) => void) {
  const ledger = await openLedger({ path, durability: 'power', create: true })
  try {
    for (const { what, expected, found } of await ledger.verify()) fault(`${what}: ${found}, not ${expected}`)
    const states = new Map((await ledger.records({})).map(({ id, state }) => [id, state]))
    for (const line of said) {
      const id = /^held (.*)$/.exec(line)?.[1]
      if (id !== undefined && !states.has(id) && !settled.has(id)) fault(`the hold ${id} is lost`)
    }
    for (const id of settled) if (states.has(id) && states.get(id) !== 'settled') fault(`${id} is ${states.get(id)}`)
    // What was settled and could not be told any more is known from here on.
    for (const [id, state] of states) if (state === 'settled') settled.add(id)
    const count = (...wanted: string[]) => [...states.values()].filter(state => wanted.includes(state)).length
    const [{ requests, failed, cost_rial } = { requests: 0, failed: 0, cost_rial: 0n }] = await ledger.usage(ALL)
    const pruned = requests - count('settled', 'recovered')
    const gone = [...settled].filter(id => !states.has(id)).length
    // A hold that was left open is recovered, and may be in a sum, too.
    const most = gone + failed - count('recovered')
    if (pruned < gone || pruned > most) fault(`${gone} records are gone, and ${pruned} are in sums, where ${most} may be`)
    return { pruned, differenceRial: cost_rial - COST * BigInt(requests - failed) }
  } finally {
    await ledger.close()
  }
}

/** Whatever bears a backup's name is a whole ledger; gives how many there were. */
async function lookAtCopies(path: string, said: readonly string[]): Promise<number> {
  const names = readdirSync(dirname(path)).filter(name => name.startsWith(`${basename(path)}.`) && name.includes('.copy'))
  for (const line of said) {
    const copy = /^copied (.*)$/.exec(line)?.[1]
    if (copy !== undefined && !existsSync(copy)) throw new Error(`the backup ${copy} was told, and is not there`)
  }
  let whole = 0
  for (const name of names) {
    const copy = join(dirname(path), name)
    if (name.endsWith('.copy')) {
      const ledger = await openLedger({ path: copy, durability: 'process', create: false })
      const differences = await ledger.verify()
      await ledger.close()
      if (differences.length > 0) throw new Error(`the backup ${name} differs: ${JSON.stringify(differences)}`)
      whole++
    }
    rmSync(copy, { force: true })
  }
  return whole
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const possible = disk({ calls: 'fdatasync', how: 'delay_enter=1' })
  if (typeof possible === 'string') {
    console.log(`passed over: ${possible}`)
  } else {
    const folder = mkdtempSync(join(tmpdir(), 'kill-points-'))
    const { at, faults, ...counts } = await killPoints(folder, Number(process.argv[2] ?? 60))
    rmSync(folder, { recursive: true })
    for (const [name, count] of Object.entries(counts)) console.log(`${name.padEnd(16)}${count}`)
    for (const [name, count] of Object.entries(at)) console.log(`killed at ${name.padEnd(10)}${count}`)
    for (const fault of faults) console.log(`FAULT ${fault}`)
    console.log(`${faults.length} faults`)
    process.exitCode = faults.length === 0 && counts.differenceRial === 0n ? 0 : 1
  }
}
