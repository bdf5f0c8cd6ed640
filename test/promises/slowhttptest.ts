import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { gateway, KEY } from '../support/gateway.js'
import { CUT_MS, during, NOISE_MS, REST_MS, USUAL_MS } from './slow-attack.js'
import type { Held } from './slow-tool.js'

/*
 * The attacks of a tool that others use against servers, `slowhttptest`: `node dist/test/promises/slowhttptest.js 1000`, so many connections of
 * each kind, by strangers. Each must be cut within 15 s, and others keep their times.
 */

const CONFIG = `
ledger: {path: data/ledger.db, durability: process}
providers: {sandbox: {kind: sandbox}}
models: {sandbox/echo: {price: free}}
plans: {p: {}}
keys: {a: {plan: p, secret: ${KEY}}}
`

const KINDS = ['slow header (-H)', 'slow body (-B)', 'slow read (-X)'] as const
/** How often an attack is watched, at most, where the machine spoils the time of others. */
const ROUNDS = 3

async function slowHttpTest(connections: number): Promise<string[]> {
  const folder = mkdtempSync('/tmp/slowhttptest-')
  const undo: (() => unknown)[] = []
  const running = await gateway({ teardown: fn => undo.push(fn), testdir: () => folder }, CONFIG)
  const port = Number(new URL(running.url).port)
  await during(running, sleep(1_000), REST_MS)
  let usual = await during(running, sleep(USUAL_MS), REST_MS)
  const wrong: string[] = []
  for (const kind of KINDS) {
    for (let round = 1; ; round++) {
      const held = once(new Worker(new URL('slow-tool.js', import.meta.url), { workerData: { kind, port, connections } }), 'message')
      const meanwhile = await during(running, held, REST_MS)
      const [{ connections: many, longestMs }] = (await held) as [Held]
      const noisy = meanwhile.p99Ms > 2 * usual.p99Ms + NOISE_MS
      // Nor is it an attack of so many where the tool, which gives way to all others, did not come to make them.
      if ((noisy || many < connections) && round < ROUNDS) {
        usual = await during(running, sleep(USUAL_MS), REST_MS)
        continue
      }
      console.log(
        `${kind}: ${many} connections, all cut within ${longestMs / 1000} s; others: ${meanwhile.requests} requests, ${meanwhile.failed} failed, p99 ${meanwhile.p99Ms} ms, usually ${usual.p99Ms} ms`,
      )
      if (many < connections) wrong.push(`${kind}: only ${many} connections came about`)
      if (longestMs > CUT_MS) wrong.push(`${kind}: one could stay for ${longestMs} ms`)
      if (meanwhile.failed > 0 || meanwhile.requests === 0) wrong.push(`${kind}: ${meanwhile.failed} ordinary requests failed`)
      if (noisy) wrong.push(`${kind}: ordinary requests took ${meanwhile.p99Ms} ms, usually ${usual.p99Ms} ms`)
      break
    }
  }
  await running.stop()
  for (const step of undo) await step()
  rmSync(folder, { recursive: true })
  return wrong
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const connections = Number(process.argv[2] ?? 1000)
  const wrong = await slowHttpTest(connections)
  for (const fault of wrong) console.log(`FAULT ${fault}`)
  console.log(`${connections * KINDS.length} connections held, ${wrong.length} faults`)
  process.exitCode = wrong.length === 0 ? 0 : 1
}
