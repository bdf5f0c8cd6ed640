import type { Model, ProviderSettings } from '../../src/config/config.js'
import type { JsonObject } from '../../src/json.js'
import type { Call } from '../../src/upstream/providers/provider.js'

/** Credentials of every provider here: they must appear in no message. */
export const API_KEY = 'sk-ant-test'

/** A provider as the config would give it. */
export function settingsOf(kind: string, overrides: Partial<ProviderSettings> = {}): ProviderSettings {
  return {
    name: kind,
    kind,
    base_url: 'http://127.0.0.1:1',
    api_key: API_KEY,
    timeout: { connect: 60_000, first_byte: 60_000, idle: 60_000, total: 60_000 },
    max_connections: 1,
    keep_connections: 'key',
    queue: 0,
    queue_timeout: 60_000,
    retry_unknown: false,
    health: null,
    usage_stream: 'always',
    cap: 'max_tokens',
    on_disconnect: 'abort',
    usage: 'normal',
    options: {},
    ...overrides,
  }
}

/** A call of `<kind>/<upstream>`, with the request's id and time that the fixtures have. */
export function callOf(
  id: string,
  body: JsonObject,
  overrides: Partial<Call> & { readonly options?: Model['options']; readonly provider?: Partial<ProviderSettings> } = {},
): Call {
  const [kind = '', ...rest] = id.split('/')
  const { options = {}, provider = {}, ...call } = overrides
  const model: Model = {
    id,
    provider: settingsOf(kind, provider),
    upstream: rest.join('/'),
    price: null,
    max_output_tokens: null,
    default_max_tokens: 512,
    context: null,
    parameters: null,
    surfaces: null,
    attempts: 3,
    fallback: [],
    created: 0,
    options,
  }
  return { id: '01K9ZB3J6Q0V8N7T5R4W2Y1XCD', created: 1_700_000_000, surface: 'chat', model, body, stream: body.stream === true, ...call }
}
