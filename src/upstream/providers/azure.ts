import { bearer, compatible, textOption } from '../compatible.js'

/**
 * Azure OpenAI. `base_url` is `https://RESOURCE.openai.azure.com/openai/v1`, a model's `upstream` its deployment. With `options.api_version`
 * the older paths are called, and `base_url` ends in `/openai`. `options.auth: bearer` sends the key as an Entra token.
 */
export default compatible('azure', {
  defaults: { usage_stream: 'option', cap: 'max_completion_tokens' },
  authorize(apiKey, settings) {
    if (textOption(settings, 'auth') === 'bearer') return bearer(apiKey)
    return apiKey === null ? {} : { 'api-key': apiKey }
  },
  path(segment, call) {
    const version = textOption(call.model.provider, 'api_version')
    if (version === undefined) return segment
    return `/deployments/${encodeURIComponent(call.model.upstream)}${segment}?api-version=${encodeURIComponent(version)}`
  },
  options: {
    type: 'object',
    additionalProperties: false,
    properties: {
      api_version: { type: 'string', description: 'Calls the older paths, /deployments/<upstream>/…?api-version=<this>.' },
      auth: { enum: ['api-key', 'bearer'], description: 'How the key is sent. Default: api-key.' },
    },
  },
})
