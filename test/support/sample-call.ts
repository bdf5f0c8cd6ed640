import type { Model, ProviderSettings } from '../../src/config/config.js'
import type { Surface } from '../../src/endpoints/endpoint.js'
import type { JsonObject } from '../../src/json.js'
import type { Call } from '../../src/upstream/providers/provider.js'

export function sampleModel(given: Partial<Model> = {}, settings: Partial<ProviderSettings> = {}): Model {
  return {
    id: 'acme/model-1',
    provider: {
      name: 'acme',
      kind: 'openai',
      base_url: 'https://acme.example/v1',
      api_key: 'k',
      timeout: { connect: 1, first_byte: 1, idle: 1, total: 1 },
      max_connections: 1,
      keep_connections: 'key',
      queue: 0,
      queue_timeout: 1000,
      retry_unknown: false,
      health: null,
      usage_stream: 'option',
      cap: 'max_tokens',
      on_disconnect: 'abort',
      usage: 'normal',
      options: {},
      ...settings,
    },
    upstream: 'model-1',
    price: null,
    max_output_tokens: 4096,
    default_max_tokens: 512,
    context: null,
    parameters: null,
    surfaces: null,
    attempts: 3,
    fallback: [],
    created: 0,
    options: {},
    ...given,
  }
}

export function sampleCall(surface: Surface, body: JsonObject, model: Model = sampleModel()): Call {
  return {
    id: '01K9ZB3J6Q0V8N7T5R4W2Y1XCD',
    created: 1741569952,
    surface,
    model,
    body: { model: model.upstream, ...body },
    stream: body.stream === true,
  }
}
