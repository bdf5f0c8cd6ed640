import { firstShown } from '../ledger/windows.js'
import { zone } from '../ledger/zone.js'

/**
 * Milliseconds since the epoch of a day (`2027-01-01`: its first moment in the zone) or of a moment with its offset
 * (`2027-01-01T12:00:00+03:30`). `null` for anything else, and for days that no calendar has.
 */
export function parseMoment(text: string, timezone: string): number | null {
  const [, year, month, day, rest] = /^(\d{4})-(\d{2})-(\d{2})(.*)$/.exec(text) ?? []
  if (year === undefined) return null
  const utc = Date.UTC(Number(year), Number(month) - 1, Number(day))
  // Date.UTC takes the 31st of February for the 3rd of March.
  if (Number.isNaN(utc) || new Date(utc).toISOString().slice(0, 10) !== `${year}-${month}-${day}`) return null
  if (rest === '') return firstShown(zone(timezone), utc)
  const moment = Date.parse(text.replace(' ', 'T').toUpperCase())
  return Number.isNaN(moment) ? null : moment
}

/** Is this a zone that this Node knows? */
export function isTimezone(name: string): boolean {
  // 2 ms; the first formatter of a process costs 17 ms, and only other spellings (GMT, Iran) need it.
  if (name === 'UTC' || timezones().includes(name)) return true
  try {
    zone(name)
    return true
  } catch {
    return false
  }
}

/** The zones by their usual names. */
export function timezones(): readonly string[] {
  return Intl.supportedValuesOf('timeZone')
}
