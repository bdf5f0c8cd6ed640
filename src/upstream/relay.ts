import type { ServerResponse } from 'node:http'
import { asGatewayError, GatewayError, isGatewayError } from '../errors.js'
import type { JsonObject } from '../json.js'
import type { Attempt } from './attempt.js'
import type { AnswerStream } from './stream.js'

/** A comment keeps a silent stream alive this often. Milliseconds. */
const PING_MS = 15_000

export interface RelayFacts {
  readonly response: ServerResponse
  readonly attempt: Attempt
  readonly stream: AnswerStream
  /** For a client that stops reading. */
  readonly writeTimeoutMs: number
  /** Policies that watch: the head first, then each chunk. What they throw cuts the answer off. `null`: nobody does. */
  readonly watch: { head(): void; event(chunk: JsonObject): void } | null
  /** When the first event is told; a comment is none. */
  readonly begun: () => void
}

/** How a stream ended: `error` is `null` when it is whole. */
export interface Relayed {
  readonly error: GatewayError | null
}

/**
 * Passes one streamed answer on to the client, each event as it comes, with back-pressure both ways. The head has been sent. `ended` resolves
 * when the provider's part is over, and leaves the last bytes (`[DONE]`, or the error event) to the caller. It never rejects.
 */
export class StreamRelay {
  readonly ended: Promise<Relayed>
  readonly #facts: RelayFacts
  #resolve!: (relayed: Relayed) => void
  readonly #ping: NodeJS.Timeout
  #writing: NodeJS.Timeout | null = null
  #listening = true
  #over = false
  #first = true
  #cut: GatewayError | null = null
  /** What has come in this turn. */
  #text = ''

  constructor(facts: RelayFacts) {
    this.#facts = facts
    this.ended = new Promise(resolve => {
      this.#resolve = resolve
    })
    this.#ping = setTimeout(this.#sendPing, PING_MS)
    // Begun for its long silence alone: the head goes out with a comment, else not even that would reach the client.
    if (!facts.stream.begun) this.#sendPing()
    const watch = facts.watch
    if (watch !== null) this.#guard(() => watch.head())
    facts.stream.attach({
      write: this.#write,
      done: () => this.#end(null),
      failed: error => this.#end(this.#cut ?? this.#facts.attempt.interrupted(error)),
      ...(watch === null ? {} : { observe: chunk => this.#guard(() => watch.event(chunk)) }),
    })
  }

  /** The client has left: nothing more is written to it, and a provider that was waiting for it goes on. */
  deafen(): void {
    this.#listening = false
    this.#stopWriting()
    if (!this.#over) this.#facts.attempt.drain()
  }

  readonly #write = (text: string): void => {
    // A comment is no beginning.
    if (this.#first && this.#facts.stream.told > 0) {
      this.#first = false
      this.#facts.begun()
    }
    this.#ping.refresh()
    if (!this.#listening || this.#cut !== null) return
    if (this.#text === '') process.nextTick(this.#send)
    this.#text += text
  }

  /** All that came in one read is one piece: Node would send it together all the same, but each event in a frame that costs as much as the event. */
  readonly #send = (): void => {
    if (!this.#put() && this.#writing === null) this.#wait()
  }

  /** False: the client has not taken it yet. */
  #put(): boolean {
    const text = this.#text
    this.#text = ''
    return text === '' || !this.#listening || this.#facts.response.write(text)
  }

  /** The client reads slower than the provider writes: the provider waits, and so do we, but not for ever. */
  #wait(): void {
    const { response, attempt, writeTimeoutMs } = this.#facts
    attempt.pause()
    this.#writing = setTimeout(() => response.destroy(), writeTimeoutMs)
    response.once('drain', this.#drained)
  }

  readonly #drained = (): void => {
    this.#stopWriting()
    if (!this.#over) this.#facts.attempt.resume()
  }

  #stopWriting(): void {
    if (this.#writing === null) return
    clearTimeout(this.#writing)
    this.#writing = null
    this.#facts.response.removeListener('drain', this.#drained)
  }

  readonly #sendPing = (): void => {
    if (this.#over) return
    if (this.#listening && this.#writing === null) this.#facts.response.write(': ping\n\n')
    this.#ping.refresh()
  }

  #guard(watch: () => void): void {
    if (this.#cut !== null) return
    try {
      watch()
    } catch (fault) {
      const cut = cutOff(fault)
      this.#cut = cut
      queueMicrotask(() => this.#facts.attempt.abort(cut))
    }
  }

  #end(error: GatewayError | null): void {
    if (this.#over) return
    this.#over = true
    clearTimeout(this.#ping)
    this.#put()
    // The time for the rest is that of who writes the end.
    this.#stopWriting()
    this.#resolve({ error: this.#cut ?? error })
  }
}

/** What the client is told when a policy throws at what passes: the policy's own refusal, if it is one. */
export function cutOff(fault: unknown): GatewayError {
  return isGatewayError(fault)
    ? asGatewayError(fault)
    : new GatewayError('internal_error', 'A policy cut the answer off.', { cause: fault })
}
