import type { Config, Key } from './config/config.js'
import type { Endpoint } from './endpoints/endpoint.js'
import { asGatewayError, errorBody, GatewayError } from './errors.js'
import type { Asked, Exchange, Held } from './exchange.js'
import { ANONYMOUS } from './exchange.js'
import { checkBodyHeaders, readBody } from './http/body.js'
import { errorFields, passedDown } from './http/headers.js'
import { endWithin, sendContinue, sendJson, sendStreamHead } from './http/respond.js'
import { AMOUNT_MAX } from './ledger/cells.js'
import type { Claim, EndingRecord } from './ledger/ledger.js'
import { priceText } from './metering/price.js'
import { NO_USAGE, type Usage } from './metering/usage.js'
import type { Pieces } from './pieces.js'
import type { HeaderFields, MaybePromise, Outcome } from './policy.js'
import { beyondLedger, refusal } from './refusal.js'
import type { Runtime, Services } from './runtime.js'
import { type Billing, type End, ending, settlement } from './settlement.js'
import { charge, sizeOf } from './sizing.js'
import { checked, type Question, readQuestion, understand } from './understand.js'
import { Abandoned, type Billable, callIds, type Forwarded, forward } from './upstream/fallback.js'
import { cutOff, StreamRelay } from './upstream/relay.js'
import type { WholeAnswer } from './upstream/whole.js'

/** How an exchange went: what the log and the metrics are told. */
export interface Ran {
  readonly outcome: Outcome
  readonly billing: Billing | null
  readonly error: GatewayError | null
  /** What the client got; 499 when it left. */
  readonly status: number
  /** The target that was charged for. */
  readonly billable: Billable | null
}

/**
 * The life of a metered request, from its header to its settlement. Never rejects. Whether a hold is voided or settled is one rule: `forward`
 * throws before there is anything to tell the client, and returns after.
 */
export async function run(exchange: Exchange, endpoint: Endpoint, runtime: Runtime, services: Services): Promise<Ran> {
  let ran: Ran
  try {
    const question = await admit(exchange, endpoint, runtime, services)
    ran = await held(exchange, endpoint, question, runtime, services)
  } catch (error) {
    ran = await refuse(exchange, error, null, runtime, services)
  } finally {
    services.bodies.give(exchange.bodyBytes)
  }
  const finishing = runtime.chain.finish(exchange, ran.outcome)
  if (finishing !== undefined) await finishing
  if (exchange.bytes !== null) services.offload.free(exchange.bytes)
  return ran
}

/** Resolves when all claims are admitted, durably. */
async function admit(exchange: Exchange, endpoint: Endpoint, runtime: Runtime, services: Services): Promise<Question> {
  const { config, chain } = runtime
  const { clock, ledger } = services
  const key = identify(exchange, runtime)
  exchange.key = key instanceof Promise ? await key : key
  checkBodyHeaders(exchange.request, config.limits.body)
  sendContinue(exchange.request, exchange.response)
  const bytes = await readBody(exchange.request, config.limits.body, config.timeout.request, services.bodies)
  exchange.bodyBytes = bytes.length
  // Of a small one nothing is to be given back, and a stream may last for long.
  if (bytes.many) exchange.bytes = bytes
  exchange.marks.read = clock.monotonic()
  const asked = ask(bytes, exchange, endpoint, runtime, services)
  const question = asked instanceof Promise ? await asked : asked
  exchange.model = question.model
  exchange.stream = question.stream
  const { estimate, estimateRial } = sizeOf(question.targets, services.calibrations)
  exchange.estimate = estimate
  exchange.estimateRial = estimateRial
  const claimed = chain.admit(exchange as Asked)
  const claims = claimed instanceof Promise ? await claimed : claimed
  if (exchange.gone) throw clientClosed()
  if (estimateRial > AMOUNT_MAX && claims.some(({ counter }) => counter.meter === 'rial')) throw beyondLedger(estimateRial)
  const admission = await ledger.hold({ id: exchange.id, at: exchange.at, claims, record: admissionRecord(exchange, question, claims) })
  exchange.claims = claims
  exchange.readings = admission.readings
  if (!admission.admitted) throw refusal(admission, exchange as Asked, clock.now(), runtime.iso)
  return question
}

