import { documentTexts } from '../../documents.js'
import { isObject, type Json } from '../../json.js'
import { bearer, only } from '../compatible.js'
import { readFailure } from '../failure.js'
import type { HeaderFields, Provider } from './provider.js'

/**
 * Text Embeddings Inference, `http://HOST:PORT` without a version: rerank in its own words, embeddings through its OpenAI path. One server
 * has one model. A reranker counts every pair of query and document. `options.truncate` of a model: texts that are too long are cut, where
 * they are refused otherwise.
 */
const tei: Provider = {
  kind: 'tei',
  defaults: { rerank: 'pairs' },
  wires: {
    rerank: {
      path: () => '/rerank',
      request({ body, model }) {
        return { query: body.query, texts: documentTexts(body.documents), ...(model.options.truncate === true ? { truncate: true } : {}) }
      },
      response(body, _call, headers) {
        if (!Array.isArray(body)) throw new TypeError('The answer is no array.')
        const tokens = computed(headers)
        return {
          results: body.map((item: Json) => (isObject(item) ? { index: item.index, relevance_score: item.score } : item)),
          ...(tokens === undefined ? {} : { usage: { prompt_tokens: tokens, total_tokens: tokens } }),
        }
      },
    },
    embeddings: {
      path: () => '/v1/embeddings',
      request: ({ body }) => only('model', 'input', 'dimensions', 'user')(body),
    },
  },
  authorize: bearer,
  failure(status, body) {
    const failure = readFailure(status, body)
    // 424: the model behind it failed, not the request.
    return status === 424 ? { ...failure, status: 502 } : failure
  },
  modelOptions: {
    type: 'object',
    additionalProperties: false,
    properties: {
      truncate: { type: 'boolean', description: 'Cut texts that are longer than the model takes. Default: false, they are refused.' },
    },
  },
}

export default tei

function computed(headers: HeaderFields): number | undefined {
  const text = headers['x-compute-tokens'] ?? ''
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined
}
