import fc from 'fast-check'
import t from 'tap'
import { type WindowKind, windows } from '../../src/ledger/windows.js'
import { isoTime, zone } from '../../src/ledger/zone.js'

const ZONES = [
  'UTC',
  'Asia/Tehran',
  'Asia/Kathmandu',
  'America/New_York',
  'America/Sao_Paulo',
  'America/St_Johns',
  'Australia/Lord_Howe',
  'Africa/Cairo',
  'Africa/Casablanca',
  'Pacific/Apia',
  'Pacific/Kwajalein',
]
const HOUR = 3_600_000
const from1970 = fc.integer({ min: 0, max: Date.UTC(2100, 0) })
const bounded = fc.constantFrom<WindowKind>('minute', 'hour', 'day', 'month')

function shown(kind: WindowKind, at: string, name: string, month: 'gregorian' | 'persian' = 'gregorian'): string {
  const { start, end } = windows(name, month)(kind, Date.parse(at))
  return `${isoTime(start, zone(name))} ${isoTime(end, zone(name))} ${(end - start) / HOUR}h`
}

t.test('a moment is in its window, and in no other: the windows of a kind leave no gap and do not overlap', async t => {
  for (const name of ZONES) {
    const month = fc.constantFrom<'gregorian' | 'persian'>('gregorian', 'persian')
    fc.assert(
      fc.property(from1970, bounded, month, fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (at, kind, calendar, part) => {
        // Each question to a fresh one, so that none is answered from what another has left.
        const of = (moment: number) => windows(name, calendar)(kind, moment)
        const window = of(at)
        if (!(window.start <= at && at < window.end)) return false
        const same = [window.start, window.end - 1, window.start + Math.floor((window.end - window.start) * part)]
        const next = of(window.end)
        const before = of(window.start - 1)
        return (
          same.every(moment => of(moment).start === window.start && of(moment).end === window.end) &&
          next.start === window.end &&
          before.end === window.start
        )
      }),
      { numRuns: 40, seed: 7 },
    )
    t.pass(name)
  }
})

t.test('around every change of the clocks in 40 years, hour by hour', async t => {
  for (const name of ['America/Sao_Paulo', 'Africa/Cairo', 'Australia/Lord_Howe', 'Pacific/Apia', 'America/St_Johns', 'Asia/Tehran']) {
    const { offset } = zone(name)
    let changes = 0
    for (let at = Date.UTC(1990, 0); at < Date.UTC(2030, 0); at += 12 * HOUR) {
      if (offset(at) === offset(at + 12 * HOUR)) continue
      changes++
      for (const kind of ['hour', 'day'] as const) {
        const of = windows(name, 'gregorian')
        let end = of(kind, at - 30 * HOUR).end
        for (let moment = at - 30 * HOUR; moment < at + 36 * HOUR; moment += HOUR / 2) {
          const window = of(kind, moment)
          if (window.start > moment || window.end <= moment) t.fail(`${name} ${kind} ${isoTime(moment, zone(name))}: not in its window`)
          if (window.end === end) continue
          if (window.start !== end) t.fail(`${name} ${kind} ${isoTime(moment, zone(name))}: gap or overlap`)
          end = window.end
        }
      }
    }
    t.ok(changes > 5, `${name}: ${changes} changes`)
  }
})

t.test('hours of Tehran turn at half past in UTC', async t => {
  t.equal(shown('hour', '2026-11-21T15:40:00+03:30', 'Asia/Tehran'), '2026-11-21T15:00:00+03:30 2026-11-21T16:00:00+03:30 1h')
  t.equal(windows('Asia/Tehran', 'gregorian')('hour', 0).start % HOUR, -HOUR / 2)
  t.equal(shown('minute', '2026-11-21T15:40:59+05:45', 'Asia/Kathmandu'), `2026-11-21T15:40:00+05:45 2026-11-21T15:41:00+05:45 ${1 / 60}h`)
})

t.test('days end at midnight, and have as many hours as they have', async t => {
  t.equal(shown('day', '2026-11-21T12:00:00+03:30', 'Asia/Tehran'), '2026-11-21T00:00:00+03:30 2026-11-22T00:00:00+03:30 24h')
  t.equal(shown('day', '2026-03-08T12:00:00-04:00', 'America/New_York'), '2026-03-08T00:00:00-05:00 2026-03-09T00:00:00-04:00 23h')
  t.equal(shown('day', '2026-11-01T12:00:00-05:00', 'America/New_York'), '2026-11-01T00:00:00-04:00 2026-11-02T00:00:00-05:00 25h')
  t.equal(shown('day', '2026-04-05T12:00:00+10:30', 'Australia/Lord_Howe'), '2026-04-05T00:00:00+11:00 2026-04-06T00:00:00+10:30 24.5h')
})

t.test('a midnight that is skipped: the day begins with what comes after it', async t => {
  t.equal(shown('day', '2018-11-04T12:00:00-02:00', 'America/Sao_Paulo'), '2018-11-04T01:00:00-02:00 2018-11-05T00:00:00-02:00 23h')
  t.equal(shown('day', '2024-04-26T12:00:00+03:00', 'Africa/Cairo'), '2024-04-26T01:00:00+03:00 2024-04-27T00:00:00+03:00 23h')
  t.equal(shown('day', '2011-12-29T12:00:00-10:00', 'Pacific/Apia'), '2011-12-29T00:00:00-10:00 2011-12-31T00:00:00+14:00 24h')
})

