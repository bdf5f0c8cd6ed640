import { changedChunks, compatible } from '../compatible.js'
import { googleFailure } from '../google-failure.js'

/**
 * Gemini through its OpenAI-compatible endpoint. Its streams report usage beside choices, and leave out the index of tool calls. The
 * `extra_content.google.thought_signature` of a call passes both ways: Gemini refuses the next turn without it. Its
 * refusals are those of its own API: a bad key is a bad argument there, and the wait is in the body.
 */
export default compatible('gemini-compat', {
  baseUrl: 'https://generativelanguage.googleapis.com/v1beta/openai',
  defaults: { usage_stream: 'option', cap: 'max_tokens' },
  failure: googleFailure,
  chat: { events: () => changedChunks(chunk => chunk, googleFailure) },
})
