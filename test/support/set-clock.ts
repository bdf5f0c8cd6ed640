import { readFileSync } from 'node:fs'

/*
 * Loaded before the program (`node --import`): its wall clock is off by the milliseconds that a file holds, and follows the file. The monotonic
 * clock is left alone. Works wherever Node does, so that no test of a boundary has to be skipped.
 */

const file = process.env.TEST_CLOCK
if (file !== undefined) {
  const real = Date.now
  let offset = 0
  let readAt = Number.NEGATIVE_INFINITY
  const now = (): number => {
    // Often enough for a test that waits 10 ms after it has set the clock.
    if (performance.now() - readAt > 5) {
      readAt = performance.now()
      offset = Number(readFileSync(file, 'utf8')) || offset
    }
    return real() + offset
  }
  globalThis.Date = new Proxy(Date, {
    construct: (target, args, made) => Reflect.construct(target, args.length === 0 ? [now()] : args, made),
    get: (target, name, receiver) => (name === 'now' ? now : Reflect.get(target, name, receiver)),
  })
}