t.test('a midnight that comes twice: the day has begun with the first', async t => {
  // St. John's set its clocks back at 0:01.
  t.equal(shown('day', '2006-10-29T12:00:00-03:30', 'America/St_Johns'), '2006-10-29T00:00:00-02:30 2006-10-30T00:00:00-03:30 25h')
  t.equal(shown('day', '2006-10-29T02:45:00Z', 'America/St_Johns'), '2006-10-29T00:00:00-02:30 2006-10-30T00:00:00-03:30 25h')
})

t.test('an hour is never longer than an hour', async t => {
  t.equal(shown('hour', '2026-11-01T01:30:00-04:00', 'America/New_York'), '2026-11-01T01:00:00-04:00 2026-11-01T01:00:00-05:00 1h')
  t.equal(shown('hour', '2026-11-01T01:30:00-05:00', 'America/New_York'), '2026-11-01T01:00:00-05:00 2026-11-01T02:00:00-05:00 1h')
  t.equal(shown('hour', '2026-04-05T01:45:00+10:30', 'Australia/Lord_Howe'), '2026-04-05T01:30:00+10:30 2026-04-05T02:00:00+10:30 0.5h')
})

t.test('months, gregorian and persian', async t => {
  t.equal(shown('month', '2024-02-10T00:00:00Z', 'UTC'), '2024-02-01T00:00:00+00:00 2024-03-01T00:00:00+00:00 696h')
  t.equal(shown('month', '2026-12-31T23:59:59+03:30', 'Asia/Tehran'), '2026-12-01T00:00:00+03:30 2027-01-01T00:00:00+03:30 744h')
  t.equal(shown('month', '2025-03-20T12:00:00+03:30', 'Asia/Tehran', 'persian'), '2025-02-19T00:00:00+03:30 2025-03-21T00:00:00+03:30 720h')
  t.equal(shown('month', '2026-03-20T12:00:00+03:30', 'Asia/Tehran', 'persian'), '2026-02-20T00:00:00+03:30 2026-03-21T00:00:00+03:30 696h')
})

t.test('persian months are those of the 33-year cycle of leap years', async t => {
  // 1 Farvardin 1349 is 21 March 1970. Years of 366 days as the almanac of Iran has them from 1178 to 1633.
  const leap = (year: number) => (25 * year + 11) % 33 < 8
  const of = windows('UTC', 'persian')
  let first = Date.UTC(1970, 2, 21)
  for (let year = 1349; year <= 1479; year++) {
    const days = [31, 31, 31, 31, 31, 31, 30, 30, 30, 30, 30, leap(year) ? 30 : 29]
    for (const [month, length] of days.entries()) {
      const end = first + length * 24 * HOUR
      for (const at of [first, end - 1]) {
        const window = of('month', at)
        if (window.start !== first || window.end !== end) t.fail(`${year}/${month + 1}: ${new Date(window.start).toISOString()}`)
      }
      first = end
    }
  }
  t.equal(new Date(first).toISOString(), '2101-03-21T00:00:00.000Z')
})

t.test('all time is one window', async t => {
  t.strictSame(windows('UTC', 'gregorian')('all', 5), { kind: 'all', start: 0, end: Number.POSITIVE_INFINITY })
})

t.test('the current window is kept, one for each kind, also while the clock goes back and forth', async t => {
  const of = windows('Asia/Tehran', 'gregorian')
  const day = of('day', 1_764_000_000_000)
  of('hour', 1_764_000_000_000)
  t.equal(of('day', day.end - 1), day)
  const next = of('day', day.end)
  t.strictSame(of('day', day.start), day)
  t.strictSame(of('day', day.end), next)
  t.equal(of('day', next.start), of('day', next.start), 'its first moment, too')
})

t.test('an unknown zone and an impossible moment are errors', async t => {
  t.throws(() => windows('Asia/Tehrn', 'gregorian'), { message: /"Asia\/Tehrn" is not in the time zone database/ })
  t.throws(() => windows('UTC', 'gregorian')('day', Number.NaN), RangeError)
})

t.test('isoTime writes the offset of the zone at that moment', async t => {
  t.equal(isoTime(Date.parse('2026-11-22T00:00:00+03:30'), zone('Asia/Tehran')), '2026-11-22T00:00:00+03:30')
  t.equal(isoTime(Date.parse('2022-07-01T00:00:00.999+04:30'), zone('Asia/Tehran')), '2022-07-01T00:00:00+04:30')
  t.equal(isoTime(0, zone('America/St_Johns')), '1969-12-31T20:30:00-03:30')
  t.equal(isoTime(0, zone('UTC')), '1970-01-01T00:00:00+00:00')
  t.equal(isoTime(Date.UTC(1900, 0), zone('Asia/Tehran')), '1900-01-01T03:25:44+03:25:44')
})

t.test('a midnight at which the clock goes back to 23:00 is shown an hour later, and the day begins then', async t => {
  const day = windows('America/Santiago', 'gregorian')('day', Date.parse('2026-04-05T12:00:00Z'))
  t.equal(day.start, Date.parse('2026-04-05T04:00:00Z'))
  t.equal(windows('America/Santiago', 'gregorian')('day', day.start - 1).end, day.start)
})

t.test('a wall clock shows what it would have shown, before our era, too', async t => {
  t.equal(zone('Etc/UTC').offset(Date.UTC(-43, 2, 15)), 0)
})

t.test('UTC is not looked up, and is what the time zone database says', async t => {
  for (const at of [Date.UTC(-43, 2, 15), -1, 0, 999, Date.UTC(2026, 10, 22, 11, 59, 59, 1)]) {
    t.equal(zone('UTC').offset(at), zone('Etc/UTC').offset(at))
  }
})
