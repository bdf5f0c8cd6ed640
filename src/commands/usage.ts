import { didYouMean } from '../config/suggest.js'
import type { Books } from '../control/books.js'
import { DIMENSIONS, type Dimension, type UsageFilter, type UsageRow } from '../ledger/usage.js'
import { isoTime, zone } from '../ledger/zone.js'
import { csvLine, json } from '../terminal/data.js'
import { type Flags, noMore, optionsHelp, readFlags } from '../terminal/flags.js'
import { LEDGER, type Place, placeOf, withBooks } from '../terminal/ledger.js'
import { readMoment } from '../terminal/moment.js'
import { recordLines } from '../terminal/records.js'
import { plain, table } from '../terminal/table.js'
import { type Io, UsageError } from './command.js'

export const summary = 'what was used and spent, by key, model, day and more'

const FORMATS = ['table', 'csv', 'jsonl', 'json'] as const

export const flags = {
  key: { type: 'string', value: 'NAME', about: 'requests of this key alone' },
  account: { type: 'string', value: 'NAME', about: 'of this account' },
  model: { type: 'string', value: 'NAME', about: 'of this model; an alias stands for its model' },
  since: { type: 'string', value: 'WHEN', about: 'from this moment on' },
  until: { type: 'string', value: 'WHEN', about: 'before this moment: --since 2026-07-01 --until 2026-08-01 is all of July' },
  'group-by': { type: 'string', value: 'LIST', about: `a comma between: ${DIMENSIONS.join(', ')} (default: key,model)` },
  records: { type: 'boolean', about: 'one line per request, with all that its usage record says' },
  format: { type: 'string', value: 'F', choices: FORMATS, about: 'table (default), csv, jsonl (the default with --records) or json' },
  timezone: { type: 'string', value: 'ZONE', about: "of days, months and moments (default: the config's)" },
  ...LEDGER,
} as const satisfies Flags

export const usage = `
model-gateway usage [--key K] [--account A] [--model M] [--since WHEN] [--until WHEN] [--group-by LIST] [--format F]
model-gateway usage --records [the same filters] [--format csv|jsonl]

Sums up the requests that have ended, oldest first. Those under way are in \`model-gateway holds\`.

${optionsHelp(flags)}

WHEN is a day (2026-07-01), a time of it (2026-07-01T12:00, or with an offset: 2026-07-01T12:00+03:30), or how long ago (7d, 24h).
failed requests were admitted, but their provider gave nothing: they cost nothing. partial ones broke off and are charged for
what came. cached input is part of input, reasoning is part of output.
`

type Format = (typeof FORMATS)[number]

export async function run(args: string[], io: Io): Promise<number> {
  const { flags: given, words } = readFlags(args, flags)
  noMore(words)
  const by = dimensions(given['group-by'])
  const format = formatOf(given)
  if (given.records && given['group-by'] !== undefined) throw new UsageError('--records are not grouped: leave one of the two out')
  const place = await placeOf(given, io)
  const now = Date.now()
  const { key, account, model } = given
  const filter: UsageFilter = {
    ...(key === undefined ? {} : { key }),
    ...(account === undefined ? {} : { account }),
    ...(model === undefined ? {} : { model: place.config?.aliases.get(model) ?? model }),
    ...(given.since === undefined ? {} : { since: readMoment('--since', given.since, place.timezone, now) }),
    ...(given.until === undefined ? {} : { until: readMoment('--until', given.until, place.timezone, now) }),
  }
  const { since, until } = filter
  if (since !== undefined && until !== undefined && since >= until)
    throw new UsageError('--since is not before --until: no moment is between them')
  return withBooks(place, async books => {
    const { before } = await books.ask('summed', {})
    const summed = before !== null && (since ?? 0) < before ? before : null
    if (given.records) {
      const code = await recordLines(books.records(filter), format === 'csv' ? 'csv' : 'jsonl', place.timezone, io)
      io.stderr(summedRemark(summed, place, 'what is no longer there is in `model-gateway usage`.'))
      return code
    }
    return sums(books, filter, by, format, place, io, summed)
  })
}

async function sums(
  books: Books,
  filter: UsageFilter,
  by: readonly Dimension[],
  format: Format,
  place: Place,
  io: Io,
  summed: number | null,
): Promise<number> {
  const { timezone, calendar } = place
  const rows = await books.ask('usage', { ...filter, by, timezone, calendar })
  const total = totalOf(rows)
  if (format === 'csv') {
    io.stdout(csvLine([...by, ...FIGURES]))
    for (const row of rows) io.stdout(csvLine([...by.map(name => row.group[name]), ...FIGURES.map(name => row[name])]))
  } else if (format === 'jsonl') {
    for (const { group, ...figures } of rows) io.stdout(`${json({ ...group, ...figures }, 0)}\n`)
  } else if (format === 'json') {
    const shown = rows.map(({ group, ...figures }) => ({ ...group, ...figures }))
    io.stdout(`${json({ ...period(filter, timezone), summed_before: shownTime(summed, timezone), group_by: by, rows: shown, total })}\n`)
  } else {
    if (rows.length > 0) io.stdout(usageTable(rows, by, total))
    io.stderr(remark(rows, filter, place))
  }
  io.stderr(summedRemark(summed, place, 'such a day counts as a whole, where its noon is.'))
  return 0
}