/** The key that the chain finds. Where keys are configured, nobody passes without one, whatever the chain is. */
export function identify(exchange: Exchange, { chain, config }: Runtime): MaybePromise<Key> {
  const key = chain.identify(exchange)
  return key instanceof Promise ? key.then(found => known(found, config)) : known(key, config)
}

function known(key: Key | undefined, config: Config): Key {
  if (key !== undefined) return key
  if (config.keys.size === 0) return ANONYMOUS
  throw new GatewayError('missing_api_key', 'There is no API key. Send the header: Authorization: Bearer <key>.')
}

/** What the bytes ask for: here where they are few or a policy amends them, else on the thread for large bodies. */
function ask(bytes: Pieces, exchange: Exchange, endpoint: Endpoint, runtime: Runtime, services: Services): MaybePromise<Question> {
  if (bytes.many || runtime.chain.amends || runtime.tokenizers.any) return askLater(bytes, exchange, endpoint, runtime, services)
  const body = readQuestion(bytes.joined(), endpoint)
  exchange.parse = () => body
  return understand(body, endpoint, runtime, exchange.key)
}

async function askLater(bytes: Pieces, exchange: Exchange, endpoint: Endpoint, runtime: Runtime, { offload }: Services): Promise<Question> {
  const { chain, tokenizers } = runtime
  if (bytes.many && !chain.amends) {
    exchange.parse = () => readQuestion(bytes.joined(), endpoint)
    const question = await offload.ask(bytes, endpoint, runtime, exchange.key, callIds(exchange))
    if (tokenizers.any) await tokenizers.count(question, endpoint.surface, () => bytes.list)
    return question
  }
  let body = readQuestion(bytes.joined(), endpoint)
  if (chain.amends) body = checked(await chain.amend(body, exchange), endpoint)
  exchange.parse = () => body
  const question = understand(body, endpoint, runtime, exchange.key)
  // A copy: the memory of a small body is shared with others.
  const small = () => [Uint8Array.from(chain.amends ? Buffer.from(JSON.stringify(body)) : bytes.joined())]
  if (tokenizers.any) await tokenizers.count(question, endpoint.surface, small)
  return question
}

function admissionRecord(exchange: Exchange, { model, stream }: Question, claims: readonly Claim[]) {
  const { key, estimate } = exchange
  return {
    key: key === ANONYMOUS ? null : key.name,
    account: key.account,
    plan: key === ANONYMOUS ? null : key.plan.name,
    surface: exchange.surface,
    model: model.id,
    provider: model.provider.name,
    stream,
    client_request_id: exchange.clientRequestId,
    trace_id: exchange.traceId,
    held_tokens: estimate.input + estimate.output,
    held_rial: claims.some(claim => claim.counter.meter === 'rial') ? exchange.estimateRial : 0n,
    price: priceText(model.price),
  }
}

/** From here every way out ends the hold, once, or leaves it open for the next start to end. */
async function held(exchange: Exchange, endpoint: Endpoint, question: Question, runtime: Runtime, services: Services): Promise<Ran> {
  let forwarded: Forwarded
  try {
    if (exchange.gone) throw clientClosed()
    forwarded = await forward(exchange, endpoint, question, runtime, services)
  } catch (error) {
    return await release(exchange, error, runtime, services)
  }
  exchange.marks.first = services.clock.monotonic()
  try {
    return forwarded.answered.kind === 'stream'
      ? await tellStream(exchange, forwarded, runtime, services)
      : await tellWhole(exchange, forwarded, runtime, services)
  } catch (fault) {
    return await cease(exchange, forwarded, fault, runtime, services)
  }
}

/** A fault while an answer was told: what has come of it is charged, no more of it is asked for, and nobody is left waiting. */
async function cease(exchange: Exchange, forwarded: Forwarded, fault: unknown, runtime: Runtime, services: Services): Promise<Ran> {
  const { answered, attempt, target, tally } = forwarded
  const error = asGatewayError(fault)
  exchange.onGone = null
  attempt.abort(error)
  const usage = tally.usage(charge(target, services.calibrations), answered.kind === 'whole')
  let ran: Ran | null = null
  try {
    ran = await settle(exchange, forwarded, { usage, endedBy: 'upstream_error', status: error.status, error }, services)
  } catch (unsettled) {
    // The hold stays open; the next start ends it.
    services.fault('an answer could not be settled', unsettled, { request_id: exchange.id })
  }
  const refused = await refuse(exchange, fault, 'voided', runtime, services)
  return ran ?? refused
}

