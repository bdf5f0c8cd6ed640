import type { Model, ProviderSettings, Timeouts } from '../../../../src/config/config.js'
import type { Surface } from '../../../../src/endpoints/endpoint.js'
import type { JsonObject } from '../../../../src/json.js'
import type { Delivery, Receiver, Transport, TransportFailure, TransportRequest } from '../../../../src/upstream/providers/provider.js'
import type { SandboxOptions } from '../../../../src/upstream/providers/sandbox/options.js'
import sandbox from '../../../../src/upstream/providers/sandbox.js'

export const ID = '01K9ZB3J6Q0V8N7T5R4W2Y1XCD'

/** What a receiver heard, in order. */
export class Heard implements Receiver {
  readonly calls: string[] = []
  status = 0
  headers: Readonly<Record<string, string | string[] | undefined>> = {}
  readonly chunks: string[] = []
  failure: TransportFailure | undefined
  onData: (() => void) | undefined
  #over: () => void = () => {}
  readonly over = new Promise<void>(resolve => {
    this.#over = resolve
  })

  head(status: number, headers: Readonly<Record<string, string | string[] | undefined>>): void {
    this.calls.push('head')
    this.status = status
    this.headers = headers
  }
  data(chunk: Buffer): void {
    this.calls.push('data')
    this.chunks.push(chunk.toString())
    this.onData?.()
  }
  end(): void {
    this.calls.push('end')
    this.#over()
  }
  failed(failure: TransportFailure): void {
    this.calls.push('failed')
    this.failure = failure
    this.#over()
  }

  get text(): string {
    return this.chunks.join('')
  }
  /** The whole body as JSON. */
  json<T = Answer>(): T {
    return JSON.parse(this.text) as T
  }
  /** The `data` of each event of the stream, `[DONE]` left out. */
  get events(): Chunk[] {
    const frames = this.text.split('\n\n').filter(frame => frame !== '' && frame !== 'data: [DONE]')
    return frames.map(frame => JSON.parse(frame.replace(/^data: /, '')) as Chunk)
  }
}

export interface Usage {
  prompt_tokens: number
  completion_tokens: number
  total_tokens: number
}

export interface Call {
  index?: number
  id?: string
  type?: string
  function?: { name?: string; arguments?: string }
  custom?: { name?: string; input?: string }
}

export interface Chunk {
  id: string
  object: string
  created: number
  model: string
  choices: { index: number; delta: { role?: string; content?: string | null; tool_calls?: Call[] }; finish_reason: string | null }[]
  usage?: Usage
  error?: JsonObject
}

export interface Answer {
  id: string
  object: string
  created: number
  model: string
  choices: { index: number; message: { role: string; content: string | null; tool_calls?: Call[] }; text: string; finish_reason: string }[]
  usage: Usage
  error: { message: string; type: string; param: string | null; code: string | null }
}

export function opened(timeout: Partial<Timeouts> = {}): Transport {
  return sandbox.transport(settings(timeout))
}

export function settings(timeout: Partial<Timeouts> = {}): ProviderSettings {
  return {
    name: 'sandbox',
    kind: 'sandbox',
    base_url: 'sandbox:',
    api_key: null,
    timeout: { connect: 5000, first_byte: 60_000, idle: 60_000, total: 600_000, ...timeout },
    max_connections: 256,
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
  }
}

export function request(surface: Surface, fields: JsonObject, options: SandboxOptions = {}, name = 'echo'): TransportRequest {
  const model: Model = {
    id: `sandbox/${name}`,
    provider: settings(),
    upstream: name,
    price: null,
    max_output_tokens: null,
    default_max_tokens: 512,
    context: null,
    parameters: null,
    surfaces: null,
    attempts: 3,
    fallback: [],
    created: 0,
    options: { ...options },
  }
  const body: JsonObject = { model: name, ...fields }
  const call = { id: ID, created: 1_741_569_952, surface, model, body, stream: fields.stream === true }
  const wire = sandbox.wires[surface]
  return { key: 'app-a', path: wire.path(call), headers: {}, body: wire.text(call), call }
}

/** Sends, and waits for the end or the failure. */
export async function asked(
  surface: Surface,
  fields: JsonObject,
  options: SandboxOptions = {},
  transport: Transport = opened(),
): Promise<Heard & { delivery: Delivery }> {
  const heard = new Heard()
  const delivery = transport.send(request(surface, fields, options), heard)
  await heard.over
  return Object.assign(heard, { delivery })
}

export const says = (content: string): JsonObject => ({ messages: [{ role: 'user', content }] })
