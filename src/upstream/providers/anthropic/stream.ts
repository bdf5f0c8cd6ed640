import { isObject, type Json, type JsonObject } from '../../../json.js'
import { cutShort, eventObject, jsonText, reported, usageOf } from '../../chat/answer.js'
import { Chunks } from '../../chat/chunks.js'
import type { Call, EventTranslator, SseEvent } from '../provider.js'
import { answerId, finishOf, reportedUsage, stringOf } from './answer.js'
import { failureOf } from './failure.js'

/** Translates the events of one streamed message. */
export function messageEvents(call: Call): EventTranslator {
  return new MessageStream(call)
}

/** What is read of a usage; it may say more, and other things each time. */
const USAGE = [
  'input_tokens',
  'cache_creation_input_tokens',
  'cache_read_input_tokens',
  'output_tokens',
  'output_tokens_details',
  'iterations',
] as const

interface OpenCall {
  readonly number: number
  /** Have any of its arguments been sent? */
  argued: boolean
}

class MessageStream implements EventTranslator {
  readonly #call: Call
  readonly #chunks: Chunks
  /** By index of the content block. Blocks that are not here (thinking, the provider's own tools) have no arguments to pass on. */
  readonly #calls = new Map<Json | undefined, OpenCall>()
  #usage: JsonObject = {}
  /** The figures of `message_start` say next to nothing of the output; only those of `message_delta` count. */
  #outputReported = false
  #stopReason: string | null = null
  #ended = false

  constructor(call: Call) {
    this.#call = call
    this.#chunks = new Chunks(call)
  }

  get over(): boolean {
    return this.#ended
  }

  event({ data }: SseEvent): readonly JsonObject[] {
    if (this.#ended || data === '' || data === '[DONE]') return []
    const event = eventObject(data)
    switch (event.type) {
      case 'message_start':
        this.#start(isObject(event.message) ? event.message : {})
        break
      case 'content_block_start':
        this.#block(event.index, isObject(event.content_block) ? event.content_block : {})
        break
      case 'content_block_delta':
        this.#delta(event.index, isObject(event.delta) ? event.delta : {})
        break
      case 'content_block_stop':
        this.#close(event.index)
        break
      case 'message_delta':
        this.#messageDelta(event)
        break
      case 'message_stop':
        return this.#end()
      case 'error':
        throw reported(failureOf(200, event), this.#call)
    }
    return this.#chunks.take()
  }

  end(): readonly JsonObject[] {
    return this.#ended ? [] : this.#end()
  }

  reported(): JsonObject | null {
    const usage = typeof this.#usage.input_tokens === 'number' ? reportedUsage(this.#usage) : null
    return usage === null ? null : usageOf(usage)
  }

  #start(message: JsonObject): void {
    this.#chunks.name(answerId(message.id, this.#call))
    this.#chunks.open(0)
    this.#gather(message.usage)
  }

  #block(index: Json | undefined, block: JsonObject): void {
    if (block.type === 'text') this.#chunks.text(0, stringOf(block.text))
    else if (block.type === 'thinking') this.#chunks.reasoning(0, stringOf(block.thinking))
    else if (block.type === 'tool_use') {
      const args = isObject(block.input) && Object.keys(block.input).length > 0 ? jsonText(block.input) : ''
      const number = this.#chunks.tool(0, { id: stringOf(block.id), name: stringOf(block.name), arguments: args })
      this.#calls.set(index, { number, argued: args !== '' })
    }
  }

  #delta(index: Json | undefined, delta: JsonObject): void {
    if (delta.type === 'text_delta') this.#chunks.text(0, stringOf(delta.text))
    else if (delta.type === 'thinking_delta') this.#chunks.reasoning(0, stringOf(delta.thinking))
    else if (delta.type === 'input_json_delta') {
      const call = this.#calls.get(index)
      const text = stringOf(delta.partial_json)
      if (call === undefined || text === '') return
      call.argued = true
      this.#chunks.toolArguments(0, call.number, text)
    }
  }

  /** A tool without arguments gets no delta at all, and `JSON.parse('')` fails in its callers. */
  #close(index: Json | undefined): void {
    const call = this.#calls.get(index)
    if (call === undefined) return
    if (!call.argued) this.#chunks.toolArguments(0, call.number, '{}')
    this.#calls.delete(index)
  }

  #messageDelta(event: JsonObject): void {
    if (isObject(event.delta) && typeof event.delta.stop_reason === 'string') this.#stopReason = event.delta.stop_reason
    if (isObject(event.usage) && typeof event.usage.output_tokens === 'number') this.#outputReported = true
    this.#gather(event.usage)
  }

  /** Figures are cumulative: the last that is there counts. */
  #gather(usage: Json | undefined): void {
    if (!isObject(usage)) return
    const told = USAGE.filter(name => (usage[name] ?? null) !== null).map(name => [name, usage[name]])
    this.#usage = { ...this.#usage, ...Object.fromEntries(told) }
  }

  /** The finish chunk waits for the end of the message: an error that comes before it must not follow a finished answer. */
  #end(): readonly JsonObject[] {
    if (this.#stopReason === null) throw cutShort()
    this.#ended = true
    for (const index of [...this.#calls.keys()]) this.#close(index)
    this.#chunks.finish(0, finishOf(this.#stopReason))
    const usage = this.#outputReported ? reportedUsage(this.#usage) : null
    if (usage !== null) this.#chunks.usage(usage)
    return this.#chunks.take()
  }
}
