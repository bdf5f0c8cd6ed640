import { compatible } from '../compatible.js'

/** xAI. Its completion_tokens leave reasoning out, its total_tokens do not: `usage: strict` would bill too little. */
export default compatible('xai', {
  baseUrl: 'https://api.x.ai/v1',
  defaults: { usage_stream: 'option', cap: 'max_completion_tokens', usage: 'normal' },
})
