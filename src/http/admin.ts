import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Address } from '../config/config.js'

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

export interface Ops {
  readonly host: string
  readonly port: number
  /** Stops listening; answers under way may end within a second. */
  close(): Promise<void>
}

/**
 * The ops listener: `/metrics`, `/livez`, `/readyz` (503 with the reasons while a check fails; `?verbose` lists them all). It only reads.
 * Rejects when the address can not be had.
 */
export async function startOps(options: OpsOptions): Promise<Ops> {
  const server = createServer({ maxHeaderSize: 8192, headersTimeout: 5000, requestTimeout: 10_000, connectionsCheckingInterval: 1000 })
  server.keepAliveTimeout = 65_000
  server.timeout = 70_000
  server.maxConnections = 64
  server.on('request', (request, response) => {
    answer(request, options).then(
      reply => send(response, reply),
      error => {
        options.failed(error)
        send(response, text(500, 'internal error\n'))
      },
    )
  })
  const { host, port } = options.address
  await new Promise<void>((resolve, reject) => {
    server.once('error', cause => reject(new Error(`ops listener: can not listen on ${host}:${port}: ${cause.message}`, { cause })))
    server.listen({ host, port }, resolve)
  })
  server.removeAllListeners('error')
  server.on('error', options.failed)
  const bound = server.address() as AddressInfo
  return {
    host: bound.address,
    port: bound.port,
    close: () =>
      new Promise(resolve => {
        const patience = setTimeout(() => server.closeAllConnections(), 1000)
        server.close(() => {
          clearTimeout(patience)
          resolve()
        })
        server.closeIdleConnections()
      }),
  }
}

interface Reply {
  readonly status: number
  readonly contentType: string
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
}

function text(status: number, body: string, headers: Readonly<Record<string, string>> = {}): Reply {
  return { status, contentType: 'text/plain; charset=utf-8', body, headers }
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

/** A body that the request may have is not read: the connection ends instead of waiting for it. */
function send(response: ServerResponse, { status, contentType, body, headers }: Reply): void {
  const request = response.req
  const hasBody = request.headers['transfer-encoding'] !== undefined || Number(request.headers['content-length'] ?? 0) > 0
  response.writeHead(status, {
    'content-type': contentType,
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    ...(hasBody ? { connection: 'close' } : {}),
    ...headers,
  })
  response.end(body)
}
