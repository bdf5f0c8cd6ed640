import { isObject, type Json, type JsonObject } from '../json.js'
import { readFailure } from './failure.js'
import { type Call, type EventTranslator, ProviderFailure, type SseEvent } from './providers/provider.js'

/**
 * Brings the stream of a server that imitates OpenAI's, and breaks its rules, back to them: the role once, in a choice's first delta; calls of
 * tools numbered from 0 without gaps, their id, type and name once; one finish per choice; usage once, at the end. All other fields stay.
 * `rewrite` is given each delta before.
 */
export function tidied(call: Call, rewrite: (delta: JsonObject) => JsonObject = delta => delta): EventTranslator {
  const choices = new Map<number, Choice>()
  let usage: JsonObject | undefined
  let head: JsonObject = { object: 'chat.completion.chunk', created: call.created }

  const tidyChoice = (given: Json): JsonObject => {
    const choice: JsonObject = isObject(given) ? given : {}
    const index = typeof choice.index === 'number' ? choice.index : 0
    const state = choices.get(index) ?? { begun: false, finished: false, calls: [] }
    choices.set(index, state)
    const delta = tidyDelta(rewrite(isObject(choice.delta) ? choice.delta : {}), state, call)
    const finish = typeof choice.finish_reason === 'string' && !state.finished ? choice.finish_reason : null
    state.finished ||= finish !== null
    return { ...choice, index, delta, finish_reason: finish }
  }

  return {
    event(event: SseEvent) {
      if (event.data === '[DONE]') return []
      const chunk = parsed(event.data)
      if (chunk.error !== undefined && chunk.error !== null) throw new ProviderFailure(readFailure(200, chunk))
      const { usage: reported, choices: given, ...rest } = chunk
      if (isObject(reported)) usage = reported
      const id = typeof chunk.id === 'string' && chunk.id.startsWith('chatcmpl-') ? chunk.id : `chatcmpl-${call.id}`
      head = { ...rest, id, object: 'chat.completion.chunk', model: call.model.id }
      if (!Array.isArray(given) || (given.length === 0 && isObject(reported))) return []
      return [{ ...head, choices: given.map(tidyChoice) }]
    },
    end() {
      const open = choices.size === 0 || [...choices.values()].some(choice => !choice.finished)
      if (open) throw new ProviderFailure({ message: 'The provider ended its stream before the answer was whole.' })
      return usage === undefined ? [] : [{ ...head, choices: [], usage }]
    },
  }
}

interface Choice {
  begun: boolean
  finished: boolean
  /** The provider's index and id of each call, at the place that is the client's index. */
  readonly calls: { readonly index: Json | undefined; readonly id: Json | undefined }[]
}

function tidyDelta(given: JsonObject, state: Choice, call: Call): JsonObject {
  const { role: _, tool_calls: calls, ...rest } = given
  const first = state.begun ? {} : { role: 'assistant' }
  state.begun = true
  return {
    ...first,
    ...rest,
    ...(Array.isArray(calls) && calls.length > 0 ? { tool_calls: calls.map(each => tidyCall(each, state, call)) } : {}),
  }
}

function tidyCall(given: Json, { calls }: Choice, call: Call): JsonObject {
  const { index, id, type, function: called, ...rest }: JsonObject = isObject(given) ? given : {}
  const said: JsonObject = isObject(called) ? called : {}
  const known = find(calls, index, id, said)
  if (known >= 0) {
    const { name: _, ...more } = said
    return { ...rest, index: known, function: more }
  }
  const place = calls.push({ index, id }) - 1
  const named = typeof id === 'string' && id !== '' ? id : `call_${call.id}_${place}`
  return { ...rest, index: place, id: named, type: type ?? 'function', function: { arguments: '', ...said } }
}

/** The call that a delta goes on with, or -1: by index where there is one; else by id; else what has no name belongs to the last. */
function find(calls: Choice['calls'], index: Json | undefined, id: Json | undefined, said: JsonObject): number {
  if (typeof index === 'number') return calls.findIndex(known => known.index === index)
  if (typeof id === 'string' && id !== '') return calls.findIndex(known => known.id === id)
  return typeof said.name === 'string' && said.name !== '' ? -1 : calls.length - 1
}

/** The JSON object of an event. */
export function parsed(data: string): JsonObject {
  let value: unknown
  try {
    value = JSON.parse(data)
  } catch {
    throw new ProviderFailure({ message: 'The provider sent an event that is no JSON.' })
  }
  if (!isObject(value)) throw new ProviderFailure({ message: 'The provider sent an event that is no JSON object.' })
  return value
}
