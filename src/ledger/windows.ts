import { type Zone, zone } from './zone.js'

export type WindowKind = 'minute' | 'hour' | 'day' | 'month' | 'all'

/** A span of time, in milliseconds since the epoch: `start` is in it, `end` is not. `all` runs from 0 to Infinity. */
export interface Window {
  readonly kind: WindowKind
  readonly start: number
  readonly end: number
}

/** Finds the window of a kind that a moment falls into. */
export type Windows = (kind: WindowKind, at: number) => Window

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/**
 * Windows on the wall clock of a zone. The windows of one kind leave no gap and do not overlap, whatever the clocks of the zone do.
 * - minute, hour: never longer than their name says; a change of the clocks that is not on the hour ends one and begins another.
 * - day, month: begin when the wall clock first shows their first midnight, or what comes after it where that midnight is skipped.
 *
 * Throws on an unknown zone. Asked again for a moment in the window it gave last, it compares twice and returns the same object.
 */
export function windows(name: string, month: 'gregorian' | 'persian'): Windows {
  const place = zone(name)
  const firstOfMonth = month === 'persian' ? persianMonths() : gregorianMonths
  const find: { readonly [kind in WindowKind]: (at: number) => Window } = {
    minute: at => ({ kind: 'minute', ...slot(place, at, MINUTE) }),
    hour: at => ({ kind: 'hour', ...slot(place, at, HOUR) }),
    day: at => ({ kind: 'day', ...span(place, at, (day, by) => day + by) }),
    month: at => ({ kind: 'month', ...span(place, at, firstOfMonth) }),
    all: () => ({ kind: 'all', start: 0, end: Number.POSITIVE_INFINITY }),
  }
  const never: Window = { kind: 'all', start: 0, end: 0 }
  const last = { minute: never, hour: never, day: never, month: never, all: never }
  return (kind, at) => {
    const window = last[kind]
    if (at >= window.start && at < window.end) return window
    if (!Number.isFinite(at)) throw new RangeError(`a window was asked for the moment ${at}`)
    last[kind] = find[kind](at)
    return last[kind]
  }
}

interface Span {
  readonly start: number
  readonly end: number
}

/** A minute or an hour: as long as the offset stays as it is at the moment, cut where the clocks change. */
function slot(place: Zone, at: number, length: number): Span {
  const offset = place.offset(at)
  const start = Math.floor((at + offset) / length) * length - offset
  const end = start + length
  return {
    start: place.offset(start) === offset ? start : change(place, start, at),
    end: place.offset(end - 1) === offset ? end : change(place, at, end - 1),
  }
}

/** The moment at which the offset becomes what it is at `later`; it is another one at `earlier`. */
function change(place: Zone, earlier: number, later: number): number {
  const becomes = place.offset(later)
  let before = earlier
  let after = later
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2)
    if (place.offset(middle) === becomes) after = middle
    else before = middle
  }
  return after
}

/** The first day, as days since the epoch, of the month that a day is in (`by` 0), or of the month after it (1). */
type Step = (day: number, by: 0 | 1) => number

/** From one first midnight to the next. Days that a zone has skipped (Apia's 30 December 2011) have no window. */
function span(place: Zone, at: number, step: Step): Span {
  let first = step(Math.floor((at + place.offset(at)) / DAY), 0)
  // The wall clock may have gone back over a midnight that it had shown already: the later day has begun, and stays begun.
  while (firstShown(place, step(first, 1) * DAY) <= at) first = step(first, 1)
  return { start: firstShown(place, first * DAY), end: firstShown(place, step(first, 1) * DAY) }
}

/** The first moment at which the wall clock shows `wall` or later; `wall` is written as if it were UTC. */
export function firstShown(place: Zone, wall: number): number {
  // No zone has ever been more than 16 hours from UTC (Manila, Juneau: 15 h 56 min and 15 h 02 min), nor changed its clocks twice in 4 hours.
  let from = wall - 16 * HOUR
  let offset = place.offset(from)
  while (from < wall + 16 * HOUR) {
    let to = from + 4 * HOUR
    const next = place.offset(to)
    if (next !== offset) to = change(place, from, to)
    const shown = Math.max(from, wall - offset)
    if (shown < to) return shown
    from = to
    offset = next
  }
  throw new RangeError(`the wall clock of ${place.name} never shows ${new Date(wall).toISOString()}`)
}

function gregorianMonths(day: number, by: number): number {
  const date = new Date(day * DAY)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + by, 1) / DAY
}

/** Solar Hijri months, as Unicode's calendar data has them: the ones that Iran's almanac publishes. */
function persianMonths(): Step {
  const format = new Intl.DateTimeFormat('en-US', { timeZone: 'UTC', calendar: 'persian', numberingSystem: 'latn', day: 'numeric' })
  const firstOf = (day: number) => day - Number(format.format(day * DAY)) + 1
  return (day, by) => {
    const first = firstOf(day)
    if (by === 0) return first
    // Months have 29 to 31 days: 31 days on is the next month's 1st, 2nd or 3rd.
    return firstOf(first + 31)
  }
}
