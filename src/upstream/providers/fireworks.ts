import { compatible } from '../compatible.js'

/** Fireworks. Streams carry usage in their last chunk unasked. */
export default compatible('fireworks', {
  baseUrl: 'https://api.fireworks.ai/inference/v1',
  defaults: { usage_stream: 'always', cap: 'max_tokens' },
})
