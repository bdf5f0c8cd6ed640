import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { Readable, Writable } from 'node:stream'

/** A request's body on its way in, piece by piece. */
class Incoming extends Readable {
  readonly method = 'POST'
  complete = false
  readonly headers: IncomingHttpHeaders

  constructor(headers: IncomingHttpHeaders) {
    super()
    this.headers = headers
    // node:http tells nobody, either, where nobody listens.
    this.on('error', () => {})
  }

  override _read(): void {}
}

/** An answer on its way out: what node:http makes of it is not looked at, only that it is whole. */
class Outgoing extends Writable {
  headersSent = false
  statusCode = 0
  readonly req: Incoming
  readonly #client: Client

  constructor(req: Incoming, client: Client) {
    super({ highWaterMark: 512, decodeStrings: true })
    this.req = req
    this.#client = client
    this.on('error', () => {})
  }

  writeHead(status: number): void {
    this.headersSent = true
    this.statusCode = status
    this.#client.status = status
  }

  writeContinue(): void {}

  override _write(chunk: Buffer, _: string, taken: () => void): void {
    this.#client.receive(chunk, taken)
  }

  override _final(done: () => void): void {
    this.#client.ended = true
    done()
  }
}

/** One client: what it sends, what it has received, and when it leaves. */
export class Client {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  status = 0
  text = ''
  /** The last byte has come. */
  ended = false
  /** It has left, or the gateway died under it. */
  left = false
  readonly #incoming: Incoming
  readonly #outgoing: Outgoing
  readonly #slow: boolean
  #unsent: Buffer
  #taken: (() => void) | null = null

  /** `slow`: reads only when it is told to. */
  constructor(body: Buffer, headers: Readonly<Record<string, string>>, slow: boolean) {
    this.#unsent = body
    this.#slow = slow
    this.#incoming = new Incoming({ 'content-length': String(body.length), 'content-type': 'application/json', ...headers })
    this.#outgoing = new Outgoing(this.#incoming, this)
    this.request = this.#incoming as unknown as IncomingMessage
    this.response = this.#outgoing as unknown as ServerResponse
  }

  /** What is left of the body has gone. */
  get sent(): boolean {
    return this.#incoming.complete
  }

  get waiting(): boolean {
    return this.#taken !== null
  }

  /** Received in full, under a status of success. */
  get whole(): boolean {
    if (this.left || this.status !== 200 || !this.ended) return false
    return this.text.startsWith('{') || this.text.endsWith('data: [DONE]\n\n')
  }

  /** Sends the next bytes of its body. */
  send(bytes: number): void {
    if (this.left || this.sent) return
    this.#incoming.push(this.#unsent.subarray(0, bytes))
    this.#unsent = this.#unsent.subarray(bytes)
    if (this.#unsent.length > 0) return
    this.#incoming.complete = true
    this.#incoming.push(null)
  }

  receive(chunk: Buffer, taken: () => void): void {
    if (!this.left) this.text += chunk.toString('latin1')
    if (this.#slow && !this.left) this.#taken = taken
    else taken()
  }

  /** Takes what waits for it. */
  read(): void {
    const taken = this.#taken
    this.#taken = null
    taken?.()
  }

  leave(): void {
    if (this.left || (this.ended && !this.waiting)) return
    this.left = true
    if (!this.sent) this.#incoming.destroy(new Error('aborted'))
    this.#outgoing.destroy()
    this.read()
  }
}
