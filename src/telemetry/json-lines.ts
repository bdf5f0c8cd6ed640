import { errorText, jsonText, policyFields, stackFrames } from './escape.js'
import type { Access, Line } from './log.js'

/** One request as a line of JSON; every field is there, `null` where there is nothing to say. Built by hand: twice as fast as JSON.stringify. */
export function jsonAccess(a: Access): string {
  return (
    `{"time":"${isoTime(a.time)}","level":"${a.level}","request_id":"${a.request_id}","client_request_id":${text(a.client_request_id)}` +
    `,"trace_id":${word(a.trace_id)},"key":${text(a.key)},"plan":${text(a.plan)},"surface":${text(a.surface)},"model":${text(a.model)}` +
    `,"provider":${text(a.provider)},"stream":${a.stream},"status":${a.status},"code":${text(a.code)},"input_tokens":${a.input_tokens}` +
    `,"output_tokens":${a.output_tokens},"cached_tokens":${a.cached_tokens},"usage_source":${word(a.usage_source)}` +
    `,"held_rial":${a.held_rial},"cost_rial":${a.cost_rial},"ttft_ms":${ms(a.ttft_ms)},"duration_ms":${ms(a.duration_ms)}` +
    `,"upstream_ms":${ms(a.upstream_ms)},"gateway_ms":${ms(a.gateway_ms)},"retries":${a.retries},"ended_by":${word(a.ended_by)}` +
    `,"upstream_request_id":${text(a.upstream_request_id)}}\n`
  )
}

const LONGEST_MESSAGE = 4096
const LONGEST_STACK = 8192

/** Any other line. A policy's own fields stand under `fields`, apart from the gateway's. */
export function jsonLine({ time, level, message, fields, extra }: Line): string {
  let line = `{"time":"${isoTime(time)}","level":"${level}","message":${jsonText(message, LONGEST_MESSAGE)}`
  for (const [name, value] of Object.entries(fields)) {
    if (name === 'error') line += error(value, level === 'error')
    else if (typeof value === 'string') line += `,"${name}":${jsonText(value)}`
    else if (typeof value === 'bigint' || Number.isFinite(value)) line += `,"${name}":${value}`
  }
  if (extra !== undefined) {
    const members = policyFields(extra).map(([name, value]) => `${jsonText(name)}:${typeof value === 'string' ? jsonText(value) : value}`)
    line += `,"fields":{${members.join(',')}}`
  }
  return `${line}}\n`
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

/** To the microsecond. */
function ms(value: number | null): number | null {
  return value === null || !Number.isFinite(value) ? null : Math.round(value * 1000) / 1000
}

function isoTime(at: number): string {
  return new Date(at).toISOString()
}