const FIGURES = [
  'requests',
  'partial',
  'failed',
  'estimated',
  'input_tokens',
  'cached_input_tokens',
  'output_tokens',
  'reasoning_tokens',
  'cost_rial',
  'overrun_rial',
] as const satisfies readonly (keyof UsageRow)[]

type Figures = Omit<UsageRow, 'group'>

function totalOf(rows: readonly UsageRow[]): Figures {
  const sum = (name: 'requests' | 'partial' | 'failed' | 'estimated') => rows.reduce((all, row) => all + row[name], 0)
  const amount = (name: Exclude<keyof Figures, 'requests' | 'partial' | 'failed' | 'estimated'>) =>
    rows.reduce((all, row) => all + row[name], 0n)
  return {
    requests: sum('requests'),
    partial: sum('partial'),
    failed: sum('failed'),
    estimated: sum('estimated'),
    input_tokens: amount('input_tokens'),
    cached_input_tokens: amount('cached_input_tokens'),
    output_tokens: amount('output_tokens'),
    reasoning_tokens: amount('reasoning_tokens'),
    cost_rial: amount('cost_rial'),
    overrun_rial: amount('overrun_rial'),
  }
}

function usageTable(rows: readonly UsageRow[], by: readonly Dimension[], total: Figures): string {
  const shown = [
    ['REQUESTS', 'requests'],
    ['FAILED', 'failed'],
    ['INPUT', 'input_tokens'],
    ['CACHED', 'cached_input_tokens'],
    ['OUTPUT', 'output_tokens'],
    ['RIAL', 'cost_rial'],
  ] as const
  return table<UsageRow>(
    [
      ...by.map(name => ({ title: name.toUpperCase(), cell: (row: UsageRow) => row.group[name] })),
      ...shown.map(([title, name]) => ({ title, cell: (row: UsageRow) => row[name] })),
    ],
    rows,
    [...by.map((_, i) => (i === 0 ? 'total' : ' ')), ...shown.map(([, name]) => total[name])],
  )
}

function period({ since, until }: UsageFilter, timezone: string): { readonly since: string | null; readonly until: string | null } {
  const place = zone(timezone)
  return { since: since === undefined ? null : isoTime(since, place), until: until === undefined ? null : isoTime(until, place) }
}

function shownTime(at: number | null, timezone: string): string | null {
  return at === null ? null : isoTime(at, zone(timezone))
}

/** Where old records have given way to their sums by day, which `consequence` follows from. */
function summedRemark(summed: number | null, { timezone }: Place, consequence: string): string {
  if (summed === null) return ''
  return `Requests before ${shownTime(summed, timezone)} are kept as sums of days (ledger.retention): ${consequence}\n`
}

/** What the table does not say: the time it is about, and why it may be empty. */
function remark(rows: readonly UsageRow[], filter: UsageFilter, { config, timezone }: Place): string {
  const { since, until } = period(filter, timezone)
  const span = `${since === null ? '' : ` from ${since}`}${until === null ? '' : ` before ${until}`}`
  if (rows.length > 0) return span === '' ? '' : `Usage${span}.\n`
  const fits = Object.values(filter).some(value => typeof value === 'string') ? ' that fits' : ''
  const lines = [`No request${fits} has ended${span}.`]
  for (const [what, names] of [
    ['key', config?.keys],
    ['account', config?.accounts],
    ['model', config?.models],
  ] as const) {
    const name = filter[what]
    if (name !== undefined && names !== undefined && !names.has(name))
      lines.push(`The config has no ${what} ${JSON.stringify(plain(name))}${didYouMean(name, names.keys())}.`)
  }
  return `${lines.join('\n')}\n`
}

function dimensions(text = 'key,model'): Dimension[] {
  const names = text.split(',').map(name => name.trim())
  for (const [i, name] of names.entries()) {
    if (!DIMENSIONS.some(known => known === name))
      throw new UsageError(`--group-by: there is no ${JSON.stringify(name)}${didYouMean(name, DIMENSIONS)}: ${DIMENSIONS.join(', ')}`)
    if (names.indexOf(name) < i) throw new UsageError(`--group-by: ${name} stands there twice`)
  }
  return names as Dimension[]
}

function formatOf({
  format,
  json: asJson,
  records,
}: {
  readonly format: string | undefined
  readonly json: boolean
  readonly records: boolean
}): Format {
  const known = records ? (['csv', 'jsonl'] as const) : FORMATS
  if (asJson && records)
    throw new UsageError('--records come as --format csv or jsonl: as one JSON document they would not fit into memory')
  if (asJson && format !== undefined && format !== 'json')
    throw new UsageError(`--json and --format ${format} are two formats: leave one out`)
  if (format === undefined) return asJson ? 'json' : records ? 'jsonl' : 'table'
  const found = known.find(name => name === format)
  if (found === undefined)
    throw new UsageError(`--format: there is no ${JSON.stringify(format)}${didYouMean(format, known)}: ${known.join(', ')}`)
  return found
}
