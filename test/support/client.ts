import { type IncomingMessage, request } from 'node:http'
import { conform } from './api.js'
import { AUTH } from './gateway.js'

/** One request on a connection of its own, as it is seen from the client's end. */
export interface Talk {
  readonly head: Promise<IncomingMessage>
  /** What has come of the body. */
  text(): string
  /** Each piece of the body, and when it came (`performance.now()`). */
  readonly pieces: { readonly at: number; readonly text: string }[]
  /** Resolves once the body so far has `part` in it. Rejects when it ends without. */
  until(part: string): Promise<void>
  /** The body ended as it should, or the connection was cut. */
  readonly ended: Promise<'whole' | 'cut'>
  /** Leaves at once. The moment of it. */
  abort(): number
}

export interface TalkOptions {
  readonly body?: unknown
  readonly headers?: Record<string, string>
  /** False: nothing of the body is read until `(await head).resume()`. */
  readonly read?: boolean
}

/** POSTs a body (GETs where there is none). Throws, where no test can catch it, when a gateway's answer is not as config/openapi.yaml has it. */
export function talk(url: string, { body, headers = AUTH, read = true }: TalkOptions = {}): Talk {
  const pieces: { at: number; text: string }[] = []
  let waiting: { part: string; resolve: () => void; reject: (error: Error) => void }[] = []
  const text = (): string => pieces.map(piece => piece.text).join('')
  const look = (over: boolean): void => {
    const seen = text()
    waiting = waiting.filter(({ part, resolve, reject }) => {
      const found = seen.includes(part)
      if (found) resolve()
      else if (over) reject(new Error(`the answer ended without ${JSON.stringify(part)}: ${seen.slice(-500)}`))
      return !found && !over
    })
  }
  const json = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
  const outgoing = request(url, {
    method: json === undefined ? 'GET' : 'POST',
    agent: false,
    headers: {
      ...headers,
      ...(json === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(json) }),
    },
  })
  let over: (how: 'whole' | 'cut') => void
  const ended = new Promise<'whole' | 'cut'>(resolve => {
    over = resolve
  })
  const head = new Promise<IncomingMessage>((resolve, reject) => {
    outgoing.on('error', error => {
      over('cut')
      look(true)
      reject(error)
    })
    outgoing.on('response', response => {
      if (read) response.on('data', (chunk: Buffer) => take(chunk))
      response.on('error', () => {})
      response.on('close', () => {
        if (read) check(url, response, text(), json === undefined ? 'GET' : 'POST')
        over(response.complete ? 'whole' : 'cut')
        look(true)
      })
      resolve(response)
    })
  })
  head.catch(() => {})
  const take = (chunk: Buffer): void => {
    pieces.push({ at: performance.now(), text: chunk.toString('utf8') })
    look(false)
  }
  outgoing.end(json)
  return {
    head,
    pieces,
    text,
    ended,
    until: part =>
      new Promise((resolve, reject) => {
        waiting.push({ part, resolve, reject })
        look(false)
      }),
    abort: () => {
      const at = performance.now()
      outgoing.destroy()
      return at
    },
  }
}

/** An answer of a gateway that is whole, or a stream as far as it came, is as the API's document has it. */
function check(url: string, response: IncomingMessage, body: string, method: string): void {
  const id = response.headers['x-request-id']
  if (typeof id !== 'string' || !id.startsWith('req_')) return
  if (!response.complete && response.headers['content-type'] === 'application/json') return
  const { pathname } = new URL(url)
  conform({
    method,
    path: pathname,
    status: response.statusCode ?? 0,
    headers: new Headers(response.headers as Record<string, string>),
    body,
  })
}
