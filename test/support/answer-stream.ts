import chatCompletions from '../../src/endpoints/chat-completions.js'
import type { JsonObject } from '../../src/json.js'
import { StreamUsage } from '../../src/metering/meter.js'
import { compatible } from '../../src/upstream/compatible.js'
import type { Call, Wire } from '../../src/upstream/providers/provider.js'
import { AnswerStream } from '../../src/upstream/stream.js'
import { sampleCall } from './sample-call.js'

/** All that became of a provider's bytes. */
export interface Told {
  /** The client's bytes, without what ends the stream. */
  text: string
  /** `null` while neither came. */
  ended: 'done' | 'failed' | null
  error: unknown
  readonly observed: JsonObject[]
  readonly metered: JsonObject[]
}

export interface TellOptions {
  readonly includeUsage?: boolean
  readonly wire?: Wire
  readonly call?: Call
  /** A sink is there before the first byte. */
  readonly attached?: boolean
}

export const CALL = sampleCall('chat', { stream: true })
export const CHAT = compatible('test').wires.chat as Wire

export interface Telling {
  readonly stream: AnswerStream
  readonly told: Told
  attach(): void
}

/** A stream whose client is this test. */
export function telling({ includeUsage = true, wire = CHAT, call = CALL, attached = true }: TellOptions = {}): Telling {
  const told: Told = { text: '', ended: null, error: null, observed: [], metered: [] }
  const usage = new StreamUsage({ strict: false })
  const stream = new AnswerStream({
    call,
    wire,
    endpoint: chatCompletions,
    includeUsage,
    meter: chunk => {
      told.metered.push(structuredClone(chunk))
      return usage.add(chunk)
    },
  })
  const end = (how: 'done' | 'failed', error: unknown): void => {
    if (told.ended !== null) throw new Error('a stream ended twice')
    told.ended = how
    told.error = error
  }
  const attach = (): void =>
    stream.attach({
      write: text => {
        if (told.ended !== null) throw new Error('a stream went on after its end')
        told.text += text
      },
      observe: chunk => told.observed.push(chunk),
      done: () => end('done', null),
      failed: error => end('failed', error),
    })
  if (attached) attach()
  return { stream, told, attach }
}

/** What a client is told of bytes that come in these pieces. */
export function tell(pieces: Iterable<Uint8Array | string>, options: TellOptions = {}): Told {
  const { stream, told } = telling(options)
  for (const piece of pieces) stream.push(Buffer.from(piece))
  stream.end()
  return told
}

/** `data:` events of these values, and `[DONE]`. */
export function framed(chunks: readonly unknown[], done = true): string {
  const data = chunks.map(chunk => (typeof chunk === 'string' ? chunk : JSON.stringify(chunk)))
  return [...data, ...(done ? ['[DONE]'] : [])].map(text => `data: ${text}\n\n`).join('')
}

/** The chunks in a client's bytes. */
export function chunksIn(text: string): JsonObject[] {
  return text
    .split('\n\n')
    .filter(event => event.startsWith('data: {'))
    .map(event => JSON.parse(event.slice('data: '.length)))
}
