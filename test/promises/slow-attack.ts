import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { AUTH, gateway, KEY, type RunningGateway } from '../support/gateway.js'
import type { Bench } from './kill-loop.js'
import { ATTACKS, type Attack, type Order, type Stays } from './slow-attackers.js'

/*
 * Clients that hold on to connections as long as they can: `node dist/test/promises/slow-attack.js 1000`, which is so many of each kind. They
 * send their header or their body byte by byte, or never read their answer. Each must be cut within 15 s, and others must not notice: none of
 * their requests may fail, and 99 of 100 must be answered within twice the time that they usually are.
 */

export interface Attacked {
  readonly attack: Attack
  readonly connections: number
  /** The longest that one of them could stay, or that one who does not read was borne when it took nothing more. Milliseconds; `Infinity`: to the end. */
  readonly longestMs: number
  /** Of ordinary clients meanwhile, and what they usually take. */
  readonly requests: number
  readonly failed: number
  readonly p99Ms: number
  readonly usualP99Ms: number
}

export const CUT_MS = 15_000
/** A machine that others use is late by as much, attack or not. */
export const NOISE_MS = 25
export const USUAL_MS = 4_000
/** How often an attack is watched, at most: a busy machine can spoil the time of others again and again. */
const ROUNDS = 6
const CLIENTS = 4
/** Of a client between two requests; where its times are asked for, and where they are not. */
export const REST_MS = 20
const LONG_REST_MS = 100

const CHAT = '/v1/chat/completions'
const BODY = JSON.stringify({ model: 'sandbox/echo', messages: [{ role: 'user', content: 'Hello' }] })

const config = (url: string): string => `
ledger: {path: data/ledger.db, durability: process}
providers:
  sandbox: {kind: sandbox}
  up: {kind: openai, base_url: "${url}", max_connections: 10000}
models:
  sandbox/echo: {price: free}
  up/long: {price: free}
plans: {p: {}}
keys: {a: {plan: p, secret: ${KEY}}}
timeout: {write: 10s}
`

/** Each kind of attack in turn, with so many connections: the best of at most so many rounds, as far as others are concerned. */
export async function slowAttack(
  bench: Bench,
  connections: number,
  kinds: readonly Attack[] = ATTACKS,
  most = ROUNDS,
): Promise<Attacked[]> {
  const worker = new Worker(new URL('slow-attackers.js', import.meta.url))
  bench.teardown(() => worker.terminate())
  const told = async (order?: Order): Promise<unknown> => {
    const answer = once(worker, 'message')
    if (order !== undefined) worker.postMessage(order)
    return (await answer)[0]
  }
  const running = await gateway(bench, config((await told()) as string))
  const port = Number(new URL(running.url).port)
  const single = most === 1
  const restMs = single ? LONG_REST_MS : REST_MS
  await during(running, sleep(single ? 0 : 1_000), restMs)
  const attacks: Attacked[] = []
  for (const attack of kinds) {
    const rounds: Attacked[] = []
    do {
      // A single round is held against nothing.
      const usual = await during(running, sleep(single ? 0 : USUAL_MS), restMs)
      const all = told({ attack, port, connections })
      const others = await during(running, all, restMs)
      const longestMs = Math.round(Math.max(...((await all) as Stays)))
      rounds.push({ attack, connections, longestMs, ...others, usualP99Ms: usual.p99Ms })
    } while (faults(rounds).length > 0 && rounds.length < most)
    attacks.push(best(rounds))
  }
  await running.stop()
  return attacks
}

/** What is wrong with an attack; nothing, where it is empty. */
export function faults(rounds: readonly Attacked[]): string[] {
  const { attack, longestMs, requests, failed, p99Ms, usualP99Ms } = best(rounds)
  return [
    ...(longestMs <= CUT_MS ? [] : [`${attack}: one could stay for ${longestMs} ms`]),
    ...(failed === 0 && requests > 0 ? [] : [`${attack}: of ${requests} ordinary requests, ${failed} failed`]),
    ...(p99Ms <= 2 * usualP99Ms + NOISE_MS ? [] : [`${attack}: ordinary requests took ${p99Ms} ms, usually ${usualP99Ms} ms`]),
  ]
}

/** The times are those of the round that was least disturbed; who failed in any round did. */
function best(rounds: readonly Attacked[]): Attacked {
  const [least] = [...rounds].sort((a, b) => a.p99Ms / a.usualP99Ms - b.p99Ms / b.usualP99Ms)
  const { attack, connections, p99Ms, usualP99Ms } = least as Attacked
  const sum = (of: 'requests' | 'failed') => rounds.reduce((all, round) => all + round[of], 0)
  const longestMs = Math.min(...rounds.map(round => round.longestMs))
  return { attack, connections, longestMs, requests: sum('requests'), failed: sum('failed'), p99Ms, usualP99Ms }
}

/** Ordinary clients, until something is over. */
export async function during(
  running: RunningGateway,
  something: Promise<unknown>,
  restMs: number,
): Promise<Pick<Attacked, 'requests' | 'failed' | 'p99Ms'>> {
  let over = false
  void something.then(() => {
    over = true
  })
  const took: number[] = []
  let failed = 0
  const ordinary = async (): Promise<void> => {
    while (!over) {
      const from = performance.now()
      const { status } = await running.post(CHAT, BODY, AUTH)
      took.push(performance.now() - from)
      if (status !== 200) failed++
      await sleep(restMs)
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, ordinary))
  took.sort((a, b) => a - b)
  return { requests: took.length, failed, p99Ms: Math.round((took[Math.floor(took.length * 0.99)] ?? 0) * 10) / 10 }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { mkdtempSync, rmSync } = await import('node:fs')
  const folder = mkdtempSync('/tmp/slow-attack-')
  const undo: (() => unknown)[] = []
  const attacks = await slowAttack({ teardown: fn => undo.push(fn), testdir: () => folder }, Number(process.argv[2] ?? 1000))
  for (const step of undo) await step()
  rmSync(folder, { recursive: true })
  for (const { attack, connections, longestMs, requests, failed, p99Ms, usualP99Ms } of attacks) {
    console.log(
      `${attack}: ${connections} connections, all cut within ${longestMs / 1000} s; others: ${requests} requests, ${failed} failed, p99 ${p99Ms} ms, usually ${usualP99Ms} ms`,
    )
  }
  const wrong = attacks.flatMap(one => faults([one]))
  for (const fault of wrong) console.log(`FAULT ${fault}`)
  console.log(`${attacks.reduce((all, { connections }) => all + connections, 0)} connections held, ${wrong.length} faults`)
  process.exitCode = wrong.length === 0 ? 0 : 1
}
