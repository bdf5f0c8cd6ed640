import { compatible } from '../compatible.js'

/** LM Studio's server, `http://HOST:1234/v1`. */
export default compatible('lmstudio', {
  defaults: { usage_stream: 'option', cap: 'max_tokens' },
})
