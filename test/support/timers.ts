/** Timers that run when the test says so. Node's own stay as they are: sockets and servers do not notice. */
export interface FakeTimers {
  /** Lets this much time pass, in milliseconds: what falls due runs, in order. */
  advance(ms: number): void
  /** How many are set. */
  readonly set: number
  /** How many have ever been. */
  readonly made: number
}

class FakeTimer {
  due: number | null
  constructor(
    readonly clock: { now: number },
    readonly ms: number,
    readonly run: () => void,
  ) {
    this.due = clock.now + ms
  }
  refresh(): this {
    this.due = this.clock.now + this.ms
    return this
  }
  ref(): this {
    return this
  }
  unref(): this {
    return this
  }
  hasRef(): boolean {
    return true
  }
}

/** In the place of the global `setTimeout`, until the test ends. */
export function fakeTimers(t: { teardown(fn: () => unknown): unknown }): FakeTimers {
  const { setTimeout: set, clearTimeout: clear } = globalThis
  const clock = { now: 0 }
  const timers = new Set<FakeTimer>()
  const next = (until: number): FakeTimer | undefined =>
    [...timers].filter(({ due }) => due !== null && due <= until).sort((a, b) => (a.due as number) - (b.due as number))[0]
  globalThis.setTimeout = ((run: (...given: unknown[]) => void, ms = 0, ...given: unknown[]) => {
    const timer = new FakeTimer(clock, ms, () => run(...given))
    timers.add(timer)
    return timer
  }) as never
  globalThis.clearTimeout = ((timer: unknown) => {
    if (timer instanceof FakeTimer) timer.due = null
    else clear(timer as never)
  }) as never
  t.teardown(() => {
    globalThis.setTimeout = set
    globalThis.clearTimeout = clear
  })
  return {
    get set() {
      return [...timers].filter(({ due }) => due !== null).length
    },
    get made() {
      return timers.size
    },
    advance(ms) {
      const until = clock.now + ms
      for (let timer = next(until); timer !== undefined; timer = next(until)) {
        clock.now = timer.due as number
        timer.due = null
        timer.run()
      }
      clock.now = until
    },
  }
}
