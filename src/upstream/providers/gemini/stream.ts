import { isObject, type Json, type JsonObject } from '../../../json.js'
import { cutShort, eventJson, noAnswer, reported, usageOf } from '../../chat/answer.js'
import { Chunks } from '../../chat/chunks.js'

import { CHOICES_MAX } from '../../chunks.js'
import { googleFailure } from '../../google-failure.js'

import type { Call, EventTranslator, SseEvent } from '../provider.js'
import { answerId, type Candidate, callIds, candidatesOf, finishOf, isError, reportedUsage } from './answer.js'

/** Translates the events of `streamGenerateContent?alt=sse`. The stream has no mark of its end: the body ends. */
export function generateEvents(call: Call): EventTranslator {
  return new GenerateStream(call)
}

class GenerateStream implements EventTranslator {
  readonly #call: Call
  readonly #chunks: Chunks
  readonly #newCallId: () => string
  /** By choice; some models repeat theirs in every event, so that only the last one is told, when the stream has ended. */
  readonly #finishReasons = new Map<number, string | null>()
  #usage: Json | undefined

  constructor(call: Call) {
    this.#call = call
    this.#chunks = new Chunks(call)
    this.#newCallId = callIds(call)
  }

  event({ data }: SseEvent): readonly JsonObject[] {
    if (data === '' || data === '[DONE]') return []
    const event = eventJson(data)
    if (isError(event)) throw reported(googleFailure(200, event), this.#call)
    if (!isObject(event)) throw noAnswer('The provider sent an event that is no JSON object.')
    this.#chunks.name(answerId(event, this.#call))
    if (isObject(event.usageMetadata)) this.#usage = event.usageMetadata
    for (const candidate of candidatesOf(event)) this.#candidate(candidate)
    return this.#chunks.take()
  }

  end(): readonly JsonObject[] {
    const reasons = [...this.#finishReasons]
    if (reasons.length === 0 || reasons.some(([, reason]) => reason === null)) throw cutShort()
    const generated = this.#chunks.begun
    for (const [index, reason] of reasons) {
      const { finish, extra } = finishOf(reason, this.#chunks.calls(index) > 0)
      this.#chunks.finish(index, finish, extra)
    }
    const usage = reportedUsage(this.#usage, generated)
    if (usage !== null) this.#chunks.usage(usage)
    return this.#chunks.take()
  }

  /** What was generated is counted where the figures leave it out: they come before it. */
  reported(): JsonObject | null {
    const told = isObject(this.#usage) && typeof this.#usage.promptTokenCount === 'number'
    const usage = told ? reportedUsage(this.#usage, false) : null
    return usage === null ? null : usageOf(usage)
  }

  #candidate({ index, parts, finishReason, logprobs }: Candidate): void {
    if (index < 0 || index >= CHOICES_MAX) throw noAnswer('The provider sent a candidate that nobody asked for.')
    this.#finishReasons.set(index, finishReason ?? this.#finishReasons.get(index) ?? null)
    let untold = logprobs
    for (const part of parts) {
      if (part.kind === 'thought') this.#chunks.reasoning(index, part.text)
      else if (part.kind === 'text') {
        this.#chunks.text(index, part.text, untold)
        untold = null
      } else {
        const { id, name, arguments: args, extra } = part
        this.#chunks.tool(index, { id: id ?? this.#newCallId(), name, arguments: args, extra })
      }
    }
  }
}
