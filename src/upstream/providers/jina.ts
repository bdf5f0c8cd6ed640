import { bearer, plainDocuments, rerankAnswer } from '../compatible.js'
import { inputTexts, inputType, inputTypeOption } from '../embedding.js'
import type { Provider } from './provider.js'

/** Jina: rerank and embeddings. What embedded texts are for is called `task`. */
const jina: Provider = {
  kind: 'jina',
  baseUrl: 'https://api.jina.ai/v1',
  wires: {
    rerank: {
      path: () => '/rerank',
      request({ body }) {
        const { model, query, documents, top_n } = plainDocuments(body)
        // It sends the documents back unless it is told not to.
        return { model, query, documents, ...(top_n === undefined ? {} : { top_n }), return_documents: false }
      },
      response: rerankAnswer,
    },
    embeddings: {
      path: () => '/embeddings',
      request(call) {
        const { model, dimensions } = call.body
        const task = inputType(call, { query: 'retrieval.query', document: 'retrieval.passage' })
        return {
          model,
          input: inputTexts(call),
          ...(task === undefined ? {} : { task }),
          ...(dimensions === undefined ? {} : { dimensions }),
        }
      },
    },
  },
  authorize: bearer,
  modelOptions: inputTypeOption,
}

export default jina
