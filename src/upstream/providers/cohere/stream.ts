import { isObject, type Json, type JsonObject } from '../../../json.js'
import { cutShort, eventObject } from '../../chat/answer.js'
import { Chunks } from '../../chat/chunks.js'
import type { Call, EventTranslator, SseEvent } from '../provider.js'
import { argumentsOf, finishReason, named, reportedUsage } from './answer.js'

/** Cohere's stream as chat completion chunks. */
export function chatEvents(call: Call): EventTranslator {
  return new ChatStream(call)
}

class ChatStream implements EventTranslator {
  readonly #chunks: Chunks
  /** Cohere writes one call of a tool after the other; the open one's number at the client. */
  #call: number | null = null
  /** Arguments that are not passed on yet. Where a tool has none, Cohere may write `null`, or nothing: clients need an object. */
  #held: string | null = null
  #ended = false

  constructor(call: Call) {
    this.#chunks = new Chunks(call)
  }

  get over(): boolean {
    return this.#ended
  }

  event({ data }: SseEvent): readonly JsonObject[] {
    if (data === '[DONE]') return []
    const event = eventObject(data)
    const delta = isObject(event.delta) ? event.delta : {}
    const told = isObject(delta.message) ? delta.message : {}
    switch (event.type) {
      case 'message-start':
        this.#chunks.open(0)
        break
      case 'content-start':
      case 'content-delta':
        this.#content(told.content)
        break
      case 'tool-plan-delta':
        this.#text(told.tool_plan)
        break
      case 'tool-call-start':
        this.#begin(told.tool_calls)
        break
      case 'tool-call-delta':
        this.#argue(argumentsOf(told.tool_calls))
        break
      case 'tool-call-end':
        this.#close()
        break
      case 'message-end':
        this.#end(delta)
        break
    }
    return this.#chunks.take()
  }

  end(): readonly JsonObject[] {
    if (!this.#ended) throw cutShort()
    return []
  }

  #text(text: Json | undefined): void {
    if (typeof text !== 'string' || text === '') return
    this.#chunks.open(0)
    this.#chunks.text(0, text)
  }

  #content(content: Json | undefined): void {
    if (!isObject(content)) return
    if (typeof content.thinking === 'string' && content.thinking !== '') this.#chunks.reasoning(0, content.thinking)
    else this.#text(content.text)
  }

  #begin(given: Json | undefined): void {
    if (!isObject(given) || !isObject(given.function)) return
    this.#held = ''
    this.#call = this.#chunks.tool(0, { ...named(given, given.function), arguments: this.#passed(argumentsOf(given)) })
  }

  #argue(text: string): void {
    if (this.#call !== null) this.#chunks.toolArguments(0, this.#call, this.#passed(text))
  }

  #close(): void {
    if (this.#call !== null && this.#held !== null) this.#chunks.toolArguments(0, this.#call, '{}')
    this.#call = null
    this.#held = null
  }

  #end(delta: JsonObject): void {
    this.#ended = true
    const finish = finishReason(delta.finish_reason, delta)
    this.#chunks.open(0)
    this.#close()
    this.#chunks.finish(0, finish)
    const usage = reportedUsage(delta.usage)
    if (usage !== null) this.#chunks.usage(usage)
  }

  /** What of the arguments can be passed on now. */
  #passed(text: string): string {
    if (this.#held === null) return text
    const all = this.#held + text
    this.#held = 'null'.startsWith(all) ? all : null
    return this.#held === null ? all : ''
  }
}
