import type { ProviderSettings } from '../config/config.js'
import { documentTexts } from '../documents.js'
import type { Surface } from '../endpoints/endpoint.js'
import { isObject, type Json, type JsonObject } from '../json.js'
import { usageOf } from '../metering/meter.js'
import { eventObject } from './chat/answer.js'
import { readFailure } from './failure.js'
import { type Call, type EventTranslator, type HeaderFields, type Provider, ProviderFailure, type Wire } from './providers/provider.js'

type Reading = NonNullable<Provider['failure']>

/** What is peculiar to one OpenAI-compatible server. What is absent is as with OpenAI. */
export interface Facts {
  /** Absent: the config has to say where it is. */
  readonly baseUrl?: string
  readonly defaults?: NonNullable<Provider['defaults']>
  readonly authorize?: Provider['authorize']
  readonly failure?: Reading
  readonly requestIdHeader?: string
  readonly options?: JsonObject
  /** What follows `base_url`, made of the surface's own segment. */
  path?(segment: string, call: Call): string
  /** Changes to the wires of single surfaces; each gets the request after the changes that all servers need. */
  readonly chat?: Change
  readonly completions?: Change
  readonly embeddings?: Change
}

export interface Change {
  readonly request?: (body: JsonObject, call: Call) => JsonObject
  readonly response?: NonNullable<Wire['response']>
  readonly events?: NonNullable<Wire['events']>
}

/** The path segment that each surface has at OpenAI, and at the servers that imitate it. */
const PATHS: { readonly [S in Surface]: string } = {
  chat: '/chat/completions',
  completions: '/completions',
  embeddings: '/embeddings',
  moderations: '/moderations',
  rerank: '/rerank',
}

/**
 * A provider that speaks OpenAI's wire: the bytes of its answers pass as they are. It has every surface; which of them a model really has
 * is the model's `surfaces`.
 */
export function compatible(kind: string, facts: Facts = {}): Provider {
  return {
    kind,
    ...(facts.baseUrl === undefined ? {} : { baseUrl: facts.baseUrl }),
    ...(facts.defaults === undefined ? {} : { defaults: facts.defaults }),
    ...(facts.failure === undefined ? {} : { failure: facts.failure }),
    ...(facts.requestIdHeader === undefined ? {} : { requestIdHeader: facts.requestIdHeader }),
    ...(facts.options === undefined ? {} : { options: facts.options }),
    authorize: facts.authorize ?? bearer,
    wires: {
      chat: wire('chat', facts, facts.chat),
      completions: wire('completions', facts, facts.completions, renamed({ max_completion_tokens: 'max_tokens' })),
      // `input_type` is the word of other providers; OpenAI refuses what it does not know.
      embeddings: wire('embeddings', facts, facts.embeddings, without('input_type')),
      moderations: wire('moderations', facts),
      rerank: { ...wire('rerank', facts, { request: plainDocuments }), response: rerankAnswer },
    },
  }
}

/** `Authorization: Bearer <key>`; nothing where there is no key. */
export function bearer(apiKey: string | null): HeaderFields {
  return apiKey === null ? {} : { authorization: `Bearer ${apiKey}` }
}

/** A change of the request that leaves fields out. */
export function without(...names: readonly string[]): (body: JsonObject) => JsonObject {
  const dropped = new Set(names)
  return body => (names.some(name => name in body) ? fromPairs(pairs(body).filter(([name]) => !dropped.has(name))) : body)
}

/** A change of the request that keeps only the named fields, for servers that refuse what they do not know. */
export function only(...names: readonly string[]): (body: JsonObject) => JsonObject {
  const kept = new Set(names)
  return body => fromPairs(pairs(body).filter(([name]) => kept.has(name)))
}

/** A change of the request that calls fields by another name. A field that already has that name stays. */
export function renamed(names: Readonly<Record<string, string>>): (body: JsonObject) => JsonObject {
  return body => {
    const moved = pairs(body).flatMap(([name, value]): [string, JsonObject[string]][] => {
      const other = Object.hasOwn(names, name) ? (names[name] as string) : name
      return other !== name && other in body ? [] : [[other, value]]
    })
    return fromPairs(moved)
  }
}

/**
 * The stream of a server that speaks OpenAI's wire in its own way: `change` is given each chunk, and usage, which such servers tell beside
 * choices as it grows, comes once and last, in a chunk of its own; `finish_reason` is always there. What else such servers break is mended
 * in all streams alike. `failure` reads the errors among them.
 */
export function changedChunks(change: (chunk: JsonObject) => JsonObject = chunk => chunk, failure: Reading = readFailure): EventTranslator {
  let last: JsonObject | null = null
  return {
    event({ data }) {
      const chunk = change(eventObject(data))
      if (chunk.error !== undefined && chunk.error !== null) throw new ProviderFailure(failure(200, chunk))
      const { choices, usage, ...rest } = chunk
      // One that can not be displaces none.
      if (isObject(usage) && (last === null || usageOf(usage, { strict: false }) !== null)) last = { ...rest, choices: [], usage }
      if (!Array.isArray(choices) || choices.length === 0) return isObject(usage) ? [] : [chunk]
      return [{ ...rest, choices: choices.map((choice: Json) => (isObject(choice) ? { finish_reason: null, ...choice } : choice)) }]
    },
    end: () => (last === null ? [] : [last]),
    reported: () => (isObject(last?.usage) ? last.usage : null),
  }
}

type RequestChange = NonNullable<Change['request']>

function wire(surface: Surface, facts: Facts, change: Change = {}, common?: RequestChange): Wire {
  const changes = [common, change.request].filter(each => each !== undefined)
  return {
    path: call => facts.path?.(PATHS[surface], call) ?? PATHS[surface],
    ...(changes.length === 0 ? {} : { request: (call: Call) => changes.reduce((body, each) => each(body, call), call.body) }),
    ...(change.response === undefined ? {} : { response: change.response }),
    ...(change.events === undefined ? {} : { events: change.events }),
  }
}

/** A rerank request with its documents as strings, which is all that most servers take; what is to come back of the documents is taken from the request. */
export function plainDocuments(body: JsonObject): JsonObject {
  return { ...without('return_documents')(body), documents: documentTexts(body.documents) }
}

/** A rerank answer whose usage names its input: a total alone would be taken for output, of which a reranker has none. */
export function rerankAnswer(body: unknown): JsonObject {
  if (!isObject(body)) throw new TypeError('The answer is no object.')
  const { usage } = body
  if (!isObject(usage) || usage.prompt_tokens !== undefined || usage.total_tokens === undefined) return body
  return { ...body, usage: { ...usage, prompt_tokens: usage.total_tokens } }
}

function pairs(body: JsonObject): [string, JsonObject[string]][] {
  return Object.entries(body)
}

function fromPairs(entries: readonly (readonly [string, JsonObject[string]])[]): JsonObject {
  return Object.fromEntries(entries)
}

/** `settings.options.<name>` where it is a string. */
export function textOption(settings: ProviderSettings, name: string): string | undefined {
  const value = settings.options[name]
  return typeof value === 'string' ? value : undefined
}
