/*
 * Loaded into a gateway before it starts (node --import): on SIGUSR2 its wall clock goes forward to 2.5 s before the end of a minute, so that a
 * window of a minute turns while a test looks on.
 */
import { isMainThread } from 'node:worker_threads'

const MINUTE = 60_000
const now = Date.now
let ahead = 0

if (isMainThread) {
  Date.now = () => now() + ahead
  process.on('SIGUSR2', () => {
    const left = MINUTE - (Date.now() % MINUTE)
    ahead += (left > 2500 ? left : left + MINUTE) - 2500
  })
}
