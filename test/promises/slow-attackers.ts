import { spawn } from 'node:child_process'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parentPort } from 'node:worker_threads'
import { KEY } from '../support/gateway.js'
import { openStream, provider, type Script } from '../support/provider.js'

/* The attackers, and the provider that they want answers of: on a thread of their own, so that what they cost delays nobody who is measured. */

export const ATTACKS = ['slow header', 'slow body', 'slow read'] as const
export type Attack = (typeof ATTACKS)[number]

export interface Order {
  readonly attack: Attack
  readonly port: number
  readonly connections: number
}

/** How long each could stay. Milliseconds; `Infinity`: it was there to the end. */
export type Stays = readonly number[]

/** How long one is watched. */
const WATCHED_MS = 30_000
const DRIP_MS = 1_000
/** Between the first connection and the last. */
const RAMP_MS = 4_000

const CHAT = '/v1/chat/completions'
const LONG = JSON.stringify({ model: 'up/long', stream: true, messages: [{ role: 'user', content: 'Hello' }] })

async function attacked({ attack, port, connections }: Order): Promise<Stays> {
  if (attack === 'slow read') return unread(port, connections)
  const all = Array.from({ length: connections }, async (_, i) => {
    await sleep((RAMP_MS * i) / connections)
    return stays(port, attack, i)
  })
  return Promise.all(all)
}

const HEAD = `POST ${CHAT} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${KEY}\r\ncontent-type: application/json\r\n`

/** Says what it has to byte by byte; how long that was borne. */
function stays(port: number, attack: Attack, index: number): Promise<number> {
  const from = performance.now()
  const socket = connect(port, '127.0.0.1').resume()
  let drip: NodeJS.Timeout | undefined
  const dripping = (text: string): void => {
    socket.write(text)
    drip = setInterval(() => socket.write('x'), DRIP_MS)
  }
  socket.on('connect', () => {
    if (attack === 'slow body') dripping(`${HEAD}content-length: 100000\r\n\r\n{`)
    // Every tenth says nothing at all.
    else if (index % 10 > 0) dripping(`${HEAD}x-slow: `)
  })
  return new Promise(resolve => {
    const watched = setTimeout(() => end(Number.POSITIVE_INFINITY), WATCHED_MS)
    const end = (ms: number): void => {
      for (const timer of [watched, drip]) clearTimeout(timer)
      socket.destroy()
      resolve(ms)
    }
    socket.on('error', () => {})
    socket.on('close', () => end(performance.now() - from))
  })
}

/** How long each stream was borne from the last byte that was taken of it. */
let ended: number[] = []

/** Streams of which nothing is read. That one was cut its provider sees, it does not. */
async function unread(port: number, connections: number): Promise<Stays> {
  ended = []
  const readers = spawn('python3', [fileURLToPath(READERS), String(port), String(connections), String(RAMP_MS / 1000)])
  readers.stdin.end(`${HEAD}content-length: ${LONG.length}\r\n\r\n${LONG}`)
  readers.stderr.pipe(process.stderr)
  const until = performance.now() + 2 * WATCHED_MS
  while (ended.length < connections && performance.now() < until) await sleep(50)
  readers.kill('SIGKILL')
  return Array.from({ length: connections }, (_, i) => ended[i] ?? Number.POSITIVE_INFINITY)
}

const READERS = new URL('../../../test/promises/slow-readers.py', import.meta.url)
/** More than all buffers on the way can take; one that is not read never gets to its end. */
const PIECES = 12

const stalling: Script = async (seen, response) => {
  let taken = performance.now()
  let listening = true
  void seen.closed.then(() => {
    listening = false
    ended.push(performance.now() - taken)
  })
  const stream = openStream(seen, response)
  for (let i = 0; listening && i < PIECES; i++) {
    stream.say('x'.repeat(16_000))
    taken = performance.now()
    await sleep(20)
  }
}

if (parentPort !== null) {
  const main = parentPort
  const up = await provider({ teardown: () => {} }, stalling)
  main.postMessage(up.url)
  main.on('message', (order: Order | null) => {
    if (order !== null) void attacked(order).then(all => main.postMessage(all))
    else void up.close().then(() => main.close())
  })
}
