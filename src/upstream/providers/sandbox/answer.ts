import type { Failure, TransportFailure, TransportRequest } from '../provider.js'
import { closing, events } from './chat.js'
import { readCue } from './cue.js'
import type { Fail, SandboxOptions } from './options.js'
import type { Answer, Step } from './playback.js'

/** Bytes that a step of a long text has, as a socket's would. */
const STEP_BYTES = 64 * 1024

const REFUSED: TransportFailure = { kind: 'refused', sent: false, message: 'The sandbox takes no connection.' }
const BROKEN: TransportFailure = { kind: 'broken', sent: true, message: 'The sandbox broke the connection.' }

/** What the sandbox does with a request. `fails` is asked once, where a failure on purpose is due. Never throws. */
export function answer(request: TransportRequest, options: SandboxOptions, fails: () => boolean): Answer {
  const delayMs = options.first_byte ?? 0
  if (options.refuse === true) return { delayMs: 0, head: null, steps: [], ending: REFUSED }
  if (options.hang === true) return { delayMs: Number.POSITIVE_INFINITY, head: null, steps: [], ending: 'end' }
  const fail = options.fail !== undefined && fails() ? options.fail : undefined
  if (fail === undefined && options.reset === 0) return { delayMs, head: null, steps: [], ending: BROKEN }

  const said = readCue(request.body)
  if (said.kind === 'refusal') return refusal(request, said.failure, delayMs)
  if (fail !== undefined && (said.kind === 'json' || fail.after_events === undefined)) return refusal(request, failure(fail), delayMs)

  const cut = fail?.after_events ?? options.reset ?? options.cut
  const broken = fail === undefined && options.reset !== undefined
  const ending = broken ? BROKEN : 'end'
  if (said.kind === 'json') {
    const data = cut === undefined ? said.text : said.text.subarray(0, said.text.length / 2)
    const delay = delayMs + (options.pace ?? 0) * Math.max(0, said.tokens - 1)
    return { delayMs: delay, head: head(request, 200, 'application/json'), steps: inSteps(data), ending }
  }
  const { call } = request
  const chunks = events(said, call, options.pace ?? 0)
  const steps = cut === undefined ? both(chunks, closing(said, call)) : both(first(chunks, cut), fail === undefined ? [] : [told(fail)])
  return { delayMs, head: head(request, 200, 'text/event-stream; charset=utf-8'), steps, ending }
}

function failure(fail: Fail): Failure & { readonly status: number } {
  const status = fail.status ?? 500
  const retryAfter = fail.retry_after ?? (status === 429 ? 1 : undefined)
  const code = fail.code ?? (status === 429 ? 'rate_limit_exceeded' : undefined)
  const message = fail.message ?? `The sandbox fails with status ${status}, as its options say.`
  return { status, message, ...(code === undefined ? {} : { code }), ...(retryAfter === undefined ? {} : { retryAfter }) }
}

function refusal(request: TransportRequest, failed: Failure & { readonly status: number }, delayMs: number): Answer {
  const more: Record<string, string> = failed.retryAfter === undefined ? {} : { 'retry-after': String(failed.retryAfter) }
  const data = JSON.stringify(errorBody(failed))
  return { delayMs, head: head(request, failed.status, 'application/json', more), steps: [{ waitMs: 0, data }], ending: 'end' }
}

function told(fail: Fail): Step {
  return { waitMs: 0, data: `data: ${JSON.stringify(errorBody(failure(fail)))}\n\n` }
}

function errorBody({ status, message, code, param }: Failure & { readonly status: number }) {
  return { error: { message, type: typeOf(status), param: param ?? null, code: code ?? null } }
}

function typeOf(status: number): string {
  if (status === 429) return 'requests'
  return status >= 500 ? 'server_error' : 'invalid_request_error'
}

function head(request: TransportRequest, status: number, type: string, more?: Record<string, string>) {
  return { status, headers: { 'content-type': type, 'x-request-id': `sandbox-${request.call.id}`, ...more } }
}

function* inSteps(bytes: Buffer): Generator<Step> {
  for (let at = 0; at < bytes.length; at += STEP_BYTES) yield { waitMs: 0, data: bytes.subarray(at, at + STEP_BYTES) }
}

function* both(some: Iterable<Step>, more: Iterable<Step>): Generator<Step> {
  yield* some
  yield* more
}

function* first(steps: Iterable<Step>, n: number): Generator<Step> {
  let left = n
  if (left === 0) return
  for (const step of steps) {
    yield step
    if (--left === 0) return
  }
}
