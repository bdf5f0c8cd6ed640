import { existsSync, readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { parentPort } from 'node:worker_threads'
import { AUTH } from '../support/gateway.js'

/* One who asks for little, all the time, on a thread of its own: whether a hostile body keeps others waiting is seen here. */

export interface Probe {
  /** `performance.timeOrigin` + `performance.now()`, which is the same for all threads. */
  readonly from: number
  /** Until its answer was there. */
  readonly ms: number
  /** Of that, what the event loop of the gateway was at work, with this or with something else: a busy machine keeps it from working at all. */
  readonly busyMs: number
}

export interface Probed {
  readonly url: string
  readonly pid: number
}

export const now = (): number => performance.timeOrigin + performance.now()

const REST_MS = 3

/** Milliseconds that the main thread of a process has run; where the system does not tell, the clock. */
function worked(pid: number): number {
  const file = `/proc/${pid}/task/${pid}/schedstat`
  return existsSync(file) ? Number(readFileSync(file, 'utf8').split(' ')[0]) / 1e6 : now()
}

if (parentPort !== null) {
  const main = parentPort
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const ask = (url: string): Promise<number> =>
    new Promise((resolve, reject) => {
      request(url, { agent, headers: AUTH }, response => {
        response.resume().on('end', () => resolve(response.statusCode ?? 0))
      })
        .on('error', reject)
        .end()
    })
  main.once('message', async ({ url, pid }: Probed) => {
    let over = false
    main.once('message', () => {
      over = true
    })
    while (!over) {
      const from = now()
      const before = worked(pid)
      const status = await ask(`${url}/v1/models`)
      const ms = now() - from
      const busyMs = status === 200 ? Math.min(ms, worked(pid) - before) : Number.POSITIVE_INFINITY
      main.postMessage({ from, ms, busyMs } satisfies Probe)
      await sleep(REST_MS)
    }
    agent.destroy()
    main.close()
  })
}
