import { checkModel } from './checks.js'
import type { Catalog, Place } from './config/catalog.js'
import type { Key, Model } from './config/config.js'
import type { Body, Endpoint, Estimate } from './endpoints/endpoint.js'
import { GatewayError } from './errors.js'
import { parseBody } from './http/body.js'
import { isObject, type Json, type JsonObject } from './json.js'
import { BodyTexts, familyOf } from './metering/estimate.js'
import type { Pieces } from './pieces.js'
import type { Wires } from './upstream/upstream.js'

/** What a request asks for, once its body is understood: all that the rest of its way needs. */
export interface Question {
  readonly model: Model
  /** Where the model and its fallbacks are answered, those of a lower rank first. Never empty. */
  readonly targets: readonly Target[]
  readonly stream: boolean
  /** The client wants the usage chunk of a stream. */
  readonly includeUsage: boolean
  /** The body itself, where it was large and another thread has understood it. */
  readonly bytes?: Pieces
}

/** A place that may answer, and what it would be sent. */
export interface Target extends Place {
  /** Only what the model takes, under the provider's name for it; the cap is the one that the estimate holds for. The client's wire. */
  readonly body: JsonObject
  /** The same in the provider's wire, as bytes, where it has been made already. */
  readonly outgoing?: Uint8Array
  /** Why that can not be made, where it was to be: what its translation has thrown. */
  readonly refused?: Error
  /** Names of the fields of `body`, where to make it here would cost a parse. */
  readonly fields?: readonly string[]
  /** Raw: what the model has taught is not in it (sizing.ts). */
  readonly estimate: Estimate
  /** Input tokens that no byte-level tokenizer exceeds, where the model asks for such a hold. */
  readonly bound?: number
  /** Input tokens that the model's own module has counted, set once it has (counting/tokenizers.ts). */
  counted?: number
}

type Mutable = { [name: string]: Json | undefined }
/** Where models are found, and in which wires they answer. */
export interface Where {
  readonly catalog: Catalog
  readonly upstreams: Wires
}

/** The checked body that the bytes are. Throws `invalid_json` and `invalid_request`. */
export function readQuestion(bytes: Uint8Array, endpoint: Endpoint): Body {
  return checked(parseBody(bytes), endpoint)
}

/** Throws `invalid_request` where the endpoint can not take the body. */
export function checked(body: JsonObject, endpoint: Endpoint): Body {
  checkModel(body)
  endpoint.check(body)
  return body as Body
}

/**
 * Finds what a checked body may ask for, and makes for each target a new object of what was understood, with the cap that is held. Pure.
 * Throws `model_not_found`, `model_not_allowed`, `unsupported_surface`.
 */
export function understand(body: Body, endpoint: Endpoint, { catalog, upstreams }: Where, key: Key): Question {
  const model = catalog.find(body.model)
  if (model === undefined) {
    throw new GatewayError('model_not_found', `There is no model ${quoted(body.model)}. GET /v1/models lists those of this key.`, {
      param: 'model',
    })
  }
  if (!catalog.allowed(key, model)) {
    throw new GatewayError(
      'model_not_allowed',
      `Key ${key.name} or its plan does not include ${quoted(body.model)}. GET /v1/models lists its models.`,
      {
        param: 'model',
      },
    )
  }
  const answering = catalog.targets(model).filter(place => upstreams.answers(place.model, endpoint.surface))
  if (answering[0]?.rank !== 0) {
    throw new GatewayError(
      'unsupported_surface',
      `Model ${model.id} does not answer ${endpoint.paths[0]}. GET /v1/models/${model.id} shows what it does.`,
      {
        param: 'model',
      },
    )
  }
  const stream = endpoint.streams(body)
  const texts = textsFor(answering)
  const targets = answering.map(place => targetOf(body, endpoint, place, stream, texts))
  return {
    model,
    targets,
    stream,
    includeUsage: isObject(body.stream_options) && body.stream_options.include_usage === true,
  }
}

/** Texts that are read more than once are read together. */
function textsFor(places: readonly Place[]): BodyTexts | undefined {
  const bound = places.some(({ model }) => model.estimate === 'bound')
  if (places.length === 1 && !bound) return undefined
  return new BodyTexts(new Set([...places.map(({ model }) => familyOf(model)), ...(bound ? (['bytes'] as const) : [])]))
}

function targetOf(body: Body, endpoint: Endpoint, place: Place, stream: boolean, texts: BodyTexts | undefined): Target {
  const { name, model, weight, rank } = place
  const forwarded = forwardedBody(body, endpoint, model, stream)
  // Field by field: an object that is spread into another and added to costs V8 twenty times as much, and so does each that reads it.
  const target = { name, model, weight, rank, body: forwarded, estimate: endpoint.estimate(forwarded as Body, model, texts) }
  if (model.estimate !== 'bound') return target
  return { ...target, bound: endpoint.estimate(forwarded as Body, { ...model, tokenizer: 'bytes' }, texts).input }
}

/** What is settled here and not copied. */
const SETTLED: ReadonlySet<string> = new Set(['model', 'stream', 'stream_options'])
const CAPS: ReadonlySet<string> = new Set(['max_tokens', 'max_completion_tokens'])
/** The largest number that is an integer of 64 bits still as JSON.stringify writes it. */
const SEED_MAX = 2 ** 63 - 1024

/** A checked body as it is forwarded to a target: see `Target.body`. */
export function forwardedBody(body: Body, endpoint: Endpoint, model: Model, stream: boolean): JsonObject {
  const forwarded: Mutable = { model: model.upstream }
  const cap = endpoint.cap(body, model)
  // Nothing is taken out again: V8 keeps an object that has lost a member as a table, and writes it as JSON in twice the time.
  for (const name of Object.keys(body)) {
    const value = body[name]
    if (value === null || value === undefined || SETTLED.has(name) || (cap !== null && CAPS.has(name))) continue
    if (endpoint.fields.has(name) || (endpoint.parameters.has(name) && takes(model, name))) forwarded[name] = value
  }
  const { seed } = forwarded
  if (typeof seed === 'number' && Math.abs(seed) > SEED_MAX) forwarded.seed = Math.sign(seed) * SEED_MAX
  if (cap !== null) forwarded[endpoint.surface === 'chat' ? (model.cap ?? model.provider.cap) : 'max_tokens'] = cap
  if (stream) {
    forwarded.stream = true
    const options = streamOptions(body, endpoint, model)
    if (options !== null) forwarded.stream_options = options
  }
  return forwarded as JsonObject
}

function takes(model: Model, parameter: string): boolean {
  return model.parameters === null || model.parameters.includes(parameter)
}

/** Usage is asked for whether or not the client wants to see it: the bill is made from it. `null`: the provider knows no such options. */
function streamOptions({ stream_options: asked }: Body, endpoint: Endpoint, model: Model): JsonObject | null {
  if (model.provider.usage_stream !== 'option') return null
  const obfuscation = isObject(asked) && endpoint.fields.has('stream_options') ? asked.include_obfuscation : null
  return typeof obfuscation === 'boolean' ? { include_obfuscation: obfuscation, include_usage: true } : { include_usage: true }
}

/** A client's word in a message of ours: short, and on one line. */
function quoted(text: string): string {
  return JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text)
}
