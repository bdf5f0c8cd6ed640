import type { Endpoint } from '../endpoints/endpoint.js'
import { GatewayError, isGatewayError } from '../errors.js'
import type { Exchange, Held } from '../exchange.js'
import { upstreamRequestId } from '../http/headers.js'
import { familyOf } from '../metering/estimate.js'
import { Tally } from '../metering/tally.js'
import type { Runtime, Services } from '../runtime.js'
import type { Question, Target } from '../understand.js'
import { type Answered, Attempt, type AttemptFacts } from './attempt.js'
import type { Gate } from './gate.js'
import type { Finding, Health, Visit } from './health.js'
import { ordered } from './order.js'
import { callOf, outgoing } from './outgoing.js'
import type { Call, HeaderFields, Provider, Transport } from './providers/provider.js'
import { Tries } from './tries.js'
import { TargetFailure } from './trouble.js'
import { wholeAnswer } from './whole.js'

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

/**
 * Tries the targets in turn until one has something to tell; one that has no word for what is asked is passed over. Throws Abandoned, the last
 * failure, or why no target could be asked. Nothing is sent a second time where the first may have run unheard, unless the provider's
 * `retry_unknown` says so: what came whole and is no answer is a failure.
 */
export async function forward(
  exchange: Exchange,
  endpoint: Endpoint,
  question: Question,
  runtime: Runtime,
  services: Services,
): Promise<Forwarded> {
  const { clock, health, random } = services
  const targets = ordered(question.targets, random)
  const deadline = clock.monotonic() + (targets[0] as Target).model.provider.timeout.total
  const tries = new Tries({ targets, attempts: question.model.attempts, deadline, health, random })
  const findings = new Findings(health)
  for (;;) {
    const step = tries.next(clock.monotonic())
    if (step === null) throw tries.error(clock.monotonic())
    if (step.waitMs > 0) await pause(step.waitMs, exchange)
    const from = clock.monotonic()
    const { target } = step
    let body: string | Uint8Array
    try {
      body = bodyFor(target, exchange, endpoint, question, runtime)
    } catch (error) {
      if (!isGatewayError(error)) throw error
      tries.passOver(error)
      continue
    }
    const visit = findings.visit(target, from)
    try {
      const forwarded = await attempt(exchange, endpoint, question, target, body, runtime, services)
      const now = clock.monotonic()
      exchange.tried.push({ target: target.name, result: 'answered', ms: Math.round(now - from) })
      findings.leave(visit, target, 'well', now)
      return forwarded
    } catch (error) {
      const now = clock.monotonic()
      exchange.tried.push({
        target: target.name,
        result: isGatewayError(error) ? error.code : 'internal_error',
        ms: Math.round(now - from),
      })
      findings.leave(visit, target, findingOf(error), now)
      if (exchange.gone || !tries.failed(step, error, now)) throw error
    }
  }
}

/** What a try says of its target: one that refuses the request for its content is well. */
function findingOf(error: unknown): Finding {
  if (error instanceof TargetFailure) return error.trouble
  return isGatewayError(error) && error.origin === 'upstream' ? 'well' : null
}

/** What one request finds out about its targets. A target that it tries more than once fails it once. */
class Findings {
  readonly #health: Health
  #failed: Set<string> | null = null

  constructor(health: Health) {
    this.#health = health
  }

  /** A try begins; its end is to be told by `leave`. */
  visit({ name, model: { provider } }: Target, from: number): Visit {
    return this.#health.enter({ name, provider: provider.name, settings: provider.health }, from)
  }

