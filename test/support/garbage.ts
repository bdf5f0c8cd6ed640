import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc') as () => void

/** Bytes that V8 holds, of which nothing can be collected. */
export function heap(): number {
  gc()
  return process.memoryUsage().heapUsed
}

/** Whether nothing holds on to it any more, once what is under way has come to its end. */
export async function isGone(what: WeakRef<object>): Promise<boolean> {
  // What was looked at in a turn is kept to its end.
  for (let i = 0; i < 3; i++) {
    await new Promise(resolve => setTimeout(resolve, 5))
    gc()
  }
  return what.deref() === undefined
}
