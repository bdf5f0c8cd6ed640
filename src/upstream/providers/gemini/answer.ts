import { isObject, type Json, type JsonObject } from '../../../json.js'
import {
  type AnsweredCall,
  type Choice,
  completion,
  counts,
  type FinishReason,
  jsonText,
  noAnswer,
  type Reported,
  reported,
} from '../../chat/answer.js'
import { googleFailure } from '../../google-failure.js'
import type { Call } from '../provider.js'

/** A whole `GenerateContentResponse` as a chat completion. */
export function completionsOf(body: unknown, call: Call): JsonObject {
  if (isError(body)) throw reported(googleFailure(200, body), call)
  const candidates = isObject(body) ? candidatesOf(body) : []
  if (!isObject(body) || candidates.length === 0) throw noAnswer('The provider answered without any candidate.')
  const ids = callIds(call)
  const choices = new Map(candidates.map(candidate => [candidate.index, choiceOf(candidate, ids)]))
  const generated = candidates.some(candidate => candidate.parts.length > 0)
  return completion(call, answerId(body, call), choices, reportedUsage(body.usageMetadata, generated))
}

/** An error in the place of an answer: an object, or a list that begins with one. */
export function isError(body: unknown): boolean {
  const first = Array.isArray(body) ? body[0] : body
  return isObject(first) && first.error !== undefined
}

export interface Candidate {
  readonly index: number
  readonly parts: readonly AnsweredPart[]
  readonly finishReason: string | null
  readonly logprobs: Json
}

export type AnsweredPart =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'thought'; readonly text: string }
  | { readonly kind: 'call'; readonly id: string | null; readonly name: string; readonly arguments: string; readonly extra: JsonObject }

/** The candidates of an answer or of one event. A prompt that was refused is one candidate that says nothing. */
export function candidatesOf(body: JsonObject): Candidate[] {
  const candidates = list(body.candidates)
  const blocked = isObject(body.promptFeedback) && typeof body.promptFeedback.blockReason === 'string'
  if (candidates.length === 0 && blocked) return [{ index: 0, parts: [], finishReason: BLOCKED, logprobs: null }]
  return candidates.filter(isObject).map(candidate => ({
    index: typeof candidate.index === 'number' ? candidate.index : 0,
    parts: isObject(candidate.content) ? list(candidate.content.parts).flatMap(partOf) : [],
    finishReason: typeof candidate.finishReason === 'string' && candidate.finishReason !== UNFINISHED ? candidate.finishReason : null,
    logprobs: logprobsOf(candidate.logprobsResult),
  }))
}

/** Ids for calls that the provider gave none: unique within the conversation, since the request's id is in them. */
export function callIds(call: Call): () => string {
  let count = 0
  return () => `call_${call.id}_${count++}`
}

export function answerId(body: JsonObject, call: Call): string {
  return typeof body.responseId === 'string' && body.responseId !== '' ? body.responseId : call.id
}

const BLOCKED = 'SAFETY'
const UNFINISHED = 'FINISH_REASON_UNSPECIFIED'
const FILTERED = /^(SAFETY|RECITATION|BLOCKLIST|PROHIBITED_CONTENT|SPII|LANGUAGE|IMAGE_.+)$/

/** Why a candidate ended, in the client's words, and in the provider's own where those are no answer to it. */
export function finishOf(reason: string | null, called: boolean): { readonly finish: FinishReason; readonly extra: JsonObject } {
  if (reason === 'STOP' || reason === null) return { finish: called ? 'tool_calls' : 'stop', extra: {} }
  if (reason === 'MAX_TOKENS' || reason === 'CONTINUATION') return { finish: 'length', extra: {} }
  if (FILTERED.test(reason)) return { finish: 'content_filter', extra: {} }
  return { finish: 'stop', extra: { native_finish_reason: reason } }
}

/**
 * Thoughts are counted apart from the answer, and belong to the output. `null` where nothing is reported, or not yet anything of an output
 * that is there: the first events of a stream know only the prompt.
 */
export function reportedUsage(metadata: Json | undefined, generated: boolean): Reported | null {
  if (!isObject(metadata)) return null
  const read = counts(metadata, [
    'promptTokenCount',
    'toolUsePromptTokenCount',
    'candidatesTokenCount',
    'thoughtsTokenCount',
    'cachedContentTokenCount',
    'totalTokenCount',
  ])
  if (read === null) return null
  const input = read.promptTokenCount + read.toolUsePromptTokenCount
  const output = read.candidatesTokenCount + read.thoughtsTokenCount
  if (generated && output === 0 && read.totalTokenCount <= input) return null
  return { input, output, total: read.totalTokenCount, cached: read.cachedContentTokenCount, reasoning: read.thoughtsTokenCount }
}

function choiceOf({ parts, finishReason, logprobs }: Candidate, ids: () => string): Choice {
  const joined = (kind: 'text' | 'thought') => parts.map(part => (part.kind === kind ? part.text : '')).join('')
  const calls: AnsweredCall[] = parts.filter(part => part.kind === 'call').map(({ id, ...call }) => ({ ...call, id: id ?? ids() }))
  const text = joined('text')
  return { text: text === '' ? null : text, reasoning: joined('thought'), calls, logprobs, ...finishOf(finishReason, calls.length > 0) }
}

function partOf(part: Json): AnsweredPart[] {
  if (!isObject(part)) return []
  if (isObject(part.functionCall)) {
    const { id, name, args } = part.functionCall
    const signature = part.thoughtSignature
    return [
      {
        kind: 'call',
        id: typeof id === 'string' && id !== '' ? id : null,
        name: typeof name === 'string' ? name : '',
        arguments: jsonText(args ?? {}),
        extra: typeof signature === 'string' ? { extra_content: { google: { thought_signature: signature } } } : {},
      },
    ]
  }
  return typeof part.text === 'string' && part.text !== '' ? [{ kind: part.thought === true ? 'thought' : 'text', text: part.text }] : []
}

function logprobsOf(result: Json | undefined): Json {
  if (!isObject(result) || !Array.isArray(result.chosenCandidates)) return null
  const top = list(result.topCandidates)
  return {
    content: (result.chosenCandidates as readonly Json[]).map((chosen, position) => {
      const others = top[position]
      return { ...logprobOf(chosen), top_logprobs: isObject(others) ? list(others.candidates).map(logprobOf) : [] }
    }),
    refusal: null,
  }
}

function logprobOf(candidate: Json): JsonObject {
  const { token, logProbability } = isObject(candidate) ? candidate : {}
  const text = typeof token === 'string' ? token : ''
  return { token: text, logprob: typeof logProbability === 'number' ? logProbability : 0, bytes: [...Buffer.from(text)] }
}

function list(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : []
}
