import { compatible } from '../compatible.js'

/** llama-server of llama.cpp, `http://HOST:8080/v1`. `n` is at most its parallel slots; a reranker counts every pair of query and document. */
export default compatible('llamacpp', {
  defaults: { usage_stream: 'option', cap: 'max_tokens', rerank: 'pairs' },
})
