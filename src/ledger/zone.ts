/** A zone of the IANA time zone database. Moments are milliseconds since the epoch. */
export interface Zone {
  readonly name: string
  /** What the wall clock is ahead of UTC at a moment, in milliseconds (Tehran: 12,600,000). */
  offset(at: number): number
}

/** Throws an Error that names the zone when it is not in the time zone database. A call of `offset` takes some microseconds. */
export function zone(name: string): Zone {
  // The first use of the database takes 15 ms.
  if (name === 'UTC') return { name, offset: () => 0 }
  const format = formatOf(name)
  return { name, offset: at => wallClock(format, at) - Math.floor(at / 1000) * 1000 }
}

/** The moment on the wall clock of a zone, to the second, with its offset: `2026-11-22T00:00:00+03:30`. */
export function isoTime(at: number, { offset }: Zone): string {
  const ahead = offset(at)
  return `${new Date(at + ahead).toISOString().slice(0, 19)}${isoOffset(ahead)}`
}

function isoOffset(ahead: number): string {
  const seconds = Math.abs(ahead) / 1000
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60]
  // Local mean times of the 19th century have seconds in their offsets; ISO 8601-2 and Temporal write them likewise.
  if (seconds % 60 !== 0) parts.push(seconds % 60)
  return (ahead < 0 ? '-' : '+') + parts.map(part => String(part).padStart(2, '0')).join(':')
}

function formatOf(name: string): Intl.DateTimeFormat {
  try {
    return new Intl.DateTimeFormat('en-US', {
      timeZone: name,
      calendar: 'gregory',
      numberingSystem: 'latn',
      hourCycle: 'h23',
      era: 'short',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
  } catch (cause) {
    throw new Error(`timezone: ${JSON.stringify(name)} is not in the time zone database; write one like Asia/Tehran or UTC.`, { cause })
  }
}

/** What the wall clock shows, to the second, as if it were UTC. */
function wallClock(format: Intl.DateTimeFormat, at: number): number {
  const field: Partial<Record<Intl.DateTimeFormatPartTypes, string>> = {}
  for (const part of format.formatToParts(at)) field[part.type] = part.value
  const year = field.era === 'BC' ? 1 - Number(field.year) : Number(field.year)
  return Date.UTC(year, Number(field.month) - 1, Number(field.day), Number(field.hour), Number(field.minute), Number(field.second))
}
