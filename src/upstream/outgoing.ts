import type { Surface } from '../endpoints/endpoint.js'
import type { JsonObject } from '../json.js'
import type { Target } from '../understand.js'
import type { Call } from './providers/provider.js'
import type { Wires } from './upstream.js'

/** One request to one target, for its translation. */
export function callOf(target: Target, surface: Surface, stream: boolean, ids: Pick<Call, 'id' | 'created'>): Call {
  return new TargetCall(target, surface, stream, ids)
}

/** The body of a large request is parsed when somebody asks for it. */
class TargetCall implements Call {
  readonly id: string
  readonly created: number
  readonly surface: Surface
  readonly stream: boolean
  readonly #target: Target

  constructor(target: Target, surface: Surface, stream: boolean, { id, created }: Pick<Call, 'id' | 'created'>) {
    this.#target = target
    this.id = id
    this.created = created
    this.surface = surface
    this.stream = stream
  }

  get model(): Call['model'] {
    return this.#target.model
  }

  get body(): Call['body'] {
    return this.#target.body
  }
}

/** What is sent to a target, as text in the provider's wire. Throws what the translation throws. */
export function outgoing(target: Target, surface: Surface, stream: boolean, wires: Wires, ids: Pick<Call, 'id' | 'created'>): string {
  const sent = translated(target, surface, stream, wires, ids)
  return typeof sent === 'string' ? sent : JSON.stringify(sent)
}

/** The same before it is text, unless the wire is no JSON. */
export function translated(
  target: Target,
  surface: Surface,
  stream: boolean,
  wires: Wires,
  ids: Pick<Call, 'id' | 'created'>,
): JsonObject | string {
  const call = callOf(target, surface, stream, ids)
  const { request, text } = wires.wire(target.model, surface)
  if (text !== undefined) return text(call)
  return request === undefined ? target.body : request(call)
}
