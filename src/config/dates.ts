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
  if (rest === '') return timezone === 'UTC' ? utc : startOfDay(utc, timezone)
  const moment = Date.parse(text.replace(' ', 'T').toUpperCase())
  return Number.isNaN(moment) ? null : moment
}

/** Is this a zone that this Node knows? */
export function isTimezone(name: string): boolean {
  // 2 ms; the first formatter of a process costs 17 ms, and only other spellings (GMT, Iran) need it.
  if (name === 'UTC' || timezones().includes(name)) return true
  try {
    formatter(name)
    return true
  } catch {
    return false
  }
}

/** The zones by their usual names. */
export function timezones(): readonly string[] {
  return Intl.supportedValuesOf('timeZone')
}

/** The first moment of a day in a zone; `utc` is the same day's midnight in UTC. A day whose midnight is skipped begins where its clocks do. */
function startOfDay(utc: number, timezone: string): number {
  const format = formatter(timezone)
  const before = utc - offset(format, utc - DAY)
  const after = utc - offset(format, utc + DAY)
  // The offset changes at most once within these two days: one of the two guesses is midnight, or midnight is skipped.
  const [early, late] = before < after ? [before, after] : [after, before]
  for (const guess of [early, late]) if (guess + offset(format, guess) === utc) return guess
  let low = early
  let high = late
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (middle + offset(format, middle) >= utc) high = middle
    else low = middle
  }
  return high
}

const DAY = 86_400_000

function formatter(timezone: string): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat('en-US', {
    timeZone: timezone,
    calendar: 'gregory',
    numberingSystem: 'latn',
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  })
}

/** How far the zone's clocks are ahead of UTC at a moment, in milliseconds. */
function offset(format: Intl.DateTimeFormat, at: number): number {
  const parts = new Map(format.formatToParts(at).map(part => [part.type, Number(part.value)]))
  const part = (type: Intl.DateTimeFormatPartTypes) => parts.get(type) as number
  const local = Date.UTC(part('year'), part('month') - 1, part('day'), part('hour'), part('minute'), part('second'))
  return local - Math.floor(at / 1000) * 1000
}
