import type { Io } from '../commands/command.js'
import type { UsageRecord } from '../ledger/ledger.js'
import { isoTime, type Zone, zone } from '../ledger/zone.js'
import { csvLine, json } from './data.js'

/** The fields of a usage record, in the order in which they are printed. What is JSON in the ledger is JSON here. */
const FIELDS = [
  'id',
  'at',
  'ended_at',
  'state',
  'ended_by',
  'status',
  'code',
  'key',
  'account',
  'plan',
  'surface',
  'model',
  'provider',
  'stream',
  'usage_source',
  'input_tokens',
  'cached_input_tokens',
  'output_tokens',
  'reasoning_tokens',
  'cost_rial',
  'held_rial',
  'held_tokens',
  'overrun_rial',
  'price',
  'ttft_ms',
  'duration_ms',
  'attempts',
  'client_request_id',
  'upstream_request_id',
  'trace_id',
] as const satisfies readonly (keyof UsageRecord)[]

const LINES_AT_ONCE = 500

/** Prints usage records as they come; times are ISO 8601 in the zone. */
export async function recordLines(records: AsyncIterable<UsageRecord>, format: 'csv' | 'jsonl', timezone: string, io: Io): Promise<number> {
  const place = remembering(zone(timezone))
  const line = format === 'csv' ? csvOf(place) : jsonOf(place)
  let lines = format === 'csv' ? [csvLine(FIELDS)] : []
  for await (const record of records) {
    lines.push(line(record))
    if (lines.length < LINES_AT_ONCE) continue
    io.stdout(lines.join(''))
    lines = []
  }
  if (lines.length > 0) io.stdout(lines.join(''))
  return 0
}

// Since 1972, the clocks of no zone have changed but at a whole quarter of an hour of UTC.
const QUARTER = 15 * 60_000

/** A zone that is not asked again for what follows within a quarter of an hour: asking costs more than the rest of a line. */
function remembering(place: Zone): Zone {
  let quarter = Number.NaN
  let offset = 0
  return {
    name: place.name,
    offset: at => {
      if (Math.floor(at / QUARTER) === quarter) return offset
      quarter = Math.floor(at / QUARTER)
      offset = place.offset(at)
      return offset
    },
  }
}

type Line = (record: UsageRecord) => string

function csvOf(place: Zone): Line {
  return record => csvLine(FIELDS.map(name => (isTime(name) ? time(record[name], place) : record[name])))
}

function jsonOf(place: Zone): Line {
  return record => {
    const shown = FIELDS.map(name => {
      if (isTime(name)) return [name, time(record[name], place)]
      return [name, name === 'price' || name === 'attempts' ? parsed(record[name]) : record[name]]
    })
    return `${json(Object.fromEntries(shown), 0)}\n`
  }
}

function isTime(name: string): name is 'at' | 'ended_at' {
  return name === 'at' || name === 'ended_at'
}

function time(at: number | null, place: Zone): string | null {
  return at === null ? null : isoTime(at, place)
}

function parsed(text: string | null): unknown {
  return text === null ? null : JSON.parse(text)
}
