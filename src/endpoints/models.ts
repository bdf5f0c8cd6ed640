import type { Model } from '../config/config.js'
import { GatewayError } from '../errors.js'
import type { JsonObject } from '../json.js'
import type { Runtime } from '../runtime.js'
import { ENDPOINTS } from './endpoints.js'
import type { Page } from './page.js'

/** GET /v1/models: the models and aliases that the key may use. */
export const modelsPage: Page = {
  name: 'models',
  path: '/v1/models',
  async answer({ key }, _rest, { catalog }) {
    return { object: 'list', data: catalog.list(key).map(({ id, model }) => entry(id, model)) }
  },
}

/** GET /v1/models/{id}: one model's card. */
export const modelPage: Page = {
  name: 'models',
  path: '/v1/models/',
  async answer({ key }, rest, runtime) {
    const model = runtime.catalog.find(rest)
    // To whom it is not open, it does not exist: a list of other customers' models is nobody's business.
    if (model === undefined || !runtime.catalog.allowed(key, model)) {
      throw new GatewayError('model_not_found', 'There is no such model for this key. GET /v1/models lists those there are.', {
        param: 'model',
      })
    }
    return card(rest, model, runtime)
  },
}

function entry(id: string, model: Model): JsonObject {
  return { id, object: 'model', created: model.created, owned_by: model.provider.name }
}

/**
 * Prices are Rial per 1,000,000 tokens, and per request; `null` is free. `parameters` has what any of its surfaces takes, in one list;
 * `parameters_by_surface` what each takes. Who answers for it, its upstream name and its fallbacks, is not the client's business.
 */
function card(id: string, model: Model, { catalog, upstreams }: Runtime): JsonObject {
  const places = catalog.targets(model).filter(place => place.rank === 0)
  const accepted = ENDPOINTS.filter(endpoint => places.some(place => upstreams.answers(place.model, endpoint.surface))).map(
    ({ surface, parameters }) =>
      [surface, [...parameters].filter(name => model.parameters === null || model.parameters.includes(name)).sort()] as const,
  )
  return {
    ...entry(id, model),
    model: model.id,
    surfaces: accepted.map(([surface]) => surface),
    parameters: [...new Set(accepted.flatMap(([, parameters]) => parameters))].sort(),
    parameters_by_surface: Object.fromEntries(accepted),
    context: model.context,
    max_output_tokens: model.max_output_tokens,
    default_max_tokens: model.default_max_tokens,
    price:
      model.price === null
        ? null
        : {
            input: Number(model.price.input),
            cached_input: Number(model.price.cached_input),
            output: Number(model.price.output),
            request: Number(model.price.request),
          },
  }
}
