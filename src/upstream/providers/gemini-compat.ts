import { compatible } from '../compatible.js'
import { tidied } from '../tidy.js'

/**
 * Gemini through its OpenAI-compatible endpoint. Its streams leave out the index of tool calls, which clients need. The
 * `extra_content.google.thought_signature` of a call passes both ways: Gemini refuses the next turn without it.
 */
export default compatible('gemini-compat', {
  baseUrl: 'https://generativelanguage.googleapis.com/v1beta/openai',
  defaults: { usage_stream: 'option', cap: 'max_tokens' },
  chat: { events: call => tidied(call) },
})
