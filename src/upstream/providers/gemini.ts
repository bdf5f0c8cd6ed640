import { googleFailure } from '../google-failure.js'
import { completionsOf } from './gemini/answer.js'
import { embeddingsOf, embeddingsRequest } from './gemini/embeddings.js'
import { generateRequest } from './gemini/request.js'
import { generateEvents } from './gemini/stream.js'
import type { Call, Provider } from './provider.js'

/**
 * Gemini's own API (`generateContent`), which tells more than its OpenAI-compatible one: thoughts, cached tokens, why it was silent.
 *
 *     providers:
 *       gemini: {kind: gemini, api_key: ${GEMINI_API_KEY}}
 *     models:
 *       gemini/gemini-3-flash: {price: {usd: …}, max_output_tokens: 65536}
 *
 * Thought signatures travel in `tool_calls[].extra_content.google.thought_signature`, both ways. Schemas of tools and answers are rewritten
 * into the subset that the API reads.
 */
const gemini: Provider = {
  kind: 'gemini',
  baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
  defaults: { usage_stream: 'always', cap: 'max_tokens' },
  wires: {
    chat: {
      // Without alt=sse a stream is one JSON array.
      path: call => method(call, call.stream ? 'streamGenerateContent?alt=sse' : 'generateContent'),
      request: generateRequest,
      response: completionsOf,
      events: generateEvents,
    },
    embeddings: { path: call => method(call, 'batchEmbedContents'), request: embeddingsRequest, response: embeddingsOf },
  },
  authorize: apiKey => (apiKey === null ? {} : { 'x-goog-api-key': apiKey }),
  failure: googleFailure,
  modelOptions: {
    type: 'object',
    additionalProperties: false,
    properties: {
      thinking: {
        type: 'string',
        enum: ['level', 'budget'],
        description:
          'How the model takes reasoning_effort: as a level (Gemini 3 and later), or as a budget of tokens (2.5). Default: by its name.',
      },
      include_thoughts: { type: 'boolean', description: 'Ask for summaries of its thoughts; they come as reasoning_content.' },
    },
  },
}

export default gemini

function method(call: Call, name: string): string {
  const { upstream } = call.model
  const resource = upstream.includes('/') ? upstream : `models/${upstream}`
  return `/${resource.split('/').map(encodeURIComponent).join('/')}:${name}`
}
