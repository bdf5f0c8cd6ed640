import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { AUTH, gateway, KEY } from '../support/gateway.js'
import { openStream, provider, type Script } from '../support/provider.js'
import type { Bench } from './kill-loop.js'

/*
 * Clients that hold on to connections as long as they can: `node dist/test/promises/slow-attack.js 1000`. Some say nothing, some send their
 * header or their body byte by byte, some never read their answer. Each must be cut within 15 s, and others must not notice.
 */

export interface SlowAttack {
  /** By what they did: how many, and the longest that one of them could stay. Milliseconds. */
  readonly attackers: Readonly<Record<Attack, { readonly count: number; readonly longestMs: number }>>
  /** Of ordinary clients, while the attack lasted. */
  readonly requests: number
  readonly failed: number
  readonly slowestMs: number
  readonly medianMs: number
}

const ATTACKS = ['silence', 'slow header', 'slow body', 'slow read'] as const
type Attack = (typeof ATTACKS)[number]

const CHAT = '/v1/chat/completions'
const BODY = JSON.stringify({ model: 'sandbox/echo', messages: [{ role: 'user', content: 'Hello' }] })
const LONG = JSON.stringify({ model: 'up/long', stream: true, messages: [{ role: 'user', content: 'Hello' }] })
/** How long an attack is watched. An attacker that is still there is told as `Infinity`. */
const WATCHED_MS = 30_000
const DRIP_MS = 1_000

const config = (url: string): string => `
ledger: {path: data/ledger.db, durability: process}
providers:
  sandbox: {kind: sandbox}
  up: {kind: openai, base_url: "${url}"}
models:
  sandbox/echo: {price: free}
  up/long: {price: free}
plans: {p: {}}
keys: {a: {plan: p, secret: ${KEY}}}
timeout: {write: 5s}
`

export async function slowAttack(bench: Bench, connections: number): Promise<SlowAttack> {
  const up = await provider(bench, endless)
  const running = await gateway(bench, config(up.url))
  const { port } = new URL(running.url)
  const attackers = Array.from({ length: connections }, (_, i) => {
    // Those that do not read make the gateway work; a few of them are as good as many.
    const attack = i % 20 === 0 ? 'slow read' : (ATTACKS[i % 3] as Attack)
    return stays(Number(port), attack).then(ms => ({ attack, ms }))
  })
  let over = false
  const all = Promise.all(attackers).then(ended => {
    over = true
    return ended
  })
  const took: number[] = []
  let failed = 0
  const ordinary = async (): Promise<void> => {
    while (!over) {
      const from = performance.now()
      const { status } = await running.post(CHAT, BODY, AUTH)
      took.push(performance.now() - from)
      if (status !== 200) failed++
      await sleep(20)
    }
  }
  const [ended] = await Promise.all([all, ordinary(), ordinary(), ordinary(), ordinary()])
  await running.stop()
  took.sort((a, b) => a - b)
  const of = (attack: Attack) => {
    const times = ended.filter(one => one.attack === attack).map(one => one.ms)
    return { count: times.length, longestMs: Math.round(Math.max(...times)) }
  }
  return {
    attackers: Object.fromEntries(ATTACKS.map(attack => [attack, of(attack)])) as SlowAttack['attackers'],
    requests: took.length,
    failed,
    slowestMs: Math.round(took.at(-1) ?? 0),
    medianMs: Math.round(took[took.length >> 1] ?? 0),
  }
}

/** Streams until nobody listens any more: more than all buffers on the way can take. */
const endless: Script = async (seen, response) => {
  let listening = true
  void seen.closed.then(() => {
    listening = false
  })
  const stream = openStream(seen, response)
  while (listening) {
    stream.say('x'.repeat(16_000))
    while (listening && response.writableNeedDrain) await sleep(5)
  }
}

/** Attacks, and how long it was borne. */
function stays(port: number, attack: Attack): Promise<number> {
  const from = performance.now()
  const socket = connect(port, '127.0.0.1')
  const head = `POST ${CHAT} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${KEY}\r\ncontent-type: application/json\r\n`
  let drip: NodeJS.Timeout | undefined
  const dripping = (text: string): void => {
    socket.write(text)
    drip = setInterval(() => socket.write('x'), DRIP_MS)
  }
  socket.on('connect', () => {
    if (attack === 'slow header') dripping(`${head}x-slow: `)
    else if (attack === 'slow body') dripping(`${head}content-length: 100000\r\n\r\n{`)
    else if (attack === 'slow read') socket.write(`${head}content-length: ${LONG.length}\r\n\r\n${LONG}`)
  })
  if (attack === 'slow read') socket.pause()
  else socket.resume()
  return new Promise(resolve => {
    const watched = setTimeout(() => end(Number.POSITIVE_INFINITY), WATCHED_MS)
    // Whether a paused connection was cut shows only when it is written to; empty lines before a request mean nothing.
    const poke = attack === 'slow read' ? setInterval(() => socket.write('\r\n'), 250) : undefined
    const end = (ms: number): void => {
      for (const timer of [watched, drip, poke]) clearTimeout(timer)
      socket.destroy()
      resolve(ms)
    }
    socket.on('error', () => {})
    socket.on('close', () => end(performance.now() - from))
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { mkdtempSync, rmSync } = await import('node:fs')
  const folder = mkdtempSync('/tmp/slow-attack-')
  const undo: (() => unknown)[] = []
  const connections = Number(process.argv[2] ?? 1000)
  const told = await slowAttack({ teardown: fn => undo.push(fn), testdir: () => folder }, connections)
  for (const step of undo) await step()
  rmSync(folder, { recursive: true })
  console.log(JSON.stringify(told, null, 2))
  const bounded = Object.values(told.attackers).every(({ longestMs }) => longestMs <= 15_000)
  process.exitCode = bounded && told.failed === 0 && told.requests > 0 ? 0 : 1
}