/**
 * Nothing came of it. The hold is voided; but where the client left after the request had gone out, the provider has begun to work (and to
 * bill), and the input is charged.
 */
async function release(exchange: Exchange, error: unknown, runtime: Runtime, services: Services): Promise<Ran> {
  exchange.marks.answered = services.clock.monotonic()
  try {
    if (error instanceof Abandoned) {
      const usage = error.billable.tally.usage(charge(error.billable.target, services.calibrations), false)
      return await settle(exchange, error.billable, { usage, endedBy: endedBy(exchange), status: 499, error }, services)
    }
    await services.ledger.void(exchange.id, voided(exchange, asGatewayError(error), services))
  } catch (fault) {
    // The hold stays open; the next start ends it.
    services.fault('a hold could not be ended', fault, { request_id: exchange.id })
  }
  return refuse(exchange, error, 'voided', runtime, services)
}

function voided(exchange: Exchange, error: GatewayError, { clock }: Services): EndingRecord {
  const by = error.code === 'client_closed' ? endedBy(exchange) : 'upstream_error'
  return ending(exchange, { usage: NO_USAGE, endedBy: by, status: error.status, error }, 0n, null, clock)
}

async function tellWhole(exchange: Exchange, forwarded: Forwarded, runtime: Runtime, services: Services): Promise<Ran> {
  const { answered, target, tally } = forwarded
  if (answered.kind !== 'whole') throw new Error('a stream is not told whole')
  const { response } = exchange
  const { clock } = services
  exchange.marks.answered = clock.monotonic()
  const usage = tally.usage(charge(target, services.calibrations), true)
  let error: GatewayError | null = null
  try {
    watch(exchange, forwarded, answered.answer, usage, runtime)
  } catch (fault) {
    error = cutOff(fault)
  }
  const told = headerFields(exchange, forwarded, error, runtime)
  const fields = told instanceof Promise ? await told : told
  const status = exchange.gone ? 499 : (error?.status ?? 200)
  let ran: Ran
  try {
    ran = await settle(exchange, forwarded, { usage, endedBy: exchange.gone ? endedBy(exchange) : 'provider', status, error }, services)
  } catch (fault) {
    services.fault('an answer could not be settled, and was not sent', fault, { request_id: exchange.id })
    return refuse(exchange, fault, 'voided', runtime, services)
  }
  if (error === null) sendJson(response, 200, exchange.id, fields, answered.answer.text, runtime.config.timeout.write)
  else sendError(exchange, error, fields, runtime)
  return ran
}

async function tellStream(exchange: Exchange, forwarded: Forwarded, runtime: Runtime, services: Services): Promise<Ran> {
  const { answered, attempt, target, tally } = forwarded
  if (answered.kind !== 'stream') throw new Error('a whole answer is not told as a stream')
  const { response } = exchange
  const { chain, config } = runtime
  const { clock } = services
  const told = headerFields(exchange, forwarded, null, runtime)
  const fields = told instanceof Promise ? await told : told
  if (!exchange.gone) sendStreamHead(response, exchange.id, fields)
  const relay = new StreamRelay({
    response,
    attempt,
    stream: answered.stream,
    writeTimeoutMs: config.timeout.write,
    watch: chain.observes
      ? {
          head: () => chain.observe(exchange as Held, { kind: 'head', status: 200, target: target.model }),
          event: data => chain.observe(exchange as Held, { kind: 'event', data }),
        }
      : null,
    begun: () => {
      exchange.marks.first = clock.monotonic()
    },
  })
  const leave = (): void => {
    relay.deafen()
    const drain = target.model.provider.on_disconnect === 'drain' && !exchange.drained
    if (!drain || !services.drains.take(relay.ended)) attempt.abort(clientClosed())
  }
  exchange.onGone = leave
  if (exchange.gone) leave()
  const { error } = await relay.ended
  exchange.onGone = null
  exchange.marks.answered = clock.monotonic()
  const usage = tally.usage(charge(target, services.calibrations), error === null)
  if (chain.observes) observeUsage(exchange, usage, runtime, services)
  const by = exchange.gone ? endedBy(exchange) : error === null ? 'provider' : 'upstream_error'
  const last = error === null ? 'data: [DONE]\n\n' : `data: ${errorBody(error, exchange.id)}\n\n`
  try {
    const ran = await settle(exchange, forwarded, { usage, endedBy: by, status: exchange.gone ? 499 : 200, error }, services)
    endWithin(response, last, config.timeout.write)
    return ran
  } catch (fault) {
    services.fault('a stream could not be settled', fault, { request_id: exchange.id })
    const failure = asGatewayError(fault)
    endWithin(response, `data: ${errorBody(failure, exchange.id)}\n\n`, config.timeout.write)
    return { outcome: { state: 'voided', error: fault }, billing: null, error: failure, status: 200, billable: forwarded }
  }
}

