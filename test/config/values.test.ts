import fc from 'fast-check'
import t from 'tap'
import { isTimezone, parseMoment, timezones } from '../../src/config/dates.js'
import { formatDuration, formatSize, parseDuration, parseSize } from '../../src/config/durations.js'
import { parseDecimal, toRial } from '../../src/config/prices.js'
import { didYouMean, nearest } from '../../src/config/suggest.js'

t.test('durations are read to the millisecond', async t => {
  const rows: [string, number | null][] = [
    ['250ms', 250],
    ['5s', 5_000],
    ['1.5s', 1_500],
    ['10m', 600_000],
    ['1h', 3_600_000],
    ['1h30m', 5_400_000],
    ['400d', 34_560_000_000],
    ['0s', 0],
    ['0.3s', 300],
    ...['', '5', 's', '5 s', '-5s', '5S', '1e3s', '.5s', '5s ', '5y', '99999999999999d'].map((text): [string, null] => [text, null]),
  ]
  for (const [text, expected] of rows) t.equal(parseDuration(text), expected, JSON.stringify(text))
})

t.test('a duration is shown as it can be read again', async t => {
  t.equal(formatDuration(90_000), '1m30s')
  t.equal(formatDuration(0), '0s')
  fc.assert(fc.property(fc.integer({ min: 0, max: 2 ** 45 }), duration => parseDuration(formatDuration(duration)) === duration))
})

t.test('sizes are read to the byte, and shown as they can be read again', async t => {
  const rows: [string, number | null][] = [
    ['32MiB', 33_554_432],
    ['1MB', 1_000_000],
    ['64KiB', 65_536],
    ['4kB', 4_000],
    ['1GiB', 1_073_741_824],
    ['4096', 4096],
    ['12B', 12],
    ...['', 'MiB', '1.5MB', '-1MB', '1 MB', '1mb', '1TB', '99999999999999GB'].map((text): [string, null] => [text, null]),
  ]
  for (const [text, expected] of rows) t.equal(parseSize(text), expected, JSON.stringify(text))
  fc.assert(fc.property(fc.integer({ min: 0, max: 2 ** 50 }), bytes => parseSize(formatSize(bytes)) === bytes))
})

t.test('a day begins at midnight of the zone', async t => {
  const rows: [string, string, string | null][] = [
    ['2027-01-01', 'Asia/Tehran', '2026-12-31T20:30:00.000Z'],
    ['2027-01-01', 'UTC', '2027-01-01T00:00:00.000Z'],
    // Summer time: Tehran had it until 2022.
    ['2021-06-01', 'Asia/Tehran', '2021-05-31T19:30:00.000Z'],
    ['2027-07-01', 'America/New_York', '2027-07-01T04:00:00.000Z'],
    ['2027-01-01', 'Pacific/Kiritimati', '2026-12-31T10:00:00.000Z'],
    // No midnight: the clocks went from 23:59:59 to 01:00.
    ['2018-11-04', 'America/Sao_Paulo', '2018-11-04T03:00:00.000Z'],
    // The clocks go back from midnight to 23:00: the day begins an hour later.
    ['2018-02-18', 'America/Sao_Paulo', '2018-02-18T03:00:00.000Z'],
    ['2027-01-01T12:00:00+03:30', 'UTC', '2027-01-01T08:30:00.000Z'],
    ['2027-01-01 12:00Z', 'Asia/Tehran', '2027-01-01T12:00:00.000Z'],
    ['2028-02-29', 'UTC', '2028-02-29T00:00:00.000Z'],
    ['2027-02-29', 'UTC', null],
    ['2027-13-01', 'UTC', null],
    ['2027-01-01T25:00:00Z', 'UTC', null],
    ['soon', 'UTC', null],
  ]
  for (const [text, zone, expected] of rows) {
    const moment = parseMoment(text, zone)
    t.equal(moment === null ? null : new Date(moment).toISOString(), expected, `${text} ${zone}`)
  }
})

t.test('zones are known by their usual names and by others', async t => {
  t.ok(isTimezone('Asia/Tehran') && isTimezone('UTC') && isTimezone('Iran'))
  t.notOk(isTimezone('Asia/Teheran'))
  t.ok(timezones().includes('Asia/Tehran'))
})

t.test('decimals are exact', async t => {
  t.strictSame(parseDecimal('2.50'), { numerator: 250n, denominator: 100n })
  t.strictSame(parseDecimal('.5'), { numerator: 5n, denominator: 10n })
  t.strictSame(parseDecimal('1e-3'), { numerator: 1n, denominator: 1000n })
  t.strictSame(parseDecimal('+12E2'), { numerator: 1200n, denominator: 1n })
  t.strictSame(parseDecimal('1e30'), { numerator: 10n ** 30n, denominator: 1n })
  t.strictSame(parseDecimal('1e-30'), { numerator: 1n, denominator: 10n ** 30n })
  t.strictSame(parseDecimal('9'.repeat(60)), { numerator: BigInt('9'.repeat(60)), denominator: 1n })
  t.equal(parseDecimal('9'.repeat(61)), null)
  for (const text of ['', '.', '-1', '0x10', '1_000', 'e3', '1e31', '1e', '1.2.3', ' 1', '.inf']) t.equal(parseDecimal(text), null, text)
})

t.test('a converted price is the exact product, rounded up once', async t => {
  const one = { numerator: 1n, denominator: 1n }
  const rial = (amount: string, rate: string, markup = '1') =>
    toRial(parseDecimal(amount) ?? one, parseDecimal(rate) ?? one, parseDecimal(markup) ?? one)
  t.equal(rial('2.50', '1050000'), 2_625_000n)
  t.equal(rial('0.075', '1050000', '1.15'), 90_563n, '90562.5')
  // As floats 0.1 × 3 is 0.30000000000000004, which would be rounded up to one Rial too many.
  t.equal(rial('0.1', '3', '10'), 3n)
  t.equal(rial('0.0000001', '1'), 1n)
  t.equal(rial('0', '1050000'), 0n)
  t.equal(rial('9007199254740993', '1'), 9_007_199_254_740_993n)

  const decimal = fc.tuple(fc.bigInt({ min: 0n, max: 10n ** 15n }), fc.integer({ min: 0, max: 12 }))
  const written = ([digits, places]: [bigint, number]) => {
    const text = String(digits).padStart(places + 1, '0')
    return places === 0 ? text : `${text.slice(0, -places)}.${text.slice(-places)}`
  }
  fc.assert(
    fc.property(decimal, decimal, decimal, (amount, rate, markup) => {
      const product = amount[0] * rate[0] * markup[0]
      const scale = 10n ** BigInt(amount[1] + rate[1] + markup[1])
      const rounded = rial(written(amount), written(rate), written(markup))
      return rounded * scale >= product && (rounded - 1n) * scale < product
    }),
  )
})

t.test('the nearest name is suggested, and none that is far', async t => {
  t.equal(nearest('persain', ['gregorian', 'persian']), 'persian')
  t.equal(nearest('OpenAI', ['openai', 'opera']), 'openai')
  t.equal(nearest('xyz', ['free', 'unlimited']), undefined)
  t.equal(didYouMean('fre', new Set(['free', 'pro'])), ' (did you mean "free"?)')
  t.equal(didYouMean('zzz', []), '')
  fc.assert(fc.property(fc.string({ minLength: 1, maxLength: 40 }), name => nearest(name, ['q'.repeat(90), name]) === name))
})
