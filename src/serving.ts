import type { IncomingMessage, ServerResponse } from 'node:http'
import { ENDPOINTS } from './endpoints/endpoints.js'
import { keyPage } from './endpoints/key.js'
import { modelPage, modelsPage } from './endpoints/models.js'
import type { Page } from './endpoints/page.js'
import { asGatewayError, errorBody, GatewayError } from './errors.js'
import { Exchange } from './exchange.js'
import { clientRequestId, clientTracestate, errorFields } from './http/headers.js'
import { sendJson } from './http/respond.js'
import { type Route, Router } from './http/router.js'
import { InFlight } from './in-flight.js'
import { identify, type Ran, run } from './lifecycle.js'
import type { Runtime, Services } from './runtime.js'
import type { Log } from './telemetry/log.js'
import type { Metrics } from './telemetry/metrics.js'
import type { Recent } from './telemetry/recent.js'
import { report, reportTurnedAway } from './telemetry/report.js'
import { traces } from './telemetry/trace.js'

/** How long what was cut off has to settle. Milliseconds. */
const END_MS = 5_000

export interface ServingFacts {
  readonly services: Services
  readonly log: Log
  readonly metrics: Metrics
  readonly recent: Recent
}

/** A config that requests run under, and how many do. */
interface Tenure {
  readonly runtime: Runtime
  active: number
  retired: (() => void) | null
}

/** Requests on their way: each under the config that it began with, until it is over. */
export class Serving {
  readonly #facts: ServingFacts
  readonly #router = new Router(ENDPOINTS, [keyPage, modelsPage, modelPage])
  readonly #trace = traces()
  readonly #live = new InFlight<Exchange>()
  #tenure: Tenure
  #draining = false
  #quiet: (() => void) | null = null

  constructor(runtime: Runtime, facts: ServingFacts) {
    this.#tenure = { runtime, active: 0, retired: null }
    this.#facts = facts
  }

  get draining(): boolean {
    return this.#draining
  }

  get inFlight(): number {
    return this.#live.size
  }

  /** What is under way, the oldest first: to look at only. */
  get live(): Iterable<Exchange> {
    return [...this.#live].sort((a, b) => a.since - b.since)
  }

  get runtime(): Runtime {
    return this.#tenure.runtime
  }

  /** New requests run under `runtime` from now on. Resolves when the last one of the config before is over. */
  switch(runtime: Runtime): Promise<void> {
    const before = this.#tenure
    this.#tenure = { runtime, active: 0, retired: null }
    if (before.active === 0) return Promise.resolve()
    return new Promise(resolve => {
      before.retired = resolve
    })
  }

  /**
   * Refuses what comes from now on, and waits for what is under way, to its last byte: at most `timeoutMs`, then it is cut off and settled. What
   * does not end even then, because a policy never answers, is left behind and told of: the next start ends its hold.
   */
  async drain(timeoutMs: number): Promise<void> {
    this.#draining = true
    if (this.#live.size === 0) return
    const quiet = new Promise<void>(resolve => {
      this.#quiet = resolve
    })
    const timers = [
      setTimeout(() => {
        for (const exchange of [...this.#live]) exchange.drain()
      }, timeoutMs),
      setTimeout(() => {
        for (const { id, surface } of this.#live)
          this.#facts.log.error('a request did not end when it was cut off, and is left behind', { request_id: id, surface })
        this.#quiet?.()
      }, timeoutMs + END_MS),
    ]
    await quiet
    for (const timer of timers) clearTimeout(timer)
  }

  readonly handle = (request: IncomingMessage, response: ServerResponse): void => {
    void this.#serve(request, response)
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { services, log, metrics, recent } = this.#facts
    const tenure = this.#tenure
    const at = services.clock.now()
    const target = request.url ?? '/'
    const query = target.indexOf('?')
    const path = query === -1 ? target : target.slice(0, query)
    let route: Route
    try {
      if (this.#draining) throw new GatewayError('draining', 'The gateway is stopping. Try again; another one may answer.')
      route = this.#router.route(request.method ?? '', path)
    } catch (error) {
      this.#turnAway(response, at, asGatewayError(error), tenure.runtime)
      return
    }
    const trace = this.#trace(single(request.headers.traceparent))
    const exchange = new Exchange(
      {
        id: services.newId(at),
        at,
        since: services.clock.monotonic(),
        surface: route.kind === 'endpoint' ? route.endpoint.surface : route.page.name,
        path,
        clientRequestId: clientRequestId(request.headers),
        traceId: trace.traceId,
        traceparent: trace.outgoing,
        tracestate: trace.continued ? clientTracestate(request.headers) : undefined,
      },
      request,
      response,
    )
    tenure.runtime.chain.authors = recent.on ? recent.authors : null
    tenure.active++
    this.#live.add(exchange)
    metrics.inFlight(exchange.surface, 1)
    try {
      const ran =
        route.kind === 'endpoint'
          ? await run(exchange, route.endpoint, tenure.runtime, services)
          : await this.#page(exchange, route.page, route.rest, tenure.runtime)
      const line = report(exchange, ran, services.clock.monotonic(), log, metrics)
      if (recent.on) recent.add(line, exchange, ran)
    } catch (error) {
      // Nothing above throws; if it does all the same, no client shall wait for ever.
      services.fault('a request ended in a fault', error, { request_id: exchange.id })
      response.destroy()
    } finally {
      metrics.inFlight(exchange.surface, -1)
      if (--tenure.active === 0) tenure.retired?.()
      // A client that reads slowly has not got all of it yet: a stop waits for that, too.
      if (response.writableFinished || response.destroyed) this.#gone(exchange)
      else response.on('close', () => this.#gone(exchange))
    }
  }

  #gone(exchange: Exchange): void {
    this.#live.remove(exchange)
    if (this.#live.size === 0) this.#quiet?.()
  }

  async #page(exchange: Exchange, page: Page, rest: string, runtime: Runtime): Promise<Ran> {
    const { services } = this.#facts
    const writeMs = runtime.config.timeout.write
    const ran: Ran = { outcome: { state: 'answered' }, billing: null, error: null, status: 200, billable: null }
    try {
      exchange.key = await identify(exchange, runtime)
      const body = await page.answer(exchange, rest, runtime, services)
      const fields = await runtime.chain.respond(exchange)
      sendJson(exchange.response, 200, exchange.id, fields, JSON.stringify(body), writeMs)
      await runtime.chain.finish(exchange, ran.outcome)
      return ran
    } catch (fault) {
      const error = asGatewayError(fault)
      if (error.code === 'internal_error')
        services.fault('a page met a fault of the gateway', error.cause ?? fault, { request_id: exchange.id })
      const fields = { ...(await runtime.chain.respond(exchange, error)), ...errorFields(error) }
      sendJson(exchange.response, error.status, exchange.id, fields, errorBody(error, exchange.id), writeMs)
      const outcome = { state: 'refused', error: fault } as const
      await runtime.chain.finish(exchange, outcome)
      return { ...ran, outcome, error, status: error.status }
    }
  }

  /** A request that has no place here: answered before anybody is asked who it is. */
  #turnAway(response: ServerResponse, at: number, error: GatewayError, { config }: Runtime): void {
    const { services, log, metrics, recent } = this.#facts
    const id = services.newId(at)
    response.req.on('error', () => {})
    const line = reportTurnedAway(id, at, error, log, metrics)
    if (recent.on) recent.add(line, null, null)
    sendJson(response, error.status, id, errorFields(error), errorBody(error, id), config.timeout.write)
  }
}

function single(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined
}
