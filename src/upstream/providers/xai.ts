import { compatible } from '../compatible.js'
import { readFailure } from '../failure.js'

/**
 * xAI. Its completion_tokens leave reasoning out, its total_tokens do not: `usage: strict` would bill too little. It answers 400 to a bad
 * key, in words that show a part of it: the operator's affair, not the client's.
 */
export default compatible('xai', {
  baseUrl: 'https://api.x.ai/v1',
  defaults: { usage_stream: 'option', cap: 'max_completion_tokens', usage: 'normal' },
  failure(status, body) {
    const failure = readFailure(status, body)
    return /\bincorrect api key\b/i.test(failure.message ?? '') ? { ...failure, status: 401 } : failure
  },
})
