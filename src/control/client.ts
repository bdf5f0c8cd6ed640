import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import type { UsageRecord } from '../ledger/ledger.js'
import type { UsageFilter } from '../ledger/usage.js'
import type { LiveEvent } from './live.js'
import type { Answer, Arguments, Operations } from './operations.js'
import { addressOf } from './place.js'
import { decode, decodeRecord, encode } from './wire.js'

/** A running gateway, asked over its control socket. */
export interface Remote {
  /** Rejects with an Error whose message is the gateway's own. */
  ask<Name extends keyof Operations>(name: Name, asked: Arguments<Name>): Promise<Answer<Name>>
  /** Ended records, oldest first. */
  records(query: UsageFilter): AsyncIterable<UsageRecord>
  /** What happens from now on. Ends when the gateway stops, rejects when it breaks off; leaving the loop, or `signal`, ends it. */
  watch(signal: AbortSignal): AsyncIterable<LiveEvent>
}

const PATIENCE_MS = 10_000

/** The gateway that listens on a socket; `null`: nobody does. Throws an Error with a remedy where it may not be spoken to. */
export async function connectTo(socket: string): Promise<Remote | null> {
  const remote: Remote = {
    ask: async (name, asked) => decode(await text(await send(socket, name, asked))) as Answer<typeof name>,
    records: query => lines(socket, 'records', query, decodeRecord),
    watch: signal => lines(socket, 'watch', {}, line => decode(line) as LiveEvent, signal),
  }
  try {
    // Anything that is quickly answered: whoever answers it will answer the rest.
    await text(await send(socket, 'summed', {}, PATIENCE_MS))
    return remote
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ECONNREFUSED') return null
    if (code === 'EACCES' || code === 'EPERM')
      throw new Error(`${socket} is not this user's: run this as the user that runs the gateway.`, { cause: error })
    throw error
  }
}

/** One request on a connection of its own. Resolves with an answer of 200. With `patience`, the answer must have begun by then. */
async function send(socket: string, name: string, asked: object, patience?: number): Promise<IncomingMessage> {
  const address = addressOf(socket)
  const headers = { 'content-type': 'application/json' }
  try {
    const sent = request({ socketPath: address.path, path: `/${name}`, method: 'POST', agent: false, headers })
    if (patience !== undefined) {
      const silent = new Error(`a gateway listens on ${socket}, but has not answered for ${patience / 1000} s: it hangs, or was suspended.`)
      const timer = setTimeout(() => sent.destroy(silent), patience)
      sent.once('close', () => clearTimeout(timer))
    }
    sent.end(encode(asked))
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    if (response.statusCode === 200) return response
    throw new Error(messageOf(await text(response)))
  } finally {
    address.close()
  }
}

async function text(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}

async function* lines<Line>(
  socket: string,
  name: string,
  asked: object,
  read: (line: string) => Line,
  signal?: AbortSignal,
): AsyncGenerator<Line> {
  const response = await send(socket, name, asked)
  response.setEncoding('utf8')
  const leave = (): void => void response.destroy()
  signal?.addEventListener('abort', leave)
  if (signal?.aborted === true) leave()
  let rest = ''
  try {
    for await (const chunk of response as AsyncIterable<string>) {
      const whole = (rest + chunk).split('\n')
      rest = whole.pop() ?? ''
      for (const line of whole) yield read(line)
    }
  } catch (error) {
    if (signal?.aborted === true) return
    if ((error as NodeJS.ErrnoException).code !== 'ECONNRESET') throw error
    throw new Error('the gateway broke off in the midst of its answer: it was stopped, or its log says why', { cause: error })
  } finally {
    signal?.removeEventListener('abort', leave)
    response.destroy()
  }
}

function messageOf(answer: string): string {
  const { error } = decode(answer) as { readonly error?: unknown }
  return typeof error === 'string' ? error : `the gateway's answer can not be read: ${answer.slice(0, 200)}`
}
