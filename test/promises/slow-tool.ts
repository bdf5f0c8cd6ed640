import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'

/*
 * One attack of `slowhttptest`. When a connection was cut is looked up in the system's table of connections, since the tool itself notices only
 * once it reads; on a thread of its own, which delays nobody who is measured, as the tool, which is to give way to all others, does not either.
 */

export const ATTACKS = {
  'slow header (-H)': ['-H', '-i', '1', '-x', '8'],
  'slow body (-B)': ['-B', '-i', '1', '-x', '8', '-s', '100000', '-f', 'application/json'],
  'slow read (-X)': ['-X', '-w', '1', '-y', '1', '-n', '5', '-z', '1', '-k', '3'],
}
/** Between two looks at the table. */
const LOOK_MS = 250
/** The tool is given up then. */
const WATCHED_MS = 40_000

export interface Order {
  readonly kind: keyof typeof ATTACKS
  readonly port: number
  readonly connections: number
}

export interface Held {
  readonly connections: number
  readonly longestMs: number
}

/** The far ends' ports of a listener's connections, by Linux. */
function connectionsOf(port: number): Set<string> {
  const ours = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const rows = readFileSync('/proc/net/tcp', 'utf8').split('\n').slice(1)
  const open = new Set<string>()
  for (const row of rows) {
    const [, local = '', remote = '', state = ''] = row.trim().split(/\s+/)
    // ESTABLISHED and CLOSE_WAIT: what the listener has not let go.
    if (local.endsWith(ours) && (state === '01' || state === '08')) open.add(remote)
  }
  return open
}

/** One attack, from its first connection to the moment in which its last one was cut. */
async function attack({ kind, port, connections }: Order): Promise<Held> {
  const others = connectionsOf(port)
  const count = String(connections)
  const target = `http://127.0.0.1:${port}/v1/chat/completions`
  const asked = [...ATTACKS[kind], '-c', count, '-r', count, '-l', String(WATCHED_MS / 1000), '-u', target]
  const tool = spawn('nice', ['-n', '19', 'slowhttptest', ...asked], { stdio: 'ignore' })
  const ended = once(tool, 'exit')
  const first = new Map<string, number>()
  const last = new Map<string, number>()
  const until = performance.now() + WATCHED_MS
  let open = 0
  do {
    await sleep(LOOK_MS)
    const at = performance.now()
    open = 0
    for (const one of connectionsOf(port)) {
      if (others.has(one)) continue
      if (!first.has(one)) first.set(one, at)
      last.set(one, at)
      open++
    }
  } while (performance.now() < until && tool.exitCode === null && (open > 0 || first.size < connections))
  tool.kill('SIGKILL')
  await ended
  const stays = [...first].map(([one, from]) => (last.get(one) as number) - from + LOOK_MS)
  return { connections: first.size, longestMs: open > 0 ? Number.POSITIVE_INFINITY : Math.round(Math.max(0, ...stays)) }
}

parentPort?.postMessage(await attack(workerData as Order))
