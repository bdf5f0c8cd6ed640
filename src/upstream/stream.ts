import type { Endpoint } from '../endpoints/endpoint.js'
import { isGatewayError } from '../errors.js'
import { isObject, type Json, type JsonObject } from '../json.js'
import { asReport } from '../metering/meter.js'
import type { Usage } from '../metering/usage.js'
import { ChunkRules, isUsageOnly } from './chunks.js'
import { patch, replacements, StreamPatch } from './patch.js'
import { type Call, type EventTranslator, ProviderFailure, type SseEvent, type Wire } from './providers/provider.js'
import { SseParser } from './sse.js'
import { ContentTemplate } from './template.js'

type Mutable = { [name: string]: Json | undefined }

/** Takes what a stream gives, in the client's wire. */
export interface Sink {
  /** Whole events, framed, as one piece of text. */
  write(text: string): void
  /** Each JSON chunk that passes, after `write` of the piece that it is in was prepared. */
  observe?(chunk: JsonObject): void
  /** The provider is done, and all that it owed has come. */
  done(): void
  /** The provider broke off, or reported a failure. */
  failed(error: unknown): void
}

export interface StreamFacts {
  readonly call: Call
  readonly wire: Wire
  readonly endpoint: Endpoint
  /** The client asked for the usage chunk. */
  readonly includeUsage: boolean
  /**
   * Fed with each JSON chunk in the client's wire, before `id` and `model` are put right; and with usage that was reported before a cut. Where usage
   * is reported choice by choice, gives what all come to: that is told.
   */
  readonly meter: (chunk: JsonObject) => Usage | null
}

/**
 * One streamed answer: a provider's bytes in, a client's events out. Nothing is held back but the usage chunk, which is always the last.
 * Until a sink is attached, what is ready waits, but for comments: those would be without end where a provider talks and never answers.
 */
export class AnswerStream {
  readonly #facts: StreamFacts
  readonly #parser = new SseParser()
  readonly #patch = new StreamPatch()
  readonly #template = new ContentTemplate()
  readonly #rules: ChunkRules
  readonly #translator: EventTranslator | null
  #sink: Sink | null = null
  #ready = ''
  #early: JsonObject[] = []
  #told = 0
  #usage: string | null = null
  #id: string | null = null
  #over: 'done' | 'failed' | null = null
  #error: unknown = null

  constructor(facts: StreamFacts) {
    this.#facts = facts
    this.#rules = new ChunkRules(facts.call.id)
    this.#translator = facts.wire.events?.(facts.call) ?? null
  }

  /** An event can be told to the client, or the stream is over. Comments do not count: a failure that follows them still gets a status. */
  get begun(): boolean {
    return this.#told > 0 || this.#over !== null
  }

  /** How many chunks can be, or have been, told to the client. */
  get told(): number {
    return this.#told
  }

  /** The failure that ended it before anything could be told to the client; `null` where there is none. */
  get failedAtOnce(): unknown {
    return this.#over === 'failed' && this.#told === 0 ? this.#error : null
  }

  /** The provider has said all that it had to say. Bytes that follow mean nothing. */
  get over(): boolean {
    return this.#over !== null
  }

