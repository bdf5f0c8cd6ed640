import type { Endpoint } from '../endpoints/endpoint.js'
import { GatewayError, isGatewayError } from '../errors.js'
import type { Exchange, Held } from '../exchange.js'
import { upstreamRequestId } from '../http/headers.js'
import { familyOf } from '../metering/estimate.js'
import { Tally } from '../metering/tally.js'
import type { Runtime, Services } from '../runtime.js'
import type { Question, Target } from '../understand.js'
import { type Answered, Attempt } from './attempt.js'
import { callOf, outgoing } from './outgoing.js'
import type { Call, HeaderFields, Provider } from './providers/provider.js'

/** What can be charged for: a target that has begun to work, and what was received of it. */
export interface Billable {
  readonly target: Target
  readonly tally: Tally
  readonly upstreamRequestId: string | null
}

/** A target that answers: there is something to tell the client. */
export interface Forwarded extends Billable {
  readonly provider: Provider
  readonly attempt: Attempt
  readonly answered: Answered
}

/** The client left before there was anything to tell, but after the request had gone out. */
export class Abandoned extends GatewayError {
  constructor(readonly billable: Billable) {
    super('client_closed', 'The client left before its answer was whole.')
  }
}

/** Tries the targets in order until one has something to tell. Throws the last one's GatewayError, or Abandoned. */
export async function forward(
  exchange: Exchange,
  endpoint: Endpoint,
  question: Question,
  runtime: Runtime,
  services: Services,
): Promise<Forwarded> {
  for (let i = 0; ; i++) {
    const target = question.targets[i] as Target
    const from = services.clock.monotonic()
    const tried = (result: string): void => {
      const ms = Math.round(services.clock.monotonic() - from)
      exchange.tried.push({ target: target.model.id, result, ms })
    }
    try {
      const forwarded = await attempt(exchange, endpoint, question, target, runtime, services)
      tried('answered')
      return forwarded
    } catch (error) {
      tried(isGatewayError(error) ? error.code : 'internal_error')
      const next = i + 1 < question.targets.length && isGatewayError(error) && error.retryable && !exchange.gone
      if (!next) throw error
    }
  }
}

async function attempt(
  exchange: Exchange,
  endpoint: Endpoint,
  question: Question,
  target: Target,
  runtime: Runtime,
  services: Services,
): Promise<Forwarded> {
  const { model } = target
  const { settings, provider, transport } = runtime.upstreams.of(model)
  const wire = runtime.upstreams.wire(model, endpoint.surface)
  const ids = callIds(exchange)
  const call = callOf(target, endpoint.surface, question.stream, ids)
  const tally = new Tally(endpoint, familyOf(model), settings.usage === 'strict')
  const extra = runtime.chain.forwards ? await runtime.chain.forward(exchange as Held, model) : {}
  const body = target.outgoing ?? outgoing(target, endpoint.surface, question.stream, runtime.upstreams, ids)
  exchange.marks.sent ??= services.clock.monotonic()
  const started = new Attempt({
    call,
    settings,
    provider,
    wire,
    transport,
    endpoint,
    headers: { ...fields(exchange, question.stream), ...provider.authorize(settings.api_key, settings), ...extra },
    body,
    includeUsage: question.includeUsage,
    meter: tally.add,
    now: () => services.clock.now(),
  })
  const leave = (): void => {
    if (settings.on_disconnect === 'drain' && !exchange.drained && services.drains.take(started.answered)) return
    const billable = { target, tally, upstreamRequestId: null }
    started.abort(
      started.sent ? new Abandoned(billable) : new GatewayError('client_closed', 'The client left before its request was forwarded.'),
    )
  }
  exchange.onGone = leave
  if (exchange.gone) leave()
  try {
    const answered = await started.answered
    const upstreamId = upstreamRequestId(answered.headers, provider.requestIdHeader ?? 'x-request-id')
    return { target, provider, attempt: started, answered, tally, upstreamRequestId: upstreamId }
  } finally {
    exchange.onGone = null
  }
}

/** What a translation makes ids and times from. */
export function callIds(exchange: Pick<Exchange, 'id' | 'at'>): Pick<Call, 'id' | 'created'> {
  return { id: exchange.id.slice('req_'.length), created: Math.floor(exchange.at / 1000) }
}

function fields(exchange: Exchange, stream: boolean): HeaderFields {
  return {
    'content-type': 'application/json',
    accept: stream ? 'text/event-stream' : 'application/json',
    'accept-encoding': 'identity',
    'user-agent': 'model-gateway',
    traceparent: exchange.traceparent,
    ...(exchange.tracestate === undefined ? {} : { tracestate: exchange.tracestate }),
  }
}
