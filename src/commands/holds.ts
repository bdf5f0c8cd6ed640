import { formatDuration } from '../config/durations.js'
import { isoTime, zone } from '../ledger/zone.js'
import { json } from '../terminal/data.js'
import { noMore, optionsHelp, readFlags } from '../terminal/flags.js'
import { LEDGER, placeOf, withBooks } from '../terminal/ledger.js'
import { table } from '../terminal/table.js'
import type { Io } from './command.js'

export const summary = 'requests under way, and what they hold'

export const flags = LEDGER

export const usage = `
model-gateway holds

Lists the holds that are open, oldest first: one for each request under way. Where no gateway runs, they are what a crash has left;
the next start releases them.

${optionsHelp(flags)}
`

export async function run(args: string[], io: Io): Promise<number> {
  const { flags: given, words } = readFlags(args, flags)
  noMore(words)
  const place = await placeOf(given, io)
  const { holds, running } = await withBooks(place, async books => ({ holds: await books.ask('holds', {}), running: books.running }))
  const now = Date.now()
  const clock = zone(place.timezone)
  const rows = holds.map(({ id, at, record }) => ({
    id,
    since: isoTime(at, clock),
    age_ms: Math.max(0, now - at),
    key: record.key,
    account: record.account,
    model: record.model,
    surface: record.surface,
    stream: record.stream,
    held_tokens: record.held_tokens,
    held_rial: record.held_rial,
  }))
  if (given.json) io.stdout(`${json(rows)}\n`)
  else if (rows.length === 0) io.stderr('No hold is open.\n')
  else {
    const tokens = rows.reduce((sum, row) => sum + BigInt(row.held_tokens), 0n)
    const rial = rows.reduce((sum, row) => sum + row.held_rial, 0n)
    io.stdout(
      table(
        [
          { title: 'AGE', cell: row => formatDuration(row.age_ms < 10_000 ? row.age_ms : Math.floor(row.age_ms / 1000) * 1000) },
          { title: 'ID', cell: row => row.id },
          { title: 'KEY', cell: row => row.key },
          { title: 'MODEL', cell: row => row.model },
          { title: 'SURFACE', cell: row => row.surface },
          { title: 'TOKENS', cell: row => row.held_tokens },
          { title: 'RIAL', cell: row => row.held_rial },
        ],
        rows,
        [`${rows.length} open`, ' ', ' ', ' ', ' ', tokens, rial],
      ),
    )
    if (!running) io.stderr('No gateway runs on this ledger: a crash has left these, and the next start releases them.\n')
  }
  return 0
}
