import { chmodSync, lstatSync, unlinkSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { pipeline } from 'node:stream/promises'
import { isMainThread } from 'node:worker_threads'
import { type Live, tell } from './control/live.js'
import { filter, OPERATIONS, type Operations } from './control/operations.js'
import { type Address, addressOf, socketOf } from './control/place.js'
import { decode, encode, encodeRecord, RequestError } from './control/wire.js'
import type { SqliteLedger } from './ledger/sqlite.js'
import type { UsageFilter } from './ledger/usage.js'

export interface ControlOptions {
  readonly ledger: SqliteLedger
  /** The ledger's path, as configured: the socket lies beside it. */
  readonly path: string
  /** What `POST /watch` tells of; without it there is nothing to watch. */
  readonly live?: Live
  /** Hears what went wrong with an answer; whoever asked gets its message too. */
  readonly failed: (error: unknown) => void
}

/** Answers the command line while the gateway has the ledger's file to itself. */
export interface Control {
  readonly socket: string
  /** Stops listening and removes the socket; answers under way may end within a second. */
  close(): Promise<void>
}

const BODY_MAX = 64 * 1024
/** Its owner alone gets one, so this bounds a script that runs away. Node cuts those beyond it off without a word. */
const CONNECTIONS_MAX = 1024

/**
 * Listens on a Unix socket beside the ledger's file, for its owner alone (mode 0600): whoever may read and write the file may do so here.
 * One operation is one `POST /<name>` with JSON, see control/operations.ts; `POST /records` is answered with a line of JSON per record,
 * `POST /watch` with one for each request as it ends, until the asker leaves.
 * `null` for a ledger without a place for a socket. A socket that a crash has left is replaced; rejects where another process answers on it,
 * or it can not be made.
 */
export async function startControl({ ledger, path, live, failed }: ControlOptions): Promise<Control | null> {
  const socket = socketOf(path)
  if (socket === null) return null
  const address = addressOf(socket)
  const server = createServer({ maxHeaderSize: 8192, headersTimeout: 5000, requestTimeout: 10_000, connectionsCheckingInterval: 1000 })
  server.maxConnections = CONNECTIONS_MAX
  const watchers = new Set<{ readonly end: () => void }>()
  const watch = (asked: Live, response: ServerResponse): void => {
    const watcher = tell(response, asked)
    watchers.add(watcher)
    response.once('close', () => watchers.delete(watcher))
  }
  server.on('request', (request, response) => {
    if (request.url === '/watch' && request.method === 'POST' && live !== undefined) {
      request.resume()
      watch(live, response)
      return
    }
    answer(ledger, request, response).catch(error => {
      if (!(error instanceof RequestError)) failed(error)
      fail(response, error, ledger.failure)
    })
  })
  try {
    await removeStale(address.path, socket)
    await listen(server, address.path)
    chmodSync(address.path, 0o600)
  } catch (error) {
    server.close()
    address.close()
    throw error
  }
  server.on('error', failed)
  let closed: Promise<void> | undefined
  return {
    socket,
    close: () => {
      for (const { end } of watchers) end()
      closed ??= close(server, address)
      return closed
    },
  }
}

/** The mask counts at once, `chmod` only a moment later; but it is the whole process's, and threads may not change it. */
function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    const mask = isMainThread ? process.umask(0o177) : null
    try {
      server.listen(path, () => {
        server.removeListener('error', reject)
        resolve()
      })
    } finally {
      if (mask !== null) process.umask(mask)
    }
  })
}

function close(server: Server, address: Address): Promise<void> {
  return new Promise(resolve => {
    const patience = setTimeout(() => server.closeAllConnections(), 1000)
    server.close(() => {
      clearTimeout(patience)
      address.close()
      resolve()
    })
    server.closeIdleConnections()
  })
}

/** Whoever listens has the ledger open; the ledger is ours, so a socket that nobody answers is what a crash has left. */
async function removeStale(path: string, shown: string): Promise<void> {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found === undefined) return
  if (!found.isSocket()) throw new Error(`${shown} is in the way and is no socket: move it away`)
  if (await answers(path)) throw new Error(`another process answers on ${shown}: stop it`)
  unlinkSync(path)
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const connection = connect(path, () => {
      connection.destroy()
      resolve(true)
    })
    connection.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED' || error.code === 'ENOENT') resolve(false)
      else reject(error)
    })
  })
}

async function answer(ledger: SqliteLedger, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const name = (request.url ?? '').slice(1)
  if (name !== 'records' && !Object.hasOwn(OPERATIONS, name)) {
    return reply(response, 404, {
      error: `there is no operation ${JSON.stringify(name)}; there are ${Object.keys(OPERATIONS).join(', ')}, records`,
    })
  }
  if (request.method !== 'POST') return reply(response, 405, { error: 'an operation is a POST' })
  const asked = await body(request)
  if (name === 'records') return records(ledger, filter(asked as UsageFilter), response)
  // Each operation checks what it is given.
  const operation = OPERATIONS[name as keyof Operations] as (ledger: SqliteLedger, asked: object) => Promise<unknown>
  reply(response, 200, await operation(ledger, asked))
}

async function records(ledger: SqliteLedger, query: UsageFilter, response: ServerResponse): Promise<void> {
  const lines = async function* () {
    for await (const page of ledger.pages(query)) yield `${page.map(encodeRecord).join('\n')}\n`
  }
  response.writeHead(200, { 'content-type': 'application/x-ndjson' })
  try {
    await pipeline(lines, response)
  } catch (error) {
    // The reader may leave when it has seen enough.
    if ((error as NodeJS.ErrnoException).code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error
  }
}

async function body(request: IncomingMessage): Promise<object> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > BODY_MAX) throw new RequestError(`a body has at most ${BODY_MAX} bytes`)
    chunks.push(chunk)
  }
  const text = Buffer.concat(chunks).toString('utf8')
  let value: unknown
  try {
    value = decode(text === '' ? '{}' : text)
  } catch (cause) {
    throw new RequestError(`the body is no JSON: ${(cause as Error).message}`, { cause })
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  throw new RequestError('the body is a JSON object')
}

/** A stream that has begun is cut off, which its reader notices. */
function fail(response: ServerResponse, error: unknown, failure: string | null): void {
  if (response.headersSent) {
    response.destroy()
    return
  }
  const message = failure ?? (error instanceof Error ? error.message : String(error))
  reply(response, error instanceof RequestError ? 400 : 500, { error: message })
}

function reply(response: ServerResponse, status: number, value: unknown): void {
  const text = `${encode(value)}\n`
  // What was not read of a request must not be taken for the next one.
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text), connection: 'close' })
  response.end(text)
}
