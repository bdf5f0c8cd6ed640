import { compatible } from '../compatible.js'

/** DeepSeek. */
export default compatible('deepseek', {
  baseUrl: 'https://api.deepseek.com',
  defaults: { usage_stream: 'option', cap: 'max_tokens' },
})
