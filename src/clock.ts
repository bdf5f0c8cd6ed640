/** Time as the gateway sees it. Passed in, so that tests choose what time it is. */
export interface Clock {
  /** Wall clock: milliseconds since the epoch. May step in either direction. */
  now(): number
  /** Milliseconds since an arbitrary start. Never steps back. For durations only. */
  monotonic(): number
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
}

/**
 * A wall clock that never steps back, so that no window which has ended is entered again. Where the other one does, this one goes on at half
 * the pace until it has been caught up with: windows keep turning meanwhile, and a step of an hour is made good after two. `from`: what it has shown
 * already, in another process.
 */
export function steady({ now, monotonic }: Clock, from = Number.NEGATIVE_INFINITY): Clock {
  let shown = from
  let since = from === Number.NEGATIVE_INFINITY ? 0 : monotonic()
  return {
    monotonic,
    now() {
      const instant = monotonic()
      shown = Math.max(now(), shown + (instant - since) / 2)
      since = instant
      return Math.floor(shown)
    },
  }
}
