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

/** A step back by less is the work of whoever keeps clocks right. */
const STEP_TOLD_MS = 60_000

/**
 * A wall clock that never steps back, so that no window which has ended is entered again. Where the other one does, this one goes on at half
 * the pace until it has been caught up with: windows keep turning meanwhile, and a step of an hour is made good after two. `from`: what it has shown
 * already, in another process. `ahead` hears of each step back of more than a minute, in ms: who set the clock years ahead by mistake would wait as long.
 */
export function steady({ now, monotonic }: Clock, from: number = Number.NEGATIVE_INFINITY, ahead: (ms: number) => void = () => {}): Clock {
  let shown = from
  let since = from === Number.NEGATIVE_INFINITY ? 0 : monotonic()
  let told = false
  return {
    monotonic,
    now() {
      const instant = monotonic()
      const wall = now()
      shown = Math.max(wall, shown + (instant - since) / 2)
      since = instant
      if (shown - wall > STEP_TOLD_MS !== told) {
        told = !told
        if (told) ahead(shown - wall)
      }
      return Math.floor(shown)
    },
  }
}
