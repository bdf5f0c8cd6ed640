import { Agent, get } from 'node:http'

/*
 * A client that asks for one small answer after another, in a process of its own: what else its tests do, it does not wait for.
 * It is told on its standard input: a line begins a round, the next ends it; then the slowest answer of the round is written, in milliseconds.
 */

const url = process.argv[2] as string
const agent = new Agent({ keepAlive: true, maxSockets: 1 })
const PAUSE_MS = 1

let slowest = 0
let begun: number | null = null

function ask(): void {
  const asked = performance.now()
  get(url, { agent }, response => {
    response.resume()
    response.once('end', () => {
      // One that was under way when the round began counts from there.
      if (begun !== null) slowest = Math.max(slowest, performance.now() - Math.max(asked, begun))
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
