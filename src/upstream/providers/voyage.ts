import { isObject, type JsonObject } from '../../json.js'
import { bearer, plainDocuments, rerankAnswer } from '../compatible.js'
import { inputTexts, inputType, inputTypeOption } from '../embedding.js'
import type { Provider } from './provider.js'

/** Voyage: rerank (`top_k`, results in `data`) and embeddings. Its usage is a total, all of it input; a reranker counts every pair. */
const voyage: Provider = {
  kind: 'voyage',
  baseUrl: 'https://api.voyageai.com/v1',
  defaults: { rerank: 'pairs' },
  wires: {
    rerank: {
      path: () => '/rerank',
      request({ body }) {
        const { model, query, documents, top_n } = plainDocuments(body)
        return { model, query, documents, ...(top_n === undefined ? {} : { top_k: top_n }) }
      },
      response(body) {
        const { data, ...rest } = rerankAnswer(body)
        return { ...rest, results: data }
      },
    },
    embeddings: {
      path: () => '/embeddings',
      request(call) {
        const { model, dimensions } = call.body
        const type = inputType(call, { query: 'query', document: 'document' })
        return {
          model,
          input: inputTexts(call),
          ...(type === undefined ? {} : { input_type: type }),
          ...(dimensions === undefined ? {} : { output_dimension: dimensions }),
        }
      },
      response(body) {
        if (!isObject(body)) throw new TypeError('The answer is no object.')
        return isObject(body.usage) ? { ...body, usage: asInput(body.usage) } : body
      },
    },
  },
  authorize: bearer,
  modelOptions: inputTypeOption,
}

export default voyage

function asInput(usage: JsonObject): JsonObject {
  return usage.prompt_tokens === undefined && usage.total_tokens !== undefined ? { ...usage, prompt_tokens: usage.total_tokens } : usage
}
