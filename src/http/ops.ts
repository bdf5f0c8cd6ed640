import type { IncomingMessage } from 'node:http'
import type { Address } from '../config/config.js'
import { type Inner, type Reply, startInner, text } from './inner.js'

/** One condition of being ready. `reason` says, for an operator, what is wrong, or what to know though it is not. */
export interface Check {
  readonly name: string
  readonly ok: boolean
  readonly reason?: string
}

export interface OpsOptions {
  /** Port 0 takes a free one. */
  readonly address: Address
  readonly metrics: { render(accept: string | undefined): Promise<{ readonly contentType: string; readonly body: string }> }
  /** Asked at each `/readyz`. */
  readonly checks: () => readonly Check[]
  /** Hears what went wrong with an answer; the scraper gets a 500 without it. */
  readonly failed: (error: unknown) => void
}

export type Ops = Inner

/**
 * The ops listener: `/metrics`, `/livez`, `/readyz` (503 with the reasons while a check fails; `?verbose` lists them all). It only reads.
 * Rejects when the address can not be had.
 */
export function startOps(options: OpsOptions): Promise<Ops> {
  const { address, failed } = options
  return startInner({ name: 'ops', address, failed, answer: request => answer(request, options) })
}

async function answer(request: IncomingMessage, { metrics, checks }: OpsOptions): Promise<Reply> {
  const [path, query = ''] = (request.url ?? '').split('?', 2)
  if (path !== '/metrics' && path !== '/livez' && path !== '/readyz')
    return text(404, 'not found: this listener has /metrics, /livez, /readyz\n')
  if (request.method !== 'GET' && request.method !== 'HEAD') return text(405, 'method not allowed\n', { allow: 'GET, HEAD' })
  if (path === '/metrics') {
    const { contentType, body } = await metrics.render(request.headers.accept)
    return { status: 200, contentType, body }
  }
  return path === '/livez' ? text(200, 'ok\n') : readiness(checks(), new URLSearchParams(query).has('verbose'))
}

function readiness(checks: readonly Check[], verbose: boolean): Reply {
  const failing = checks.filter(({ ok }) => !ok)
  const shown = verbose ? checks : failing
  const status = failing.length === 0 ? 200 : 503
  const last = failing.length === 0 ? 'ok' : 'not ready'
  return text(status, [...shown.map(line), last, ''].join('\n'))
}

function line({ name, ok, reason }: Check): string {
  const why = reason === undefined ? '' : `: ${reason.replace(/\s+/g, ' ')}`
  return ok ? `[+] ${name}${why}` : `[-] ${name}${why === '' ? ': failed' : why}`
}
