import type { Origin } from '../errors.js'
import type { EndedBy, UsageSource } from '../ledger/ledger.js'
import { jsonLines } from './json-lines.js'
import type { Output } from './output.js'
import { prettyAccess, prettyLine } from './pretty-lines.js'

export type Level = 'debug' | 'info' | 'warn' | 'error'

/** One request, when it is over. What it did not reach is `null`. Rial are whole, times milliseconds. The names are those in the log. */
export interface Access {
  /** Milliseconds since the epoch. */
  readonly time: number
  readonly level: Level
  readonly request_id: string
  readonly client_request_id: string | null
  readonly trace_id: string | null
  readonly key: string | null
  readonly plan: string | null
  readonly surface: string | null
  readonly model: string | null
  readonly provider: string | null
  readonly stream: boolean
  readonly status: number
  readonly code: string | null
  readonly input_tokens: number | null
  readonly output_tokens: number | null
  readonly cached_tokens: number | null
  readonly usage_source: UsageSource | null
  readonly held_rial: bigint | null
  readonly cost_rial: bigint | null
  readonly ttft_ms: number | null
  readonly duration_ms: number
  readonly upstream_ms: number | null
  readonly gateway_ms: number | null
  readonly retries: number
  readonly ended_by: EndedBy | null
  readonly upstream_request_id: string | null
}

/** All that another line may carry. There is no field for a secret, a header, a prompt or an answer, and none is to be added. */
export interface Fields {
  readonly request_id?: string
  readonly trace_id?: string
  readonly key?: string
  readonly account?: string
  readonly plan?: string
  readonly surface?: string
  readonly model?: string
  readonly provider?: string
  readonly target?: string
  readonly reason?: string
  readonly policy?: string
  readonly code?: string
  readonly status?: number
  readonly address?: string
  /** Addresses of the other listeners. */
  readonly ops?: string
  readonly admin?: string
  readonly file?: string
  readonly signal?: string
  readonly version?: string
  readonly count?: number
  /** Its number, where there are several. */
  readonly worker?: number
  readonly bytes?: number
  readonly ms?: number
  readonly rial?: bigint
  /** Its message and those of its causes are shown; at level error the stack too. */
  readonly error?: unknown
}

/** Nothing here blocks or throws. */
export interface Log {
  /** How it is written: what another process has to go by whose lines are to stand in it. */
  readonly form: Pick<LogOptions, 'format' | 'color'>
  debug(message: string, fields?: Fields): void
  info(message: string, fields?: Fields): void
  warn(message: string, fields?: Fields): void
  error(message: string, fields?: Fields): void
  /** Once per request. */
  access(line: Access): void
  /** What a policy has to say, with fields of its own: numbers, booleans and short text are shown, of all else the type. */
  policy(policy: string, message: string, fields?: Readonly<Record<string, unknown>>): void
  /** Lines that another process has made, each with its line break. */
  lines(text: string): void
  /** Lines below this level are left out from now on. */
  setLevel(level: Level): void
  /** For the end of a process that can not wait. */
  flushSync(): void
  /** Resolves when all lines so far are written. */
  drained(): Promise<void>
}

export interface LogOptions {
  readonly format: 'json' | 'pretty'
  readonly level: Level
  /** Colours of a terminal; for the pretty form. */
  readonly color: boolean
  readonly output: Output
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** A line as it is written, of either form. */
export interface Line {
  readonly time: number
  readonly level: Level
  readonly message: string
  readonly fields: Fields
  /** Of a policy; anything may be in it. */
  readonly extra?: Readonly<Record<string, unknown>>
}

const RANK: Readonly<Record<Level, number>> = { debug: 0, info: 1, warn: 2, error: 3 }

/** JSON lines for machines, or pretty lines for people. */
export function createLog(options: LogOptions): Log {
  const { output, now, color } = options
  const json = options.format === 'json' ? jsonLines() : null
  let least = RANK[options.level]

  function write(level: Level, message: string, fields: Fields = {}, extra?: Readonly<Record<string, unknown>>): void {
    if (RANK[level] < least) return
    const line: Line = { time: now(), level, message, fields, ...(extra === undefined ? {} : { extra }) }
    output.push(json === null ? prettyLine(line, color) : json.line(line))
  }

  return {
    form: { format: options.format, color },
    lines(text) {
      for (let from = 0; from < text.length; ) {
        const to = text.indexOf('\n', from) + 1
        output.push(text.slice(from, to === 0 ? text.length : to))
        from = to === 0 ? text.length : to
      }
    },
    debug: (message, fields) => write('debug', message, fields),
    info: (message, fields) => write('info', message, fields),
    warn: (message, fields) => write('warn', message, fields),
    error: (message, fields) => write('error', message, fields),
    policy: (policy, message, fields) => write('info', message, { policy }, fields),
    access(line) {
      if (RANK[line.level] < least) return
      output.push(json === null ? prettyAccess(line, color) : json.access(line))
    },
    setLevel(level) {
      least = RANK[level]
    },
    flushSync: () => output.flushSync(),
    drained: () => output.drained(),
  }
}

/** The level of a request's line: `null` when it succeeded, else who is to blame. */
export function levelOf(origin: Origin | null): Level {
  if (origin === 'gateway') return 'error'
  return origin === 'upstream' ? 'warn' : 'info'
}

/** The line that an output writes in the place of lines that it dropped. */
export function droppedLine(format: 'json' | 'pretty', color: boolean, now: () => number): (lines: number) => string {
  return count => {
    const line: Line = { time: now(), level: 'warn', message: 'log lines were dropped: the output did not keep up', fields: { count } }
    return format === 'json' ? jsonLines().line(line) : prettyLine(line, color)
  }
}
