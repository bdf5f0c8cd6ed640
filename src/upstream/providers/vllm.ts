import { compatible } from '../compatible.js'

/** vLLM's own server, `http://HOST:8000/v1`. A reranker counts every pair of query and document. */
export default compatible('vllm', {
  defaults: { usage_stream: 'option', cap: 'max_tokens', rerank: 'pairs' },
})
