import { UsageError } from '../commands/command.js'
import { parseMoment } from '../config/dates.js'
import { parseDuration } from '../config/durations.js'
import { zone } from '../ledger/zone.js'

/**
 * Milliseconds since the epoch of what people write for a moment: a day (`2026-07-01`: its first moment in the zone), a day and a time
 * (`2026-07-01T12:00`, in the zone where it has no offset of its own), or how long ago (`7d`, `24h`). Throws a UsageError that names `flag`.
 */
export function readMoment(flag: string, text: string, timezone: string, now: number): number {
  const ago = parseDuration(text)
  if (ago !== null) return now - ago
  const moment = /T|t| /.test(text) ? timeOf(text, timezone) : parseMoment(text, timezone)
  if (moment === null)
    throw new UsageError(`${flag}: ${JSON.stringify(text)} is no moment: write 2026-07-01, 2026-07-01T12:00, or 7d or 24h for how long ago`)
  return moment
}

function timeOf(text: string, timezone: string): number | null {
  const [, day, time, seconds = ':00', offset] =
    /^(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2})(:\d{2})?(?:\.\d+)?([Zz]|[+-]\d{2}:\d{2})?$/.exec(text) ?? []
  if (day === undefined || parseMoment(day, 'UTC') === null) return null
  const wall = Date.parse(`${day}T${time}${seconds}${offset?.toUpperCase() ?? 'Z'}`)
  if (Number.isNaN(wall)) return null
  if (offset !== undefined) return wall
  const place = zone(timezone)
  // The second look is for a change of the clocks between the two moments.
  return wall - place.offset(wall - place.offset(wall))
}
