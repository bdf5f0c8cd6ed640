import type { Json, JsonObject } from '../../json.js'
import type { Call } from '../providers/provider.js'
import { type AnsweredCall, completionId, type FinishReason, type Reported, usageOf } from './answer.js'

interface ChoiceState {
  calls: number
  finished: boolean
}

/**
 * Writes the chunks of one streamed answer so that every client can read them: the role once and first, a call's id, type and name once,
 * its index counting from 0 within the choice, one finish chunk per choice. What was written is taken away by `take`.
 */
export class Chunks {
  #id: string
  #written: JsonObject[] = []
  readonly #call: Call
  readonly #choices = new Map<number, ChoiceState>()

  /** Until the provider has named the answer it is named after the request. */
  constructor(call: Call) {
    this.#call = call
    this.#id = call.id
  }

  /** The provider's name of the answer. Without effect once a chunk has been written: an id does not change. */
  name(id: string): void {
    if (this.#choices.size === 0) this.#id = id
  }

  /** Has anything been generated, in any choice? */
  get begun(): boolean {
    return this.#choices.size > 0
  }

  /** The role chunk, if it has not been written. */
  open(index: number): void {
    if (!this.#choices.has(index)) this.#delta(index, this.#roled(index, { content: '' }))
  }

  text(index: number, text: string, logprobs: Json = null): void {
    if (text !== '') this.#delta(index, this.#roled(index, { content: text }), logprobs)
  }

  reasoning(index: number, text: string): void {
    if (text === '') return
    this.open(index)
    this.#delta(index, { reasoning_content: text })
  }

  /** Begins a call of a tool, and answers its number within the choice. */
  tool(index: number, { id, name, arguments: args, extra }: AnsweredCall): number {
    this.open(index)
    const number = this.#choice(index).calls++
    this.#delta(index, { tool_calls: [{ index: number, id, type: 'function', function: { name, arguments: args }, ...extra }] })
    return number
  }

  /** More of the arguments of the call with this number. */
  toolArguments(index: number, number: number, text: string): void {
    if (number >= this.#choice(index).calls) throw new RangeError(`Call ${number} of choice ${index} has not been begun.`)
    if (text !== '') this.#delta(index, { tool_calls: [{ index: number, function: { arguments: text } }] })
  }

  /** The calls of a choice so far. */
  calls(index: number): number {
    return this.#choices.get(index)?.calls ?? 0
  }

  finish(index: number, reason: FinishReason, extra: JsonObject = {}): void {
    this.open(index)
    const choice = this.#choice(index)
    if (choice.finished) return
    choice.finished = true
    this.#chunk([{ index, delta: {}, logprobs: null, finish_reason: reason, ...extra }])
  }

  usage(usage: Reported): void {
    this.#chunk([], { usage: usageOf(usage) })
  }

  take(): readonly JsonObject[] {
    const written = this.#written
    this.#written = []
    return written
  }

  #roled(index: number, delta: JsonObject): JsonObject {
    if (this.#choices.has(index)) return delta
    this.#choices.set(index, { calls: 0, finished: false })
    return { role: 'assistant', ...delta }
  }

  #choice(index: number): ChoiceState {
    const choice = this.#choices.get(index)
    if (choice === undefined) throw new RangeError(`Choice ${index} has not been opened.`)
    return choice
  }

  #delta(index: number, delta: JsonObject, logprobs: Json = null): void {
    this.#chunk([{ index, delta, logprobs, finish_reason: null }])
  }

  #chunk(choices: readonly JsonObject[], more: JsonObject = {}): void {
    this.#written.push({
      id: completionId(this.#id),
      object: 'chat.completion.chunk',
      created: this.#call.created,
      model: this.#call.model.id,
      choices,
      ...more,
    })
  }
}
