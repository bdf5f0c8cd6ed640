import { readFileSync } from 'node:fs'

/*
 * Loaded before the program (`node --import`): its wall clock is off by the milliseconds that a file holds, and follows the file; the monotonic clock
 * is left alone. Where the file holds `=` and a moment, both stand still. Works wherever Node does, so that no test of a boundary has to be skipped.
 */

const file = process.env.TEST_CLOCK
if (file !== undefined) {
  const real = Date.now
  const monotonic = performance.now.bind(performance)
  let offset = 0
  let still: { readonly wall: number; readonly monotonic: number } | null = null
  let readAt = Number.NEGATIVE_INFINITY
  const look = (): void => {
    // Often enough for a test that waits 10 ms after it has set the clock.
    if (monotonic() - readAt <= 5) return
    readAt = monotonic()
    const text = readFileSync(file, 'utf8')
    if (text.startsWith('=')) still ??= { wall: Number(text.slice(1)), monotonic: readAt }
    else {
      still = null
      offset = Number(text) || offset
    }
  }
  const now = (): number => {
    look()
    return still?.wall ?? real() + offset
  }
  performance.now = () => {
    look()
    return still?.monotonic ?? monotonic()
  }
  globalThis.Date = new Proxy(Date, {
    construct: (target, args, made) => Reflect.construct(target, args.length === 0 ? [now()] : args, made),
    get: (target, name, receiver) => (name === 'now' ? now : Reflect.get(target, name, receiver)),
  })
}
