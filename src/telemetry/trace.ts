import { pooled } from '../ids.js'

/** One request's place in a trace (W3C Trace Context). */
export interface Trace {
  /** 32 hex digits. */
  readonly traceId: string
  /** The `traceparent` for the provider: this trace, with a span id of our own. */
  readonly outgoing: string
  /** False when the trace begins here. A `tracestate` may be passed on only when it is true. */
  readonly continued: boolean
}

export interface Traceparent {
  readonly traceId: string
  readonly parentId: string
  /** Of the flags those that are defined: 1 sampled, 2 random trace id. */
  readonly flags: number
}

/** Makes traces from what a client sent as `traceparent`. What is not valid begins a new one, unsampled: the decision is left to others. */
export function traces(random: (bytes: Uint8Array) => void = pooled()): (header: string | undefined) => Trace {
  const id = randomIds(random)
  return header => {
    const parent = header === undefined ? null : parseTraceparent(header)
    const traceId = parent?.traceId ?? id(16)
    const outgoing = `00-${traceId}-${id(8)}-0${parent?.flags ?? 0}`
    return { traceId, outgoing, continued: parent !== null }
  }
}

const VERSION_00 = 55
const SHAPE = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/

/** `null` where it is not valid: then there is no parent. A later version is read as far as version 00 goes. */
export function parseTraceparent(header: string): Traceparent | null {
  const [, version, traceId = '', parentId = '', flags = ''] = SHAPE.exec(header) ?? []
  if (version === undefined || version === 'ff') return null
  if (version === '00' && header.length !== VERSION_00) return null
  if (/^0+$/.test(traceId) || /^0+$/.test(parentId)) return null
  return { traceId, parentId, flags: Number.parseInt(flags, 16) & 0b11 }
}

function randomIds(random: (bytes: Uint8Array) => void): (bytes: number) => string {
  const drawn = Buffer.alloc(16)
  return function id(bytes: number): string {
    random(drawn)
    const hex = drawn.toString('hex', 0, bytes)
    return /^0+$/.test(hex) ? id(bytes) : hex
  }
}
