import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { parentPort } from 'node:worker_threads'
import { AUTH } from '../support/gateway.js'

/* One who asks for little, all the time, on a thread of its own: whether a hostile body keeps others waiting is seen here. */

export interface Probe {
  /** `performance.timeOrigin` + `performance.now()`, which is the same for all threads. */
  readonly from: number
  readonly ms: number
}

export const now = (): number => performance.timeOrigin + performance.now()

const REST_MS = 3

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
  main.once('message', async (url: string) => {
    let over = false
    main.once('message', () => {
      over = true
    })
    while (!over) {
      const from = now()
      const status = await ask(`${url}/v1/models`)
      main.postMessage(status === 200 ? { from, ms: now() - from } : { from, ms: Number.POSITIVE_INFINITY })
      await sleep(REST_MS)
    }
    agent.destroy()
    main.close()
  })
}
