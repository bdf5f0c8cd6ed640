import fc from 'fast-check'
import t from 'tap'
import { csvLine, json } from '../../src/terminal/data.js'
import { optionsHelp, readFlags } from '../../src/terminal/flags.js'
import { readMoment } from '../../src/terminal/moment.js'
import { parseRial, showAmount } from '../../src/terminal/rial.js'
import { fields, table } from '../../src/terminal/table.js'

t.test('amounts: what is shown is read as the same, however it is grouped', async t => {
  fc.assert(
    fc.property(fc.bigInt(1n, BigInt(Number.MAX_SAFE_INTEGER)), rial => {
      const shown = showAmount(rial)
      return parseRial(shown) === rial && parseRial(shown.replaceAll(',', '_')) === rial && parseRial(String(rial)) === rial
    }),
  )
  t.equal(showAmount(-1234567n), '-1,234,567')
  t.equal(showAmount(-123), '-123')
  for (const text of [
    '',
    '1,00',
    '1,0000',
    '1_00',
    ',100',
    '1,000_000',
    '1.000',
    '1e6',
    '-5',
    '+5',
    '٥',
    ' 5',
    '0',
    '0x10',
    '9007199254740992',
    '9'.repeat(50),
  ])
    t.throws(() => parseRial(text), { name: 'UsageError' }, JSON.stringify(text))
})

t.test('moments', async t => {
  const now = Date.parse('2026-07-10T00:00:00Z')
  const rows: [string, string, string][] = [
    ['2026-07-01', 'Asia/Tehran', '2026-06-30T20:30:00.000Z'],
    ['2026-07-01T12:00', 'Asia/Tehran', '2026-07-01T08:30:00.000Z'],
    ['2026-07-01 12:00:30', 'Asia/Tehran', '2026-07-01T08:30:30.000Z'],
    ['2026-07-01T12:00:00Z', 'Asia/Tehran', '2026-07-01T12:00:00.000Z'],
    ['2026-07-01t12:00:00.5-01:00', 'Asia/Tehran', '2026-07-01T13:00:00.000Z'],
    ['2026-03-29T03:30', 'Europe/Berlin', '2026-03-29T01:30:00.000Z'],
    ['2026-10-25T12:00', 'Europe/Berlin', '2026-10-25T11:00:00.000Z'],
    ['7d', 'UTC', '2026-07-03T00:00:00.000Z'],
    ['1h30m', 'UTC', '2026-07-09T22:30:00.000Z'],
  ]
  for (const [text, zone, expected] of rows)
    t.equal(new Date(readMoment('--since', text, zone, now)).toISOString(), expected, `${text} in ${zone}`)
  for (const text of ['', 'now', '2026-13-01', '2026-02-30T00:00', '2026-07-01T25:00', '2026-07-01T12', '20260701', '7x'])
    t.throws(() => readMoment('--since', text, 'UTC', now), { name: 'UsageError', message: /^--since: / }, JSON.stringify(text))
})

t.test('tables stand in columns, and cannot steer a terminal', async t => {
  const shown = table(
    [
      { title: 'NAME', cell: (row: readonly [string | null, number]) => row[0] },
      { title: 'N', cell: row => row[1] },
    ],
    [
      ['سلام', 1],
      ['日本', 22222],
      ['e\u0301', 3],
      ['\u001b[31m\n', 4],
      [null, 5],
    ],
    ['total', 22235],
  )
  t.equal(
    shown,
    [
      'NAME                  N',
      'سلام                  1',
      '日本             22,222',
      'e\u0301                     3',
      '\\u{1b}[31m\\u{a}       4',
      '-                     5',
      '---------------  ------',
      'total            22,235',
      '',
    ].join('\n'),
  )
  t.equal(
    fields([
      ['a', 'x'],
      ['long', 1234n],
      ['b', 5n],
    ]),
    'a     x\nlong  1,234\nb         5\n',
  )
})

t.test('JSON keeps all digits; CSV quotes what needs it', async t => {
  const value = { big: 10n ** 20n, list: [1, 'x', null, []], none: undefined, deep: new Map([['a', true]]) }
  t.equal(json(value, 0), '{"big":100000000000000000000,"list":[1,"x",null,[]],"deep":{"a":true}}')
  t.equal(json({ a: [{ b: 1n }] }), '{\n  "a": [\n    {\n      "b": 1\n    }\n  ]\n}')
  fc.assert(fc.property(fc.jsonValue(), one => JSON.stringify(JSON.parse(json(one))) === JSON.stringify(JSON.parse(JSON.stringify(one)))))
  t.equal(csvLine(['a', null, 5n, true, 'x,y', 'say "hi"', 'two\nlines', undefined]), 'a,,5,true,"x,y","say ""hi""","two\nlines",\n')
})

t.test('flags: values, short forms, and words', async t => {
  const spec = {
    config: { type: 'string', short: 'c', value: 'FILE', about: 'which' },
    json: { type: 'boolean', about: 'for programs' },
    format: { type: 'string', choices: ['csv', 'table'], about: 'how' },
  } as const
  t.strictSame(readFlags(['show', '-c', 'x', '--json', '--', '--y'], spec), {
    flags: { config: 'x', json: true, format: undefined },
    words: ['show', '--y'],
  })
  t.strictSame(readFlags(['--config=-x'], spec).flags, { config: '-x', json: false, format: undefined })
  t.throws(() => readFlags(['--constructor'], spec), { name: 'UsageError', message: 'there is no option --constructor' })
  t.throws(() => readFlags(['--cofnig', 'x'], spec), { message: 'there is no option --cofnig (did you mean "--config"?)' })
  t.throws(() => readFlags(['--format', 'tabel'], spec), { message: '--format: there is no "tabel" (did you mean "table"?): csv, table' })
  t.equal(optionsHelp(spec), '  -c, --config FILE   which\n      --json          for programs\n      --format        how')
})
