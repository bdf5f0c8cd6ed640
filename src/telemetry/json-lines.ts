import { errorText, jsonText, policyFields, stackFrames } from './escape.js'
import type { Access, Line } from './log.js'

export interface JsonLines {
  /** One request; every field is there, `null` where there is nothing to say. */
  access(access: Access): string
  /** Any other line. A policy's own fields stand under `fields`, apart from the gateway's. */
  line(line: Line): string
}

const LONGEST_MESSAGE = 4096
const LONGEST_STACK = 8192

/** Makes lines of JSON, by hand: half of what a line costs otherwise goes into its time, its fractions and names that hardly change. */
export function jsonLines(): JsonLines {
  const time = isoTimes()
  const name = knownNames()
  return {
    access: a =>
      `{"time":"${time(a.time)}","level":"${a.level}","request_id":"${a.request_id}","client_request_id":${text(a.client_request_id)}` +
      `,"trace_id":${word(a.trace_id)},"key":${name(a.key)},"plan":${name(a.plan)},"surface":${name(a.surface)},"model":${name(a.model)}` +
      `,"provider":${name(a.provider)},"stream":${a.stream},"status":${a.status},"code":${name(a.code)},"input_tokens":${a.input_tokens}` +
      `,"output_tokens":${a.output_tokens},"cached_tokens":${a.cached_tokens},"usage_source":${word(a.usage_source)}` +
      `,"held_rial":${a.held_rial},"cost_rial":${a.cost_rial},"ttft_ms":${ms(a.ttft_ms)},"duration_ms":${ms(a.duration_ms)}` +
      `,"upstream_ms":${ms(a.upstream_ms)},"gateway_ms":${ms(a.gateway_ms)},"retries":${a.retries},"ended_by":${word(a.ended_by)}` +
      `,"upstream_request_id":${text(a.upstream_request_id)}}\n`,
    line({ time: at, level, message, fields, extra }) {
      let line = `{"time":"${time(at)}","level":"${level}","message":${jsonText(message, LONGEST_MESSAGE)}`
      for (const [field, value] of Object.entries(fields)) {
        if (field === 'error') line += error(value, level === 'error')
        else if (typeof value === 'string') line += `,"${field}":${jsonText(value)}`
        else if (typeof value === 'bigint' || Number.isFinite(value)) line += `,"${field}":${value}`
      }
      if (extra !== undefined) line += `,"fields":{${policyFields(extra).map(member).join(',')}}`
      return `${line}}\n`
    },
  }
}

function member([name, value]: readonly [string, string | number | boolean | null]): string {
  return `${jsonText(name)}:${typeof value === 'string' ? jsonText(value) : value}`
}

function error(value: unknown, withStack: boolean): string {
  if (value === undefined) return ''
  const message = `,"error":${jsonText(errorText(value), LONGEST_MESSAGE)}`
  const frames = withStack ? stackFrames(value) : []
  return frames.length === 0 ? message : `${message},"stack":${jsonText(frames.join('\n'), LONGEST_STACK)}`
}

function text(value: string | null): string {
  return value === null ? 'null' : jsonText(value)
}

/** For the gateway's own words, which need no escaping. */
function word(value: string | null): string {
  return value === null ? 'null' : `"${value}"`
}

/** `.413`, `.5`, nothing: what stands behind the whole milliseconds. */
const FRACTIONS: readonly string[] = Array.from({ length: 1000 }, (_, i) =>
  (i / 1000)
    .toFixed(3)
    .slice(1)
    .replace(/\.?0+$/, ''),
)

/** Milliseconds to the microsecond, as JSON. */
function ms(value: number | null): string {
  if (value === null || !(Math.abs(value) < 2 ** 40)) return 'null'
  const micros = Math.round(Math.abs(value) * 1000)
  const whole = Math.floor(micros / 1000)
  return `${value < 0 && micros > 0 ? '-' : ''}${whole}${FRACTIONS[micros - whole * 1000]}`
}

/** ISO 8601 in UTC. A second's text is made once. */
function isoTimes(): (at: number) => string {
  let second = Number.NaN
  let prefix = ''
  return at => {
    const start = Math.floor(at / 1000)
    if (start !== second) {
      second = start
      prefix = new Date(start * 1000).toISOString().slice(0, 20)
    }
    return `${prefix}${String(Math.floor(at - start * 1000)).padStart(3, '0')}Z`
  }
}

const NAMES_KEPT = 2000
const LONGEST_KEPT = 128

/** JSON texts of names that come again and again. A client that sends ever other names only empties the store. */
function knownNames(): (name: string | null) => string {
  const texts = new Map<string, string>()
  return name => {
    if (name === null) return 'null'
    const known = texts.get(name)
    if (known !== undefined) return known
    const json = jsonText(name)
    if (name.length <= LONGEST_KEPT) {
      if (texts.size >= NAMES_KEPT) texts.clear()
      texts.set(name, json)
    }
    return json
  }
}
