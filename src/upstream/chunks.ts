import { isObject, type Json, type JsonObject } from '../json.js'

type Mutable = { [name: string]: Json | undefined }

interface CallState {
  readonly index: number
  named: boolean
}

interface ChoiceState {
  started: boolean
  finished: boolean
  /** By the provider's own index of the call, or its id where it gives none. */
  readonly calls: Map<string, CallState>
  last: CallState | undefined
}

/**
 * Keeps one stream to what clients of the format can read: `choices` an array, `delta` an object, a role once, a tool call's id, type and
 * name once, its index from 0 without gaps, one finish per choice. What already obeys is left alone, to the byte.
 */
export class ChunkRules {
  readonly #choices = new Map<number, ChoiceState>()
  #finished = 0

  /** Every choice that was begun has its finish, and there was one. */
  get whole(): boolean {
    return this.#finished > 0 && this.#finished === this.#choices.size
  }

  /** Did any choice begin? */
  get begun(): boolean {
    return this.#choices.size > 0
  }

  /** Puts `chunk` right in place; true when anything had to change. */
  apply(chunk: Mutable): boolean {
    if (!Array.isArray(chunk.choices)) {
      chunk.choices = []
      return true
    }
    let changed = false
    const choices = chunk.choices as Json[]
    for (let i = 0; i < choices.length; i++) {
      const choice = choices[i]
      if (isObject(choice)) changed = this.#choice(choice as Mutable, i) || changed
    }
    return changed
  }

  #choice(choice: Mutable, position: number): boolean {
    let changed = false
    if (!Number.isInteger(choice.index)) {
      choice.index = position
      changed = true
    }
    let state = this.#choices.get(choice.index as number)
    if (state === undefined) {
      state = { started: false, finished: false, calls: new Map(), last: undefined }
      this.#choices.set(choice.index as number, state)
    }
    if (!isObject(choice.delta)) {
      choice.delta = {}
      changed = true
    }
    changed = role(choice.delta as Mutable, state) || changed
    changed = toolCalls(choice.delta as Mutable, state) || changed
    if (typeof choice.finish_reason === 'string') {
      if (state.finished) {
        choice.finish_reason = null
        changed = true
      } else {
        state.finished = true
        this.#finished++
      }
    }
    return changed
  }
}

function role(delta: Mutable, state: ChoiceState): boolean {
  if (!state.started) {
    state.started = true
    if (typeof delta.role === 'string' && delta.role !== '') return false
    delta.role = 'assistant'
    return true
  }
  if (delta.role === undefined) return false
  delete delta.role
  return true
}

function toolCalls(delta: Mutable, state: ChoiceState): boolean {
  const calls = delta.tool_calls
  if (!Array.isArray(calls)) return false
  let changed = false
  for (const call of calls as Json[]) {
    if (isObject(call)) changed = toolCall(call as Mutable, state) || changed
  }
  return changed
}

function toolCall(call: Mutable, choice: ChoiceState): boolean {
  const state = stateOf(call, choice)
  let changed = false
  if (call.index !== state.index) {
    call.index = state.index
    changed = true
  }
  const fn = isObject(call.function) ? (call.function as Mutable) : undefined
  if (!state.named) {
    state.named = true
    if (typeof call.type !== 'string') {
      call.type = 'function'
      changed = true
    }
    if (fn !== undefined && isObject(fn.arguments)) {
      fn.arguments = JSON.stringify(fn.arguments)
      changed = true
    }
    return changed
  }
  for (const field of ['id', 'type']) {
    if (call[field] !== undefined) {
      delete call[field]
      changed = true
    }
  }
  if (fn?.name !== undefined) {
    delete fn.name
    changed = true
  }
  return changed
}

/** A call goes by its index; where a provider gives none, an id that was not seen begins the next call, and no id goes on with the last. */
function stateOf(call: Mutable, choice: ChoiceState): CallState {
  const name = Number.isInteger(call.index) ? `#${call.index}` : typeof call.id === 'string' && call.id !== '' ? call.id : undefined
  let state = name === undefined ? choice.last : choice.calls.get(name)
  if (state === undefined) {
    state = { index: choice.calls.size, named: false }
    choice.calls.set(name ?? `#${state.index}`, state)
  }
  choice.last = state
  return state
}

/** Nothing but usage: what a client that did not ask for it must not get. */
export function isUsageOnly(chunk: JsonObject): boolean {
  return Array.isArray(chunk.choices) && chunk.choices.length === 0 && isObject(chunk.usage)
}
