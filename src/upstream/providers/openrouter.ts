import { compatible } from '../compatible.js'

/** OpenRouter. Streams carry usage in their last chunk unasked; 402 is about the operator's credits. */
export default compatible('openrouter', {
  baseUrl: 'https://openrouter.ai/api/v1',
  defaults: { usage_stream: 'always', cap: 'max_tokens' },
})
