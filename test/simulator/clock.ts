import type { Clock } from '../../src/clock.js'
import { windows } from '../../src/ledger/windows.js'
import type { Random } from './random.js'

/** Zones with all that a clock can do: no change at all, half hours, changes of half an hour, of the day, and another calendar. */
export const ZONES = [
  { timezone: 'UTC', month: 'gregorian' },
  { timezone: 'Asia/Tehran', month: 'persian' },
  { timezone: 'America/New_York', month: 'gregorian' },
  { timezone: 'Australia/Lord_Howe', month: 'gregorian' },
  { timezone: 'Asia/Kathmandu', month: 'gregorian' },
  { timezone: 'America/Santiago', month: 'gregorian' },
] as const

const SECOND = 1000
const HOUR = 3600 * SECOND
const DAY = 24 * HOUR

/** A clock that goes only where it is told to: on by steps, and by jumps in both directions, often to just before a window ends. */
export class SteeredClock implements Clock {
  readonly #random: Random
  readonly #end: (kind: 'minute' | 'day' | 'month', at: number) => number
  #now: number
  #monotonic = 0

  constructor(random: Random, zone: (typeof ZONES)[number]) {
    this.#random = random
    const find = windows(zone.timezone, zone.month)
    this.#end = (kind, at) => find(kind, at).end
    const somewhere = Date.UTC(2026, random.from(0, 11), random.from(1, 28), random.from(0, 23), random.from(0, 59))
    this.#now = this.#end(random.pick(['minute', 'day', 'month']), somewhere) - random.from(1, 30 * SECOND)
  }

  now(): number {
    return this.#now
  }

  monotonic(): number {
    return this.#monotonic
  }

  /** What passes between two operations. */
  pass(): void {
    const ms = this.#random.from(0, 2 * SECOND)
    this.#now += ms
    this.#monotonic += ms
  }

  /** Somebody sets it. Returns what was done, in words. */
  jump(): string {
    const how = this.#random.weighted({ 'to the end of the minute': 2, 'to midnight': 3, 'to the end of the month': 2, back: 3, on: 2 })
    if (how === 'back') this.#now -= this.#random.pick([1, 3 * SECOND, 61 * SECOND, HOUR, DAY, 31 * DAY])
    else if (how === 'on') this.#now += this.#random.pick([61 * SECOND, HOUR, DAY, 31 * DAY])
    else {
      const kind = how === 'to midnight' ? 'day' : how === 'to the end of the month' ? 'month' : 'minute'
      this.#now = this.#end(kind, this.#now) - this.#random.from(0, 3)
    }
    return `the clock goes ${how}: ${new Date(this.#now).toISOString()}`
  }
}
