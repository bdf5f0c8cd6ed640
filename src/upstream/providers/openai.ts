import { compatible, renamed } from '../compatible.js'

/**
 * OpenAI, and any server that speaks its wire (set `base_url`). Models of the o series and gpt-5 upwards refuse `max_tokens`, so that they
 * are sent `max_completion_tokens` whatever `cap` says; older models, and other servers, get what `cap` says.
 */
export default compatible('openai', {
  baseUrl: 'https://api.openai.com/v1',
  defaults: { usage_stream: 'option', cap: 'max_tokens' },
  chat: {
    request: (body, call) => (NEWER.test(call.model.upstream) ? toNewSpelling(body) : body),
  },
})

const NEWER = /^(?:ft:)?(?:o\d|gpt-(?:[5-9]|\d\d))/
const toNewSpelling = renamed({ max_tokens: 'max_completion_tokens' })
