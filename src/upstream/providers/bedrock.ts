import { compatible } from '../compatible.js'

/**
 * Amazon Bedrock through its OpenAI-compatible endpoint: `base_url` is `https://bedrock-runtime.REGION.amazonaws.com/openai/v1`, `api_key` a
 * Bedrock API key (no request signing is needed with one).
 */
export default compatible('bedrock', {
  defaults: { usage_stream: 'option', cap: 'max_completion_tokens' },
  requestIdHeader: 'x-amzn-requestid',
})
