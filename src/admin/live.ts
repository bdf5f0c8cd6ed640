import type { Exchange } from '../exchange.js'
import { ANONYMOUS } from '../exchange.js'
import type { LedgerStats } from '../ledger/sqlite.js'
import type { Recent, RecentExchange } from '../telemetry/recent.js'
import type { Pulse, Second } from './pulse.js'

export interface LiveFacts {
  readonly recent: Pick<Recent, 'after' | 'seq'>
  readonly pulse: Pick<Pulse, 'seconds'>
  readonly underWay: () => UnderWay
  readonly stats: () => LedgerStats
  readonly draining: () => boolean
}

/** What a row of the page shows of an exchange that is over. */
export interface Row {
  readonly seq: number
  readonly id: string
  /** Of its arrival. Milliseconds since the epoch. */
  readonly at: number
  readonly key: string | null
  readonly surface: string | null
  readonly model: string | null
  readonly provider: string | null
  readonly stream: boolean
  readonly status: number
  readonly code: string | null
  readonly state: RecentExchange['state']
  readonly input: number | null
  readonly output: number | null
  readonly rial: bigint | null
  readonly ms: number
  readonly retries: number
}

/** What is known of an exchange that is under way. */
export interface Running {
  readonly id: string
  readonly at: number
  readonly key: string | null
  readonly surface: string
  readonly model: string | null
  readonly stream: boolean
  readonly stage: 'reading' | 'deciding' | 'held' | 'waiting' | 'answering'
  readonly held_rial: bigint | null
}

/** How many are under way, and the oldest of them. */
export interface UnderWay {
  readonly count: number
  readonly oldest: readonly Running[]
}

export interface Live {
  /** Of the newest exchange there is. */
  readonly seq: number
  readonly now: number
  readonly draining: boolean
  /** The newest of those after the one that was asked for, oldest first: at most the last 60, or 300 where all were asked for. */
  readonly rows: readonly Row[]
  /** Of those that were refused or failed, likewise. */
  readonly refused: readonly Row[]
  readonly running: UnderWay
  readonly seconds: readonly (readonly [requests: number, refused: number, failed: number, tokens: number, rial: bigint])[]
  readonly holds: { readonly open: number; readonly rial: bigint; readonly oldest_at: number | null }
}

const ROWS = 60
const FIRST_ROWS = 300
/** So many of those under way are shown. */
export const RUNNING = 12

/** What has happened since `after`, in a size that does not grow with the traffic. `now`: milliseconds since the epoch. */
export function live({ recent, pulse, underWay, stats, draining }: LiveFacts, after: number, now: number): Live {
  const { open_holds, held_rial, oldest_hold_at } = stats()
  const limit = after === 0 ? FIRST_ROWS : ROWS
  return {
    seq: recent.seq,
    now,
    draining: draining(),
    rows: recent.after(after, limit).map(rowOf),
    refused: recent.after(after, limit, 'refused').map(rowOf),
    running: underWay(),
    seconds: pulse.seconds(now).map(tuple),
    holds: { open: open_holds, rial: held_rial, oldest_at: oldest_hold_at },
  }
}

/** `exchanges`: all that are under way, the oldest first. */
export function underWay(exchanges: Iterable<Exchange>): UnderWay {
  const oldest: Running[] = []
  let count = 0
  for (const exchange of exchanges) if (++count <= RUNNING) oldest.push(runningOf(exchange))
  return { count, oldest }
}

function tuple({ requests, refused, failed, tokens, rial }: Second) {
  return [requests, refused, failed, tokens, rial] as const
}

function rowOf({ seq, line, state }: RecentExchange): Row {
  return {
    seq,
    id: line.request_id,
    at: line.time,
    key: line.key,
    surface: line.surface,
    model: line.model,
    provider: line.provider,
    stream: line.stream,
    status: line.status,
    code: line.code,
    state,
    input: line.input_tokens,
    output: line.output_tokens,
    rial: line.cost_rial,
    ms: line.duration_ms,
    retries: line.retries,
  }
}

function runningOf(exchange: Exchange): Running {
  const { id, at, key, surface, stream, readings } = exchange
  return {
    id,
    at,
    key: key === ANONYMOUS ? null : key.name,
    surface,
    model: exchange.model?.id ?? null,
    stream,
    stage: stageOf(exchange),
    held_rial: readings.length > 0 ? exchange.estimateRial : null,
  }
}

function stageOf({ marks, readings }: Exchange): Running['stage'] {
  if (marks.first !== undefined) return 'answering'
  if (marks.sent !== undefined) return 'waiting'
  if (readings.length > 0) return 'held'
  return marks.read === undefined ? 'reading' : 'deciding'
}
