import type { ServerResponse } from 'node:http'
import type { Outcome } from '../policy.js'
import type { Access } from '../telemetry/log.js'
import type { Recent } from '../telemetry/recent.js'
import { encode } from './wire.js'

/** How a gateway is at one moment. */
export interface State {
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly version: string
  readonly in_flight: number
  readonly open_holds: number
  readonly held_rial: bigint
  readonly oldest_hold_at: number | null
}

/** What a watcher is told: a request as it ends, each second the state, and how many requests it was not told of since it reads too slowly. */
export type LiveEvent =
  | { readonly kind: 'ended'; readonly state: Outcome['state']; readonly line: Access }
  | { readonly kind: 'state'; readonly state: State }
  | { readonly kind: 'missed'; readonly count: number }

/** What is watched. */
export interface Live {
  readonly recent: Pick<Recent, 'watch'>
  readonly state: () => State
}

const STATE_MS = 1000
/** Bytes that may wait for a watcher; beyond it, what comes is left out, and counted. */
const WAITING_MAX = 1024 * 1024

/** Tells a watcher from now on, a line of JSON each, until it leaves or `end` is called. Costs the requests nothing but their line. */
export function tell(response: ServerResponse, { recent, state }: Live): { readonly end: () => void } {
  let missed = 0
  const write = (event: LiveEvent): void => {
    if (response.writableLength > WAITING_MAX) {
      if (event.kind === 'ended') missed++
      return
    }
    if (missed > 0) response.write(`${encode({ kind: 'missed', count: missed } satisfies LiveEvent)}\n`)
    missed = 0
    response.write(`${encode(event)}\n`)
  }
  response.writeHead(200, { 'content-type': 'application/x-ndjson', connection: 'close' })
  const leave = recent.watch(({ line, state: ended }) => write({ kind: 'ended', state: ended, line }))
  const tick = (): void => write({ kind: 'state', state: state() })
  const timer = setInterval(tick, STATE_MS)
  timer.unref()
  tick()
  const stop = (): void => {
    leave()
    clearInterval(timer)
  }
  response.once('close', stop)
  return {
    end: () => {
      stop()
      response.end()
    },
  }
}
