import { readFileSync } from 'node:fs'
import type { JsonObject } from '../../src/json.js'
import type { EventTranslator, SseEvent } from '../../src/upstream/providers/provider.js'

/** A file of test/fixtures. Compiled tests are in dist/test/…, three levels below the root of the repository. */
export function fixture(name: string): Buffer {
  return readFileSync(new URL(`../../../test/fixtures/${name}`, import.meta.url))
}

export function fixtureJson(name: string): unknown {
  return JSON.parse(fixture(name).toString())
}

/** A plain reader of event streams, written after the HTML standard and for tests alone: slow, and without shortcuts. */
export function sseReader(): (piece: Buffer) => SseEvent[] {
  let pending = Buffer.alloc(0)
  let event = ''
  let data: string[] = []
  return piece => {
    pending = Buffer.concat([pending, piece])
    const events: SseEvent[] = []
    for (let end = pending.indexOf(10); end >= 0; end = pending.indexOf(10)) {
      const line = pending.subarray(0, end).toString().replace(/\r$/, '')
      pending = pending.subarray(end + 1)
      if (line === '') {
        if (data.length > 0) events.push(event === '' ? { data: data.join('\n') } : { event, data: data.join('\n') })
        event = ''
        data = []
      } else if (line.startsWith('data:')) {
        data.push(line.slice(5).replace(/^ /, ''))
      } else if (line.startsWith('event:')) {
        event = line.slice(6).replace(/^ /, '')
      }
    }
    return events
  }
}

/** All chunks that a translator makes of a stream that arrives in these pieces. */
export function translated(translator: EventTranslator, pieces: readonly Buffer[]): JsonObject[] {
  const read = sseReader()
  const chunks = pieces.flatMap(piece => read(piece).flatMap(event => translator.event(event)))
  return [...chunks, ...translator.end()]
}

/** The stream cut in two at every byte. */
export function everySplit(bytes: Buffer): Buffer[][] {
  return Array.from({ length: bytes.length - 1 }, (_, at) => [bytes.subarray(0, at + 1), bytes.subarray(at + 1)])
}

interface Chunk {
  readonly id: unknown
  readonly object: unknown
  readonly created: unknown
  readonly model: unknown
  readonly usage?: unknown
  readonly choices: readonly {
    readonly index: number
    readonly finish_reason: string | null
    readonly delta: {
      readonly role?: string
      readonly tool_calls?: readonly {
        readonly index: number
        readonly id?: string
        readonly type?: string
        readonly function: { readonly name?: string }
      }[]
    }
  }[]
}

/** What clients break on, in the chunks of one answer. Empty where all is well. */
export function faults(given: readonly JsonObject[]): string[] {
  const chunks = given as unknown as readonly Chunk[]
  const found: string[] = []
  const finished = new Set<number>()
  const roles = new Set<number>()
  const calls = new Map<number, number>()
  chunks.forEach((chunk, position) => {
    if (chunk.object !== 'chat.completion.chunk') found.push(`${position}: object`)
    for (const name of ['id', 'created', 'model'] as const)
      if (chunk[name] !== chunks[0]?.[name]) found.push(`${position}: ${name} changes`)
    if (chunk.usage !== undefined && chunk.usage !== null && position !== chunks.length - 1) found.push(`${position}: usage is not last`)
    for (const { index, delta, finish_reason } of chunk.choices) {
      if (finished.has(index)) found.push(`${position}: choice ${index} goes on after its end`)
      if (roles.has(index) === (delta.role !== undefined)) found.push(`${position}: role`)
      roles.add(index)
      for (const call of delta.tool_calls ?? []) {
        const seen = calls.get(index) ?? 0
        if (call.index > seen || call.index < 0 || !Number.isInteger(call.index)) found.push(`${position}: index ${call.index} of a call`)
        const named = [call.id, call.type, call.function.name].filter(each => each !== undefined).length
        if (named !== (call.index === seen ? 3 : 0)) found.push(`${position}: id, type, name of call ${call.index}`)
        calls.set(index, Math.max(seen, call.index + 1))
      }
      if (finish_reason !== null) finished.add(index)
    }
  })
  for (const index of roles) if (!finished.has(index)) found.push(`choice ${index} has no end`)
  return found
}