/** Durable when it resolves. */
async function settle(exchange: Exchange, billable: Billable, end: End, services: Services): Promise<Ran> {
  const { billing, settled } = settlement(exchange, billable, end, services)
  await services.ledger.settle(exchange.id, settled)
  services.calibrations.learn(billable.target.model, billable.target.estimate, billing.usage)
  const outcome: Outcome = { state: settled.state, usage: billing.usage, cost: billing.cost }
  return { outcome, billing, error: end.error, status: end.status, billable }
}

/** A throw before anything was told: answered with its own status, or with nothing when nobody is there to read it. */
async function refuse(exchange: Exchange, error: unknown, state: 'voided' | null, runtime: Runtime, services: Services): Promise<Ran> {
  const gatewayError = asGatewayError(error)
  if (gatewayError.origin === 'gateway' && gatewayError.code === 'internal_error') {
    services.fault('a request met a fault of the gateway', gatewayError.cause ?? error, { request_id: exchange.id })
  }
  if (!exchange.gone) sendError(exchange, gatewayError, await runtime.chain.respond(exchange, gatewayError), runtime)
  return {
    outcome: { state: state ?? 'refused', error },
    billing: null,
    error: gatewayError,
    status: exchange.gone ? 499 : gatewayError.status,
    billable: null,
  }
}

function sendError(exchange: Exchange, error: GatewayError, fields: HeaderFields, { config }: Runtime): void {
  sendJson(
    exchange.response,
    error.status,
    exchange.id,
    { ...fields, ...errorFields(error) },
    errorBody(error, exchange.id),
    config.timeout.write,
  )
}

function headerFields(
  exchange: Exchange,
  { answered, provider }: Forwarded,
  error: GatewayError | null,
  { chain }: Runtime,
): MaybePromise<HeaderFields> {
  const passed = passedDown(answered.headers, provider.requestIdHeader ?? 'x-request-id')
  const fields = chain.respond(exchange, error ?? undefined)
  return fields instanceof Promise ? fields.then(later => Object.assign(passed, later)) : Object.assign(passed, fields)
}

function watch(exchange: Exchange, { target }: Forwarded, answer: WholeAnswer, usage: Usage, { chain }: Runtime): void {
  if (!chain.observes) return
  chain.observe(exchange as Held, { kind: 'head', status: 200, target: target.model })
  chain.observe(exchange as Held, { kind: 'event', data: answer.json })
  chain.observe(exchange as Held, { kind: 'usage', usage })
}

function observeUsage(exchange: Exchange, usage: Usage, { chain }: Runtime, services: Services): void {
  try {
    chain.observe(exchange as Held, { kind: 'usage', usage })
  } catch (fault) {
    // The answer has passed: there is nothing left to cut.
    services.fault('a policy failed to observe the usage', fault, { request_id: exchange.id })
  }
}

function endedBy(exchange: Exchange): 'client' | 'drain' {
  return exchange.drained ? 'drain' : 'client'
}

function clientClosed(): GatewayError {
  return new GatewayError('client_closed', 'The client left before its answer was whole.')
}
