import { compatible } from '../compatible.js'

/** Groq. Streams carry `x_groq.usage` in their last chunk unasked. */
export default compatible('groq', {
  baseUrl: 'https://api.groq.com/openai/v1',
  defaults: { usage_stream: 'always', cap: 'max_completion_tokens' },
})
