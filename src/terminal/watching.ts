import { setTimeout as sleep } from 'node:timers/promises'
import { connectTo } from '../control/client.js'
import type { LiveEvent } from '../control/live.js'
import { socketOf } from '../control/place.js'
import type { Place } from './ledger.js'

/** What a gateway tells, and whether there is one. */
export type Watched = LiveEvent | { readonly kind: 'gone' } | { readonly kind: 'back' }

const PAUSE_MS = 500

/**
 * What happens at the gateway of a ledger, from now on, until `signal`. When it goes away this waits for it to come back. Throws an Error
 * with a remedy where none runs to begin with.
 */
export async function* watching({ ledger }: Place, signal: AbortSignal): AsyncGenerator<Watched> {
  const socket = socketOf(ledger.path)
  if (socket === null) throw new Error(`the gateway of ${ledger.path} can not be watched: there is no socket beside a ledger of its kind.`)
  let remote = await connectTo(socket)
  if (remote === null) throw new Error(`no gateway runs on ${ledger.path}.\nStart it: model-gateway serve`)
  while (!signal.aborted) {
    if (remote !== null) {
      try {
        yield* remote.watch(signal)
      } catch {
        // It was killed in the midst of a line: it is gone, too.
      }
      if (signal.aborted) return
      yield { kind: 'gone' }
    }
    await sleep(PAUSE_MS, undefined, { signal }).catch(() => {})
    if (signal.aborted) return
    remote = await connectTo(socket).catch(() => null)
    if (remote !== null) yield { kind: 'back' }
  }
}
