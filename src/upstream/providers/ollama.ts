import { compatible, without } from '../compatible.js'

/**
 * Ollama through its OpenAI paths, `http://HOST:11434/v1`. It knows only `max_tokens`, takes images as base64 and never by address, has one
 * choice per request, and cuts a prompt that is longer than its `num_ctx` without a word.
 */
export default compatible('ollama', {
  defaults: { usage_stream: 'option', cap: 'max_tokens' },
  chat: { request: without('n', 'tool_choice', 'logit_bias') },
  completions: { request: without('n', 'logit_bias') },
})
