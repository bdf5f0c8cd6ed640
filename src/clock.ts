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
