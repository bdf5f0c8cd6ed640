import { isObject, type JsonObject } from '../../json.js'
import { bearer, plainDocuments } from '../compatible.js'
import { inputTexts, inputType, inputTypeOption } from '../embedding.js'
import { readFailure } from '../failure.js'
import { chatAnswer } from './cohere/answer.js'
import { chatRequest } from './cohere/request.js'
import { chatEvents } from './cohere/stream.js'
import type { Call, Provider } from './provider.js'

/**
 * Cohere's own wire, version 2: chat (streams, tools, thinking), rerank, embeddings. Chat and embeddings are billed by `billed_units`. Rerank
 * is billed by searches, of which the answer tells: by default its tokens are counted by the gateway, the query once; with `rerank: units`
 * of the provider the searches take their place. Embedded texts are documents to be searched unless the request or the model says otherwise.
 */
const cohere: Provider = {
  kind: 'cohere',
  baseUrl: 'https://api.cohere.com/v2',
  defaults: { usage_stream: 'always', cap: 'max_tokens', rerank: 'query_once' },
  wires: {
    chat: { path: () => '/chat', request: chatRequest, response: chatAnswer, events: chatEvents },
    rerank: {
      path: () => '/rerank',
      request({ body }) {
        const { model, query, documents, top_n, max_tokens_per_doc } = plainDocuments(body)
        return {
          model,
          query,
          documents,
          ...(top_n === undefined ? {} : { top_n }),
          ...(max_tokens_per_doc === undefined ? {} : { max_tokens_per_doc }),
        }
      },
      response: rerankAnswer,
    },
    embeddings: {
      path: () => '/embed',
      request(call) {
        const { model, dimensions } = call.body
        return {
          model,
          texts: inputTexts(call),
          input_type: inputType(call, { query: 'search_query', document: 'search_document' }) ?? 'search_document',
          embedding_types: ['float'],
          ...(dimensions === undefined ? {} : { output_dimension: dimensions }),
        }
      },
      response: embeddingsAnswer,
    },
  },
  authorize: bearer,
  failure(status, body) {
    const failure = readFailure(status, body)
    if (status === 498) return { ...failure, status: 401 }
    return status === 499 ? { ...failure, status: 502 } : failure
  },
  modelOptions: inputTypeOption,
}

export default cohere

function rerankAnswer(body: unknown, call: Call): JsonObject {
  if (!isObject(body)) throw new TypeError('The answer is no object.')
  const searches = isObject(body.meta) && isObject(body.meta.billed_units) ? body.meta.billed_units.search_units : undefined
  if (call.model.provider.rerank !== 'units' || searches === undefined) return body
  return { ...body, usage: { prompt_tokens: searches, total_tokens: searches } }
}

function embeddingsAnswer(body: unknown): JsonObject {
  const vectors = isObject(body) && isObject(body.embeddings) ? body.embeddings.float : undefined
  if (!isObject(body) || !Array.isArray(vectors)) throw new TypeError('The answer has no embeddings.float.')
  const billed = isObject(body.meta) && isObject(body.meta.billed_units) ? body.meta.billed_units : {}
  const input = typeof billed.input_tokens === 'number' ? billed.input_tokens : undefined
  return {
    object: 'list',
    data: vectors.map((embedding, index) => ({ object: 'embedding', index, embedding })),
    ...(input === undefined ? {} : { usage: { prompt_tokens: input, total_tokens: input } }),
  }
}