  leave(visit: Visit, { name }: Target, finding: Finding, at: number): void {
    const failed = finding !== 'well' && finding !== null && finding.against !== null && finding.against !== 'limit'
    visit.leave(failed && this.#failed?.has(name) ? null : finding, at)
    if (!failed) return
    this.#failed ??= new Set()
    this.#failed.add(name)
  }
}

/** Time passes, unless the client leaves. */
function pause(ms: number, exchange: Exchange): Promise<void> {
  return new Promise((resolve, reject) => {
    const over = (): void => {
      exchange.onGone = null
      resolve()
    }
    const timer = setTimeout(over, ms)
    exchange.onGone = () => {
      clearTimeout(timer)
      exchange.onGone = null
      reject(leftEarly())
    }
  })
}

function leftEarly(): GatewayError {
  return new GatewayError('client_closed', 'The client left before its request was forwarded.')
}

/** What is sent to a target. Throws what its translation throws: a GatewayError where it has no word for what is asked. */
function bodyFor(
  target: Target,
  exchange: Exchange,
  { surface }: Endpoint,
  { stream }: Question,
  { upstreams }: Runtime,
): string | Uint8Array {
  if (target.refused !== undefined) throw target.refused
  return target.outgoing ?? outgoing(target, surface, stream, upstreams, callIds(exchange))
}

async function attempt(
  exchange: Exchange,
  endpoint: Endpoint,
  question: Question,
  target: Target,
  body: string | Uint8Array,
  runtime: Runtime,
  services: Services,
): Promise<Forwarded> {
  const { model } = target
  const { settings, provider, credentials, gate } = runtime.upstreams.of(model)
  const wire = runtime.upstreams.wire(model, endpoint.surface)
  const ids = callIds(exchange)
  const call = callOf(target, endpoint.surface, question.stream, ids)
  const tally = new Tally(endpoint, familyOf(model), settings.usage === 'strict')
  const extra = runtime.chain.forwards ? await runtime.chain.forward(exchange as Held, model) : null
  const headers = fields(exchange, question.stream, credentials)
  if (extra !== null) Object.assign(headers, extra)
  exchange.marks.sent ??= services.clock.monotonic()
  if (exchange.gone) throw leftEarly()
  const transport = gate.free() ?? (await enter(gate, exchange))
  const facts: AttemptFacts = {
    call,
    settings,
    provider,
    wire,
    transport,
    endpoint,
    includeUsage: question.includeUsage,
    meter: tally.add,
    whole: (bytes, headers) =>
      !question.stream && (bytes.many || (question.bytes !== undefined && endpoint.shape !== undefined))
        ? services.offload.answer({ bytes, headers, question, target, ids }, endpoint, runtime)
        : wholeAnswer(bytes.joined(), call, wire, endpoint, headers),
    asks: field => (target.fields === undefined ? Object.hasOwn(target.body, field) : target.fields.includes(field)),
    now: () => services.clock.now(),
  }
  const started = new Attempt(facts, { key: exchange.key.name, headers, body })
  const leave = (): void => {
    if (settings.on_disconnect === 'drain' && !exchange.drained && services.drains.take(started.answered)) return
    const billable = { target, tally, upstreamRequestId: null }
    started.abort(started.sent ? new Abandoned(billable) : leftEarly())
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

/** Waits for a connection, in line. A client that leaves meanwhile is never sent for. */
async function enter(gate: Gate, exchange: Exchange): Promise<Transport> {
  const { entered, leave } = gate.enter()
  exchange.onGone = () => leave(leftEarly())
  try {
    return await entered
  } finally {
    exchange.onGone = null
  }
}

/** What a translation makes ids and times from. */
export function callIds(exchange: Pick<Exchange, 'id' | 'at'>): Pick<Call, 'id' | 'created'> {
  return { id: exchange.id.slice('req_'.length), created: Math.floor(exchange.at / 1000) }
}

function fields(exchange: Exchange, stream: boolean, credentials: HeaderFields): Record<string, string> {
  const told: Record<string, string> = {
    'content-type': 'application/json',
    accept: stream ? 'text/event-stream' : 'application/json',
    'accept-encoding': 'identity',
    'user-agent': 'model-gateway',
    traceparent: exchange.traceparent,
  }
  if (exchange.tracestate !== undefined) told.tracestate = exchange.tracestate
  for (const name in credentials) told[name] = credentials[name] as string
  return told
}
