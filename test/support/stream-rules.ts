import { isObject, type Json, type JsonObject } from '../../src/json.js'

/**
 * What every client library can read of a streamed chat completion: says each rule that the chunks break, in words; empty where all is well.
 * `chunks` are the parsed events without `[DONE]`. With `whole` false the stream was cut short, and what has to come last may be missing.
 */
export function brokenRules(chunks: readonly unknown[], { whole = true }: { readonly whole?: boolean } = {}): string[] {
  const reader = new RuleReader()
  for (const [position, chunk] of chunks.entries()) reader.read(chunk, `chunk ${position}`)
  if (whole) reader.close()
  return reader.broken
}

interface ChoiceSeen {
  deltas: number
  /** The name of each call, as far as it has been told. */
  readonly calls: string[]
  finished: boolean
}

const FINISH_REASONS: ReadonlySet<unknown> = new Set(['stop', 'length', 'tool_calls', 'content_filter', 'function_call'])

class RuleReader {
  readonly broken: string[] = []
  readonly #choices = new Map<number, ChoiceSeen>()
  #head: string | null = null
  #usages = 0

  read(chunk: unknown, where: string): void {
    if (!isObject(chunk)) {
      this.#breaks(where, 'is no object')
      return
    }
    if (this.#usages > 0) this.#breaks(where, 'follows the usage chunk')
    this.#readHead(chunk, where)
    if (!Array.isArray(chunk.choices)) {
      this.#breaks(where, 'has no choices array')
      return
    }
    if (isObject(chunk.usage)) this.#readUsage(chunk.usage, where)
    else if (chunk.choices.length === 0) this.#breaks(where, 'has neither choices nor usage')
    for (const choice of chunk.choices as readonly Json[]) {
      if (isObject(choice) && typeof choice.index === 'number') this.#readChoice(choice, choice.index, where)
      else this.#breaks(where, 'has a choice without index')
    }
  }

  close(): void {
    if (this.#choices.size === 0) this.#breaks('the stream', 'has no choice')
    for (const [index, choice] of this.#choices) if (!choice.finished) this.#breaks(`choice ${index}`, 'has no finish_reason')
  }

  #readHead({ id, object, created, model }: JsonObject, where: string): void {
    if (typeof id !== 'string' || !/^(chatcmpl|gen)-./.test(id)) this.#breaks(where, `has the id ${String(id)}`)
    if (object !== 'chat.completion.chunk') this.#breaks(where, `is a ${String(object)}`)
    if (!Number.isSafeInteger(created)) this.#breaks(where, 'has no whole number in created')
    const head = JSON.stringify([id, created, model])
    if (this.#head !== null && this.#head !== head) this.#breaks(where, 'changes id, created or model')
    this.#head = head
  }

  #readUsage(usage: JsonObject, where: string): void {
    this.#usages++
    for (const [name, value] of Object.entries(usage)) {
      for (const [inner, count] of isObject(value) ? Object.entries(value) : [['', value] as const]) {
        if (!Number.isSafeInteger(count) || Number(count) < 0)
          this.#breaks(where, `reports ${name}${inner && '.'}${inner} as ${String(count)}`)
      }
    }
    for (const [index, choice] of this.#choices)
      if (!choice.finished) this.#breaks(where, `reports usage before choice ${index} has finished`)
  }

  #readChoice({ delta, finish_reason }: JsonObject, index: number, where: string): void {
    const choice = this.#choices.get(index) ?? { deltas: 0, calls: [], finished: false }
    this.#choices.set(index, choice)
    if (choice.finished) this.#breaks(where, `continues choice ${index} after its finish_reason`)
    if (!isObject(delta)) {
      this.#breaks(where, 'has a choice without a delta object')
      return
    }
    if (choice.deltas++ === 0 ? delta.role !== 'assistant' : delta.role !== undefined) {
      this.#breaks(where, 'has the role somewhere else than in the first delta, or not there')
    }
    for (const name of ['content', 'reasoning_content', 'refusal']) {
      const text = delta[name]
      if (text !== undefined && text !== null && typeof text !== 'string') this.#breaks(where, `has a ${name} that is no string`)
    }
    if (delta.tool_calls !== undefined) this.#readCalls(delta.tool_calls, choice, where)
    if (finish_reason === null || finish_reason === undefined) return
    choice.finished = true
    if (!FINISH_REASONS.has(finish_reason)) this.#breaks(where, `has the finish_reason ${String(finish_reason)}`)
  }

  #readCalls(calls: Json, choice: ChoiceSeen, where: string): void {
    if (!Array.isArray(calls)) {
      this.#breaks(where, 'has tool_calls that are no array')
      return
    }
    for (const call of calls as readonly Json[]) {
      if (!isObject(call) || !isObject(call.function)) {
        this.#breaks(where, 'has a tool call without function')
        continue
      }
      const { index, id, type } = call
      const { name, arguments: args } = call.function
      if (typeof args !== 'string') this.#breaks(where, 'has arguments that are no string')
      if (typeof index !== 'number' || index > choice.calls.length || index < 0) {
        this.#breaks(where, `has the call index ${String(index)} after ${choice.calls.length} calls`)
        continue
      }
      const before = choice.calls[index]
      choice.calls[index] = (before ?? '') + (name ?? '')
      if (before === undefined) {
        if (typeof id !== 'string' || id === '' || type !== 'function' || typeof name !== 'string' || name === '')
          this.#breaks(where, 'begins a call without id, type and name')
      } else if (id !== undefined || type !== undefined || name === before || name === '')
        this.#breaks(where, 'repeats the id, type or name of a call')
    }
  }

  #breaks(where: string, what: string): void {
    this.broken.push(`${where} ${what}`)
  }
}
