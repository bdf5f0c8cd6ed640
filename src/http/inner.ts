import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Address } from '../config/config.js'

export interface InnerOptions {
  /** What messages call it: `ops`. */
  readonly name: string
  /** Port 0 takes a free one. */
  readonly address: Address
  readonly answer: (request: IncomingMessage) => Reply | Promise<Reply>
  /** Hears what went wrong with an answer; whoever asked gets a 500 without it. */
  readonly failed: (error: unknown) => void
}

export interface Inner {
  readonly host: string
  readonly port: number
  /** Stops listening; answers under way may end within a second. */
  close(): Promise<void>
}

export interface Reply {
  readonly status: number
  readonly contentType: string
  readonly body: string | Buffer
  readonly headers?: Readonly<Record<string, string>>
}

/** A listener for the few who are inside: operators and their programs. It takes no bodies. Rejects when the address can not be had. */
export async function startInner({ name, address: { host, port }, answer, failed }: InnerOptions): Promise<Inner> {
  const server = createServer({ maxHeaderSize: 8192, headersTimeout: 5000, requestTimeout: 10_000, connectionsCheckingInterval: 1000 })
  server.keepAliveTimeout = 65_000
  server.timeout = 70_000
  server.maxConnections = 64
  server.on('request', (request, response) => {
    Promise.resolve(request)
      .then(answer)
      .then(
        reply => send(response, reply),
        error => {
          failed(error)
          send(response, text(500, 'internal error\n'))
        },
      )
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', cause => reject(new Error(`${name} listener: can not listen on ${host}:${port}: ${cause.message}`, { cause })))
    server.listen({ host, port }, resolve)
  })
  server.removeAllListeners('error')
  server.on('error', failed)
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

export function text(status: number, body: string, headers: Readonly<Record<string, string>> = {}): Reply {
  return { status, contentType: 'text/plain; charset=utf-8', body, headers }
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
