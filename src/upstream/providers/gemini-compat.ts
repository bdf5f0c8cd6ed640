import { changedChunks, compatible } from '../compatible.js'

/**
 * Gemini through its OpenAI-compatible endpoint. Its streams report usage beside choices, and leave out the index of tool calls. The
 * `extra_content.google.thought_signature` of a call passes both ways: Gemini refuses the next turn without it.
 */
export default compatible('gemini-compat', {
  baseUrl: 'https://generativelanguage.googleapis.com/v1beta/openai',
  defaults: { usage_stream: 'option', cap: 'max_tokens' },
  chat: { events: () => changedChunks() },
})
