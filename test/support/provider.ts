import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { takeTexts } from './canaries.js'
import type { Parsed } from './parsed.js'

/** A request as the provider saw it. */
export interface Seen {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: Parsed
  readonly text: string
  /** Resolves when the connection of this request was closed before its answer was whole. */
  readonly closed: Promise<void>
}

export type Script = (seen: Seen, response: ServerResponse, request: IncomingMessage) => void | Promise<void>

export interface ScriptedProvider {
  /** Base URL, ending in `/v1`. */
  readonly url: string
  readonly port: number
  readonly seen: Seen[]
  /** What it does with the requests from now on. */
  script: Script
  /** Closed, it can listen on its port again. */
  readonly server: Server
  close(): Promise<void>
}

/** The far end in tests: a real server that does what its script says. Ends with the test. */
export async function provider(t: { teardown(fn: () => unknown): unknown }, script: Script = chat()): Promise<ScriptedProvider> {
  const seen: Seen[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    const closed = new Promise<void>(resolve => {
      const { socket } = request
      const gone = () => {
        socket.off('close', gone)
        if (!response.writableFinished) resolve()
      }
      response.once('close', gone)
      // An answer that waits until the one before it is written hears nothing of its connection.
      socket.once('close', gone)
    })
    request.on('error', () => {})
    request.on('data', chunk => chunks.push(chunk))
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString('utf8')
      const one: Seen = {
        path: request.url ?? '',
        headers: request.headers,
        text,
        body: text === '' ? undefined : JSON.parse(text),
        closed,
      }
      seen.push(one)
      takeTexts(text)
      takeSaid(response)
      void self.script(one, response, request)
    })
  })
  server.keepAliveTimeout = 60_000
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const self: ScriptedProvider = {
    url: `http://127.0.0.1:${port}/v1`,
    port,
    seen,
    script,
    server,
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  t.teardown(() => self.close())
  return self
}

/** Takes what an answer says, as it is written. */
function takeSaid(response: ServerResponse): void {
  const { write, end } = response
  const take = (chunk: unknown): void => {
    if (typeof chunk === 'string') takeTexts(chunk)
  }
  response.write = (...given: unknown[]) => {
    take(given[0])
    return write.apply(response, given as never)
  }
  response.end = (...given: unknown[]) => {
    take(given[0])
    return end.apply(response, given as never)
  }
}

export interface Reply {
  readonly text?: string
  readonly usage?: object | null
  readonly delayMs?: number
  readonly finish?: string
}

/** Answers chat completions, whole or streamed as asked, as OpenAI does. */
export function chat({
  text = 'Hello there',
  usage = { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 },
  delayMs = 0,
  finish = 'stop',
}: Reply = {}): Script {
  return async ({ body }, response) => {
    if (delayMs > 0) await new Promise(resolve => setTimeout(resolve, delayMs))
    if (body.stream === true) {
      const base = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1_700_000_000, model: body.model }
      const choice = (delta: object, finish_reason: string | null) => ({
        ...base,
        choices: [{ index: 0, delta, logprobs: null, finish_reason }],
      })
      const chunks = [
        choice({ role: 'assistant', content: '' }, null),
        ...text.split(/(?<= )/).map(content => choice({ content }, null)),
        choice({}, finish),
      ]
      if (body.stream_options?.include_usage === true && usage !== null) chunks.push({ ...base, choices: [], usage } as never)
      sse(response, [...chunks.map(chunk => JSON.stringify(chunk)), '[DONE]'])
      return
    }
    json(response, 200, {
      id: 'chatcmpl-1',
      object: 'chat.completion',
      created: 1_700_000_000,
      model: body.model,
      choices: Array.from({ length: body.n ?? 1 }, (_, index) => ({
        index,
        message: { role: 'assistant', content: text, refusal: null },
        logprobs: null,
        finish_reason: finish,
      })),
      ...(usage === null ? {} : { usage }),
    })
  }
}

export function json(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(typeof body === 'string' ? body : JSON.stringify(body))
}

/** A whole event stream, one `data` per text. */
export function sse(response: ServerResponse, data: readonly string[]): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.end(data.map(text => `data: ${text}\n\n`).join(''))
}

/** An event stream that a script writes piece by piece. */
export interface OpenStream {
  say(content: string): void
  /** The finish, the usage if it was asked for, `[DONE]`, and the end. */
  finish(usage?: object): void
}

/** Begins a stream of chat chunks, role first. */
export function openStream({ body }: Pick<Seen, 'body'>, response: ServerResponse): OpenStream {
  const base = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1_700_000_000, model: body.model }
  const write = (chunk: object): void => void response.write(`data: ${JSON.stringify({ ...base, ...chunk })}\n\n`)
  const choice = (delta: object, finish_reason: string | null) => write({ choices: [{ index: 0, delta, logprobs: null, finish_reason }] })
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  choice({ role: 'assistant', content: '' }, null)
  return {
    say: content => choice({ content }, null),
    finish: usage => {
      choice({}, 'stop')
      if (usage !== undefined && body.stream_options?.include_usage === true) write({ choices: [], usage })
      response.end('data: [DONE]\n\n')
    },
  }
}

/** A script that waits, whoever asks, until it is opened. */
export function gate(then: Script = chat()): { readonly script: Script; open(): void } {
  let open!: () => void
  const opened = new Promise<void>(resolve => {
    open = resolve
  })
  return {
    open,
    script: async (seen, response, request) => {
      await opened
      await then(seen, response, request)
    },
  }
}