  attach(sink: Sink): void {
    this.#sink = sink
    for (const chunk of this.#early) sink.observe?.(chunk)
    this.#early = []
    this.#flush()
  }

  push(bytes: Buffer): void {
    if (this.#over !== null) return
    try {
      this.#parser.push(bytes, this.#event, this.#comment)
    } catch (error) {
      this.#fail(error)
    }
    this.#flush()
  }

  /** The provider's body ended. */
  end(): void {
    if (this.#over !== null) return
    try {
      this.#parser.end(this.#event)
      if (this.#over === null) this.#finish()
    } catch (error) {
      this.#fail(error)
    }
    this.#flush()
  }

  /** A whole answer came where a stream was asked for: it is told as one. */
  retell(answer: JsonObject): void {
    for (const chunk of asChunks(answer)) this.#emit(chunk as Mutable, null)
    this.#finish()
    this.#flush()
  }

  /** Cut off from outside. Where every choice had finished and only the provider's goodbye is missing, the answer is whole all the same. */
  fail(error: unknown): void {
    if (this.#over !== null) return
    try {
      if (this.#rules.whole && isGatewayError(error) && error.origin === 'upstream') this.#finish()
      else this.#fail(error)
    } catch (fault) {
      this.#fail(fault)
    }
    this.#flush()
  }

  readonly #comment = (text: string): void => {
    if (this.#over === null && this.#sink !== null) this.#ready += `:${text}\n\n`
  }

  readonly #event = (event: SseEvent): void => {
    if (this.#over !== null) return
    const data = event.data
    if (this.#translator !== null) {
      const done = data.trim() === '[DONE]'
      if (!done) for (const chunk of this.#translator.event(event)) this.#emit(chunk as Mutable, null)
      if (done || this.#translator.over === true) this.#finish()
      return
    }
    if (data.length < 16 && data.trim() === '[DONE]') {
      this.#finish()
      return
    }
    if (event.event === undefined) {
      const repeated = this.#template.match(data)
      if (repeated !== null) {
        this.#facts.meter(repeated.chunk)
        this.#tell(repeated.chunk, repeated.told)
        return
      }
    }
    const chunk = read(data)
    if (typeof chunk === 'string') {
      // A goodbye that is none of the format's: all that was asked for has come.
      if (!this.#rules.whole || event.event === 'error') throw new ProviderFailure({ message: chunk })
      this.#finish()
      return
    }
    // To clients an object is an error, an empty one too.
    const cleared = isObject(chunk.error)
    if (tellsError(chunk) || (cleared && !Array.isArray(chunk.choices)) || event.event === 'error') throw new ErrorEvent(chunk)
    if (cleared) delete (chunk as Mutable).error
    this.#emit(chunk as Mutable, cleared ? null : data)
  }

  /** `text`: the chunk as the provider wrote it; `null` where it was made here. */
  #emit(chunk: Mutable, text: string | null): void {
    const { call, endpoint, meter } = this.#facts
    let changed = this.#rules.apply(chunk)
    const model = chunk.model === call.model.id ? null : call.model.id
    const id = this.#idFor(chunk.id, endpoint.idPrefix)
    const joined = meter(chunk as JsonObject)
    if (joined !== null && isObject(chunk.usage)) {
      chunk.usage = asReport(chunk.usage, joined)
      changed = true
    }
    let data: string
    if (text === null || changed) {
      if (id !== null) chunk.id = id
      chunk.model = call.model.id
      if (chunk.object === undefined) chunk.object = 'chat.completion.chunk'
      if (chunk.created === undefined) chunk.created = call.created
      data = JSON.stringify(chunk)
    } else {
      data = model === null && id === null ? text : this.#patch.apply(text, id, model, chunk)
      if (text.includes('\n')) data = data.replaceAll('\n', ' ')
      this.#template.learn(text, chunk as JsonObject, other => (data === text ? other : patch(other, replacements(id, model))))
    }
    if (isUsageOnly(chunk as JsonObject)) {
      // Other chunks may still come, and clients keep what the last one says.
      if (this.#facts.includeUsage) this.#usage = data
      return
    }
    if (this.#facts.includeUsage && isObject(chunk.x_groq) && isObject(chunk.x_groq.usage)) {
      // Its clients look for it there, all others in a chunk of its own.
      const { object = 'chat.completion.chunk', created = call.created, x_groq } = chunk
      this.#usage = JSON.stringify({ id: this.#id, object, created, model: call.model.id, choices: [], usage: x_groq.usage })
    }
    this.#tell(chunk as JsonObject, data)
  }

  #tell(chunk: JsonObject, data: string): void {
    this.#told++
    this.#ready += `data: ${data}\n\n`
    if (this.#sink === null) this.#early.push(chunk)
    else this.#sink.observe?.(chunk)
  }

  /** The id that must stand in the chunk; `null` when the provider's own may stay. One id for the whole stream. */
  #idFor(id: Json | undefined, prefix: string): string | null {
    if (this.#id === null)
      this.#id = typeof id === 'string' && id.startsWith(prefix) && id.length > prefix.length ? id : prefix + this.#facts.call.id
    return id === this.#id ? null : this.#id
  }

  #finish(): void {
    if (this.#translator !== null) for (const chunk of this.#translator.end()) this.#emit(chunk as Mutable, null)
    if (!this.#rules.whole) throw new ProviderFailure({ message: 'The provider ended its stream before the answer was whole.' })
    if (this.#usage !== null) this.#ready += `data: ${this.#usage}\n\n`
    this.#over = 'done'
  }

  #fail(error: unknown): void {
    this.#over = 'failed'
    this.#error = error
    const usage = this.#translator?.reported?.() ?? null
    if (usage !== null) this.#facts.meter({ choices: [], usage })
  }

  #flush(): void {
    const sink = this.#sink
    if (sink === null) return
    if (this.#ready !== '') {
      const text = this.#ready
      this.#ready = ''
      sink.write(text)
    }
    if (this.#over === 'done') sink.done()
    else if (this.#over === 'failed') sink.failed(this.#error)
  }
}

/** The chunk that an event is, or why it is none. */
function read(data: string): JsonObject | string {
  try {
    const chunk: unknown = JSON.parse(data)
    return isObject(chunk) ? chunk : 'The provider sent an event that is no object.'
  } catch {
    return 'The provider sent an event that is not JSON.'
  }
}

/** Does it report an error? Some servers write `false`, `""` or `{}` where there is none. */
export function tellsError({ error }: JsonObject): boolean {
  if (!error) return false
  return typeof error !== 'object' || Object.keys(error).length > 0
}

/** An `{"error": …}` inside a stream. */
export class ErrorEvent extends Error {
  constructor(readonly body: JsonObject) {
    super('The provider reported a failure inside its stream.')
    this.name = 'ErrorEvent'
  }
}

/** A whole chat completion as the chunks of a stream: role, content, finish, usage. */
function* asChunks(answer: JsonObject): Iterable<JsonObject> {
  const base = { id: answer.id, object: 'chat.completion.chunk', created: answer.created, model: answer.model }
  const choices = (answer.choices as readonly Json[]).filter(isObject)
  for (const [position, choice] of choices.entries()) {
    const index = typeof choice.index === 'number' ? choice.index : position
    const message: Mutable = isObject(choice.message) ? { ...choice.message } : { content: '' }
    message.role = 'assistant'
    if (Array.isArray(message.tool_calls)) {
      message.tool_calls = message.tool_calls.map((call, i) => (isObject(call) ? { index: i, ...call } : call))
    }
    for (const name of Object.keys(message)) if (message[name] === null && name !== 'content') delete message[name]
    yield { ...base, choices: [{ index, delta: message as JsonObject, logprobs: choice.logprobs ?? null, finish_reason: null }] }
    yield { ...base, choices: [{ index, delta: {}, logprobs: null, finish_reason: choice.finish_reason ?? 'stop' }] }
  }
  if (isObject(answer.usage)) yield { ...base, choices: [], usage: answer.usage }
}
