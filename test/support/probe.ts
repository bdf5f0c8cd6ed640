import { readFileSync } from 'node:fs'
import { Agent, get } from 'node:http'

/*
 * A client that asks for one small answer after another, in a process of its own: what else its tests do, it does not wait for.
 * It is told on its standard input: a line begins a round, the next ends it; then the slowest answer of the round is written, in milliseconds.
 * What it, or the main thread of the process that it asks, waited for a processor does not count: other programs had it. Linux tells so.
 */

const [url = '', pid = ''] = process.argv.slice(2)
const agent = new Agent({ keepAlive: true, maxSockets: 1 })
const PAUSE_MS = 1

let slowest = 0
let begun: number | null = null

/** The main thread's time on a processor, and its time in line for one, in milliseconds. */
function scheduled(process: string): [ran: number, waited: number] {
  try {
    const [ran, waited] = readFileSync(`/proc/${process}/schedstat`, 'utf8')
      .split(' ')
      .map(ns => Number(ns) / 1e6)
    return [ran ?? 0, waited ?? 0]
  } catch {
    return [0, 0]
  }
}

function ask(): void {
  const asked = performance.now()
  const [ran, waited] = scheduled(pid)
  const [, mine] = scheduled('self')
  get(url, { agent }, response => {
    response.resume()
    response.once('end', () => {
      // One that was under way when the round began counts from there.
      if (begun !== null) {
        const took = performance.now() - Math.max(asked, begun)
        const after = scheduled(pid)
        const inLine = after[1] - waited + scheduled('self')[1] - mine
        // They may have waited at one time, but what it worked is sure.
        slowest = Math.max(slowest, took - inLine, Math.min(took, after[0] - ran))
      }
      setTimeout(ask, PAUSE_MS)
    })
  }).once('error', () => process.exit(1))
}

process.stdin.setEncoding('utf8')
process.stdin.on('data', lines => {
  for (const _line of String(lines).trim().split('\n')) {
    if (begun === null) {
      begun = performance.now()
      slowest = 0
      process.stdout.write('begun\n')
    } else {
      begun = null
      process.stdout.write(`${slowest}\n`)
    }
  }
})
process.stdin.on('end', () => process.exit(0))
ask()
