import { completionsOf } from './anthropic/answer.js'
import { failureOf } from './anthropic/failure.js'
import { messagesRequest, VERSION } from './anthropic/request.js'
import { messageEvents } from './anthropic/stream.js'
import type { Provider } from './provider.js'

/**
 * Anthropic's Messages API.
 *
 *     providers:
 *       anthropic: {kind: anthropic, api_key: ${ANTHROPIC_API_KEY}}
 *     models:
 *       anthropic/claude-sonnet-5: {price: {usd: …}, max_output_tokens: 64000}
 *
 * What has no place in it is dropped (`n`, `seed`, penalties, `logit_bias`, `logprobs`) or, where an answer would not be one to what was
 * asked, refused with 400: audio, ids of files, tools that are no functions. `temperature` above 1 becomes 1.
 */
const anthropic: Provider = {
  kind: 'anthropic',
  baseUrl: 'https://api.anthropic.com/v1',
  defaults: { usage_stream: 'always', cap: 'max_tokens' },
  wires: {
    chat: { path: () => '/messages', request: messagesRequest, response: completionsOf, events: messageEvents },
  },
  authorize: (apiKey, settings) => ({
    ...(apiKey === null ? {} : { 'x-api-key': apiKey }),
    'anthropic-version': typeof settings.options.version === 'string' ? settings.options.version : VERSION,
  }),
  failure: failureOf,
  requestIdHeader: 'request-id',
  options: {
    type: 'object',
    additionalProperties: false,
    properties: {
      version: {
        type: 'string',
        pattern: '^\\d{4}-\\d{2}-\\d{2}$',
        description: `The header anthropic-version; default ${VERSION}. With 2026-10-21 or a later one, temperature, top_p and top_k are not sent.`,
      },
    },
  },
}

export default anthropic
