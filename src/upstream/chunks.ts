import { isObject, type Json, type JsonObject } from '../json.js'
import { ProviderFailure } from './providers/provider.js'

/** The most choices that a request may ask for, and calls of tools in one of them; an answer with more is no answer but an attack, or a fault. */
export const CHOICES_MAX = 128
const CALLS_MAX = 1024

type Mutable = { [name: string]: Json | undefined }

interface CallState {
  readonly index: number
  id: string | null
  typed: boolean
  /** As far as it has been told. */
  name: string
}

interface ChoiceState {
  started: boolean
  finished: boolean
  /** How many calls of tools have begun. */
  count: number
  /** By the provider's own index of the call, or its id where it gives none. */
  readonly calls: Map<string, CallState>
  last: CallState | undefined
}

/**
 * Keeps one stream to what clients of the format can read: `choices` an array, `delta` an object, a role once, a tool call's id, type and
 * name once (a name may come in pieces), its index from 0 without gaps, one finish per choice. What already obeys is left alone, to the byte.
 */
export class ChunkRules {
  readonly #choices = new Map<number, ChoiceState>()
  readonly #callId: string
  #finished = 0

  /** `callId`: what ids are made of where a provider gives a tool call none. */
  constructor(callId: string) {
    this.#callId = callId
  }

  /** Every choice that was begun has its finish, and there was one. */
  get whole(): boolean {
    return this.#finished > 0 && this.#finished === this.#choices.size
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
    const index = choice.index as number
    let state = this.#choices.get(index)
    if (state === undefined) {
      if (index < 0 || index >= CHOICES_MAX) throw new ProviderFailure({ message: 'The provider sent a choice that nobody asked for.' })
      state = { started: false, finished: false, count: 0, calls: new Map(), last: undefined }
      this.#choices.set(index, state)
    }
    if (!isObject(choice.delta)) {
      choice.delta = {}
      changed = true
    }
    const delta = choice.delta as Mutable
    changed = role(delta, state) || changed
    if (Array.isArray(delta.tool_calls)) {
      for (const call of delta.tool_calls as Json[]) {
        if (isObject(call)) changed = toolCall(call as Mutable, state, `call_${this.#callId}_${index}_`) || changed
      }
    }
    return this.#finish(choice, state) || changed
  }

  #finish(choice: Mutable, state: ChoiceState): boolean {
    const reason = choice.finish_reason
    if (typeof reason !== 'string') return false
    // Some servers write "" for «not yet».
    if (state.finished || reason === '') {
      choice.finish_reason = null
      return true
    }
    state.finished = true
    this.#finished++
    return false
  }
}

function role(delta: Mutable, state: ChoiceState): boolean {
  if (!state.started) {
    state.started = true
    if (typeof delta.role === 'string' && delta.role !== '') return false
    delta.role = 'assistant'
    return true
  }
  return drop(delta, 'role')
}

/** Clients add up what they are told, names too: a call's id, type and name, or each piece of it, are told once, and its arguments are text. */
function toolCall(call: Mutable, choice: ChoiceState, idPrefix: string): boolean {
  const state = stateOf(call, choice)
  const first = state.id === null
  let changed = false
  if (call.index !== state.index) {
    call.index = state.index
    changed = true
  }
  if (first) {
    if (!isText(call.id)) {
      call.id = idPrefix + state.index
      changed = true
    }
    state.id = call.id as string
  } else {
    changed = drop(call, 'id') || changed
  }
  if (state.typed) {
    changed = drop(call, 'type') || changed
  } else {
    state.typed = true
    if (typeof call.type !== 'string') {
      call.type = 'function'
      changed = true
    }
  }
  return isObject(call.function) ? called(call.function as Mutable, state, first) || changed : changed
}

function called(fn: Mutable, state: CallState, first: boolean): boolean {
  let changed = false
  if (isText(fn.name) && fn.name !== state.name) state.name += fn.name
  else changed = drop(fn, 'name')
  if (isObject(fn.arguments)) {
    fn.arguments = JSON.stringify(fn.arguments)
    changed = true
  } else if (first && typeof fn.arguments !== 'string') {
    fn.arguments = ''
    changed = true
  }
  return changed
}

/**
 * The call that a delta belongs to. It goes by its index, or where a provider gives none by its id, or else on with the last. A name that
 * comes with another id begins a call, though (some servers number all calls 0), and so does a name where nothing else tells calls apart.
 */
function stateOf(call: Mutable, choice: ChoiceState): CallState {
  const id = isText(call.id) ? call.id : undefined
  const named = isObject(call.function) && isText(call.function.name)
  const key = Number.isInteger(call.index) ? `#${call.index}` : id
  let state = key === undefined ? choice.last : choice.calls.get(key)
  const another = named && state !== undefined && state.name !== '' && (key === undefined || (id !== undefined && id !== state.id))
  if (state === undefined || another) {
    if (choice.count === CALLS_MAX) throw new ProviderFailure({ message: `The provider called tools more than ${CALLS_MAX} times.` })
    state = { index: choice.count++, id: null, typed: false, name: '' }
    if (key !== undefined) choice.calls.set(key, state)
  }
  choice.last = state
  return state
}

function isText(value: Json | undefined): value is string {
  return typeof value === 'string' && value !== ''
}

function drop(from: Mutable, name: string): boolean {
  if (from[name] === undefined) return false
  delete from[name]
  return true
}

/** Nothing but usage: what a client that did not ask for it must not get. */
export function isUsageOnly(chunk: JsonObject): boolean {
  return Array.isArray(chunk.choices) && chunk.choices.length === 0 && isObject(chunk.usage)
}
