import { absent, checkBoolean, checkInteger, checkModel, invalid, mustBe, unfit } from '../checks.js'
import type { Model } from '../config/config.js'
import { documentTexts } from '../documents.js'
import { isObject, type Json, type JsonObject } from '../json.js'
import { familyOf, partTokens } from '../metering/estimate.js'
import { inputOf } from '../metering/meter.js'
import type { Endpoint } from './endpoint.js'

/** Documents of one request: the most that Cohere takes. */
const DOCUMENTS_MAX = 10_000

/**
 * POST /v1/rerank, and the other paths that clients of rerankers call. Only input is billed: the query and every document. Answers have one
 * shape whatever the provider's: best first, ties in the order of the request, cut to `top_n`, with `usage` and `meta` always there.
 */
const rerank: Endpoint = {
  surface: 'rerank',
  paths: ['/v1/rerank', '/v2/rerank', '/rerank'],
  path: '/rerank',
  idPrefix: 'rerank-',
  fields: new Set(['query', 'documents', 'top_n', 'return_documents']),
  parameters: new Set(['max_tokens_per_doc']),
  unreported: 'counted',
  streams: () => false,

  check(body) {
    checkModel(body)
    if (absent(body.query)) throw invalid('query', 'query is required: a non-empty string.')
    if (typeof body.query !== 'string') throw mustBe('query', 'a string', body.query)
    if (body.query === '') throw invalid('query', 'query must not be empty.')
    checkDocuments(body.documents)
    checkInteger(body, 'top_n', 1)
    checkBoolean(body, 'return_documents')
    checkInteger(body, 'max_tokens_per_doc', 1)
  },

  cap: () => null,

  estimate(body, model, texts) {
    const family = familyOf(model)
    const query = partTokens('query', String(body.query), family, texts)
    const documents = documentTexts(body.documents).map((text, i) => partTokens(`document ${i}`, text, family, texts))
    return { input: counted(query, documents, model.provider.rerank), output: 0 }
  },

  answers(answer) {
    // There is a document at least, and `top_n` is no less than 1.
    return Array.isArray(answer.results) && answer.results.length > 0 && answer.results.every(isResult)
  },

  shape(answer, body, model) {
    const documents = documentTexts(body.documents)
    const results = ranked(answer, documents.length).slice(0, typeof body.top_n === 'number' ? body.top_n : documents.length)
    return {
      ...(typeof answer.id === 'string' ? { id: answer.id } : {}),
      object: 'list',
      model: model.id,
      results: results.map(({ index, relevance_score }) =>
        body.return_documents === true
          ? { index, relevance_score, document: { text: documents[index] as string } }
          : { index, relevance_score },
      ),
      usage: usage(answer, () => rerank.estimate(body, model).input),
      meta: isObject(answer.meta) ? answer.meta : null,
    }
  },
}

export default rerank

interface Result {
  readonly index: number
  readonly relevance_score: number
}

function checkDocuments(documents: Json | undefined): void {
  const what = 'an array of 1 to 10,000 strings or objects with "text"'
  if (absent(documents)) throw invalid('documents', `documents is required: ${what}.`)
  if (!Array.isArray(documents)) throw mustBe('documents', what, documents)
  if (documents.length === 0 || documents.length > DOCUMENTS_MAX) {
    throw invalid('documents', `documents must be ${what}, got ${documents.length} of them.`)
  }
  documents.forEach((document: Json, index) => {
    if (typeof document === 'string') return
    if (!isObject(document)) throw mustBe(`documents[${index}]`, 'a string or an object with "text"', document)
    if (typeof document.text !== 'string') throw mustBe(`documents[${index}].text`, 'a string', document.text)
  })
}

/** Tokens that the provider will count; searches where it bills those. */
function counted(query: number, documents: readonly number[], by: Model['provider']['rerank'] = 'pairs'): number {
  const sum = documents.reduce((total, tokens) => total + tokens, 0)
  if (by === 'query_once') return query + sum
  if (by === 'pairs') return documents.length * query + sum
  // A search is up to 100 documents; what is longer than 510 tokens counts as several.
  const chunks = documents.reduce((total, tokens) => total + Math.max(1, Math.ceil(tokens / 510)), 0)
  return Math.ceil(chunks / 100)
}

function isResult(value: Json | undefined): boolean {
  return isObject(value) && Number.isSafeInteger(value.index) && Number.isFinite(value.relevance_score)
}

/** Best first; sort() is stable, so that equal scores keep the provider's order. */
function ranked(answer: JsonObject, documents: number): Result[] {
  const results = answer.results as unknown as readonly Result[]
  const seen = new Set<number>()
  for (const { index } of results) {
    if (index < 0 || index >= documents) throw unfit(`it ranks document ${index} of ${documents}`)
    if (seen.has(index)) throw unfit(`it ranks document ${index} twice`)
    seen.add(index)
  }
  return [...results].sort((a, b) => b.relevance_score - a.relevance_score)
}

/** What the provider reports, else what was estimated; a reranker generates nothing, so that a total alone is input. */
function usage(answer: JsonObject, estimated: () => number): JsonObject {
  const reported = isObject(answer.usage) ? answer.usage : {}
  const input = inputOf(reported) ?? estimated()
  return { ...reported, prompt_tokens: input, completion_tokens: 0, total_tokens: input }
}
