import t from 'tap'
import { place, request, run } from '../support/command.js'

const moment = (text: string) => Date.parse(`${text}+03:30`)

async function filled(t: { testdir(): string }): Promise<string> {
  return place(t, async ledger => {
    await request(ledger, { at: moment('2026-06-30T23:59:59'), key: 'a', rial: 1n })
    await request(ledger, { at: moment('2026-07-01T00:00:00'), key: 'a', rial: 1234n, input: 1_000_000, output: 5 })
    await request(ledger, { at: moment('2026-07-01T10:00:00'), key: 'b', account: 'beta', rial: 3n, state: 'partial' })
    await request(ledger, { at: moment('2026-07-31T23:59:59'), key: 'a', model: 'x/y', rial: 5n })
    await request(ledger, { at: moment('2026-07-31T23:00:00'), key: 'a', state: 'voided' })
    await request(ledger, { at: moment('2026-08-01T00:00:00'), key: 'b', account: 'beta', rial: 7n })
    await request(ledger, { at: moment('2026-08-01T00:00:01'), key: 'a', rial: 99n, state: 'held' })
  })
}

t.test('sums by key and model, with a total', async t => {
  const folder = await filled(t)
  t.strictSame(await run(folder, 'usage', '--since', '2026-07-01', '--until', '2026-08-01'), {
    code: 0,
    out: [
      'KEY    MODEL         REQUESTS  FAILED      INPUT  CACHED  OUTPUT   RIAL',
      'a      sandbox/echo         2       1  1,000,000       0       5  1,234',
      'a      x/y                  1       0        100       0      20      5',
      'b      sandbox/echo         1       0        100       0      20      3',
      '-----  ------------  --------  ------  ---------  ------  ------  -----',
      'total                       4       1  1,000,200       0      45  1,242',
      '',
    ].join('\n'),
    err: 'Usage from 2026-07-01T00:00:00+03:30 before 2026-08-01T00:00:00+03:30.\n',
  })
})

t.test('filters, and days and months of the zone', async t => {
  const folder = await filled(t)
  const groups = async (...args: string[]) => {
    const { out } = await run(folder, 'usage', '--format', 'csv', ...args)
    const [head = '', ...lines] = out.trim().split('\n')
    const names = head.split(',')
    const rial = names.indexOf('cost_rial')
    const by = names.indexOf('requests')
    return lines.map(line => line.split(',')).map(cells => [...cells.slice(0, by + 1), cells[rial]].join(' '))
  }
  t.strictSame(await groups('--group-by', 'day'), ['2026-06-30 1 1', '2026-07-01 2 1237', '2026-07-31 2 5', '2026-08-01 1 7'])
  t.strictSame(await groups('--group-by', 'month,account'), [
    '2026-06 acme 1 1',
    '2026-07 acme 3 1239',
    '2026-07 beta 1 3',
    '2026-08 beta 1 7',
  ])
  t.strictSame(await groups('--group-by', 'day', '--timezone', 'UTC', '--key', 'a'), ['2026-06-30 2 1235', '2026-07-31 2 5'])
  t.strictSame(await groups('--group-by', 'surface,provider,plan', '--account', 'beta'), ['chat sandbox free 2 10'])
  t.strictSame(await groups('--group-by', 'model', '--model', 'default'), ['sandbox/echo 5 1245'], 'an alias stands for its model')
  t.strictSame(await groups('--group-by', 'key', '--since', '2026-07-31T23:30'), ['a 1 5', 'b 1 7'])
  t.strictSame(await groups('--group-by', 'key', '--since', '2026-07-31T20:00:00Z'), ['a 1 5', 'b 1 7'])
  t.strictSame(await groups('--group-by', 'key', '--until', '2026-07-01T00:00:00+03:30'), ['a 1 1'])
})

t.test('months of the solar calendar, where the config has them', async t => {
  const { YAML } = await import('../support/command.js')
  const folder = await place(
    t,
    async ledger => {
      await request(ledger, { at: moment('2026-03-20T23:59:59') })
      await request(ledger, { at: moment('2026-03-21T00:00:00') })
    },
    `month: persian\n${YAML}`,
  )
  const { out } = await run(folder, 'usage', '--group-by', 'month', '--format', 'csv')
  t.match(out, /^month,.*\n1404-12,1,.*\n1405-01,1,.*\n$/)
})

t.test('formats for programs', async t => {
  const folder = await filled(t)
  const { rows, total, since } = JSON.parse((await run(folder, 'usage', '--json', '--since', '2026-07-01')).out)
  t.match(rows[0], { key: 'a', model: 'sandbox/echo', requests: 2, partial: 0, failed: 1, input_tokens: 1_000_000, cost_rial: 1234 })
  t.match(total, { requests: 5, partial: 1, failed: 1, cost_rial: 1249 })
  t.equal(since, '2026-07-01T00:00:00+03:30')
  const lines = (await run(folder, 'usage', '--format', 'jsonl')).out.trim().split('\n')
  t.match(
    lines.map(line => JSON.parse(line)),
    [{ key: 'a' }, { key: 'a', model: 'x/y' }, { key: 'b', cost_rial: 10 }],
  )
})

t.test('records, one line each, with no hold that is open', async t => {
  const folder = await filled(t)
  const { out } = await run(folder, 'usage', '--records', '--key', 'b')
  const records = out
    .trim()
    .split('\n')
    .map(line => JSON.parse(line))
  t.match(records, [
    { at: '2026-07-01T10:00:00+03:30', state: 'partial', cost_rial: 3, price: { input: 20000 }, attempts: [] },
    { at: '2026-08-01T00:00:00+03:30', state: 'settled', cost_rial: 7 },
  ])
  const csv = (await run(folder, 'usage', '--records', '--format', 'csv')).out.trim().split('\n')
  t.equal(csv.length, 7)
  t.match(csv[1], /^req_[0-9A-Z]{26},2026-06-30T23:59:59\+03:30,.*,"\{""input"":20000\}",/)
})

t.test('an empty answer says why it may be empty', async t => {
  const folder = await filled(t)
  t.match(await run(folder, 'usage', '--key', 'aa'), { code: 0, out: '', err: /The config has no key "aa" \(did you mean "a"\?\)/ })
  t.match(await run(folder, 'usage', '--since', '1s'), { code: 0, out: '', err: /^No request has ended from 20/ })
  t.equal((await run(folder, 'usage', '--since', '1s', '--format', 'csv')).out.split('\n').length, 2, 'the names of the columns stay')
})

t.test('what is wrong with a call: exit 2', async t => {
  const folder = await filled(t)
  const rows: [string[], RegExp][] = [
    [['--group-by', 'modle'], /there is no "modle" \(did you mean "model"\?\): key, account/],
    [['--group-by', 'key,key'], /key stands there twice/],
    [['--format', 'cvs'], /there is no "cvs" \(did you mean "csv"\?\)/],
    [['--since', 'yesterday'], /--since: "yesterday" is no moment/],
    [['--since', '2026-02-30'], /no moment/],
    [['--since', '2026-07-02', '--until', '2026-07-02'], /--since is not before --until/],
    [['--json', '--format', 'csv'], /two formats/],
    [['--records', '--json'], /--records come as --format csv or jsonl/],
    [['--records', '--format', 'table'], /there is no "table".*: csv, jsonl/],
    [['--records', '--group-by', 'key'], /are not grouped/],
    [['--timezone', 'Mars'], /there is no time zone "Mars"/],
    [['extra'], /what is "extra" to say/],
  ]
  for (const [args, words] of rows) t.match(await run(folder, 'usage', ...args), { code: 2, out: '', err: words }, args.join(' '))
})
