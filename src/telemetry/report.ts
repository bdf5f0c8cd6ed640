import { CODES, type GatewayError } from '../errors.js'
import { ANONYMOUS, type Exchange, type Tried } from '../exchange.js'
import type { Ran } from '../lifecycle.js'
import { type Access, type Log, levelOf } from './log.js'
import type { Metrics } from './metrics.js'

/** Tells the log and the metrics of one exchange that is over; returns its line. `now`: of the monotonic clock, in milliseconds. */
export function report(exchange: Exchange, ran: Ran, now: number, log: Log, metrics: Metrics): Access {
  const { billing, error, status } = ran
  const { marks, tried } = exchange
  const model = exchange.model ?? null
  const provider =
    ran.billable?.target.model.provider.name ??
    (tried.length > 0 ? providerOf(tried[tried.length - 1]?.target ?? '') : (model?.provider.name ?? null))
  const duration = now - exchange.since
  const upstreamMs = marks.sent === undefined ? null : (marks.answered ?? now) - marks.sent
  const gatewayMs = upstreamMs === null || marks.read === undefined ? null : Math.max(0, now - marks.read - upstreamMs)
  const ttftMs = exchange.stream && marks.first !== undefined ? marks.first - exchange.since : null
  const state = ran.outcome.state
  const ending = state === 'settled' || state === 'partial' || state === 'voided' ? state : null
  const key = exchange.key === ANONYMOUS ? null : exchange.key.name
  metrics.finished({
    surface: exchange.surface,
    model: model?.id ?? null,
    provider: ran.billable === null ? null : provider,
    key,
    status,
    stream: exchange.stream,
    durationMs: duration,
    ttftMs,
    overheadMs: gatewayMs,
    usage: billing?.usage ?? null,
    costRial: billing?.cost ?? 0n,
    overrunRial: billing?.overrun ?? 0n,
    ending,
    endedBy: billing?.endedBy ?? null,
    estimatedInput: exchange.estimate?.input ?? null,
  })
  if (state === 'refused' && error !== null) metrics.refused(error.code, key === null ? null : exchange.key.plan.name)
  for (let i = 0; i < tried.length; i++) {
    const { target, result } = tried[i] as Tried
    metrics.upstream(providerOf(target), resultOf(result))
    if (i > 0) metrics.upstreamRetry(providerOf(target))
  }
  const line: Access = {
    time: exchange.at,
    level: error === null ? 'info' : levelOf(error.origin),
    request_id: exchange.id,
    client_request_id: exchange.clientRequestId,
    trace_id: exchange.traceId,
    key,
    plan: key === null ? null : exchange.key.plan.name,
    surface: exchange.surface,
    model: model?.id ?? null,
    provider,
    stream: exchange.stream,
    status,
    code: error?.code ?? null,
    input_tokens: billing?.usage.input ?? null,
    output_tokens: billing?.usage.output ?? null,
    cached_tokens: billing?.usage.cached ?? null,
    usage_source: billing?.usage.source ?? null,
    held_rial: ending === null ? null : exchange.estimateRial,
    cost_rial: billing?.cost ?? null,
    ttft_ms: ttftMs,
    duration_ms: duration,
    upstream_ms: upstreamMs,
    gateway_ms: gatewayMs,
    retries: Math.max(0, tried.length - 1),
    ended_by: billing?.endedBy ?? null,
    upstream_request_id: ran.billable?.upstreamRequestId ?? null,
  }
  log.access(line)
  return line
}

/** How a try counts. A code that is not ours is the provider's own, of a refusal that was passed on: the request's fault. */
function resultOf(result: string): string {
  if (result === 'answered') return 'ok'
  if (result === 'client_closed') return 'aborted'
  return CODES.has(result) ? result : 'upstream_rejected'
}

/** A request that was turned away before anybody was asked who it is. Returns its line. */
export function reportTurnedAway(id: string, at: number, error: GatewayError, log: Log, metrics: Metrics): Access {
  metrics.refused(error.code, null)
  const line: Access = {
    time: at,
    level: levelOf(error.origin),
    request_id: id,
    client_request_id: null,
    trace_id: null,
    key: null,
    plan: null,
    surface: null,
    model: null,
    provider: null,
    stream: false,
    status: error.status,
    code: error.code,
    input_tokens: null,
    output_tokens: null,
    cached_tokens: null,
    usage_source: null,
    held_rial: null,
    cost_rial: null,
    ttft_ms: null,
    duration_ms: 0,
    upstream_ms: null,
    gateway_ms: null,
    retries: 0,
    ended_by: null,
    upstream_request_id: null,
  }
  log.access(line)
  return line
}

function providerOf(model: string): string {
  return model.slice(0, model.indexOf('/'))
}
