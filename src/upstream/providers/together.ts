import { compatible } from '../compatible.js'
import { readFailure } from '../failure.js'

/** Together. It answers 403 to a prompt that is too long: the client's affair, not that of the key. */
export default compatible('together', {
  baseUrl: 'https://api.together.xyz/v1',
  defaults: { usage_stream: 'option', cap: 'max_tokens' },
  failure(status, body) {
    const failure = readFailure(status, body)
    const tooLong = status === 403 && /\b(?:tokens?|context|too long)\b/i.test(failure.message ?? '')
    return tooLong ? { ...failure, status: 400, code: 'context_length_exceeded' } : failure
  },
})
