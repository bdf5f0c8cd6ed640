import { Worker } from 'node:worker_threads'
import { SRC } from '../paths.js'
import type { CountWork, FromTokenizer, ToTokenizer } from './messages.js'

/** What a module said of a request, or why it did not. `resting`: it failed so often that it is not asked for a while. */
export type Counted =
  | { readonly kind: 'counted'; readonly tokens: number }
  | { readonly kind: 'timeout' | 'failed' | 'resting'; readonly reason: string }

/** A module may take so long to be imported. Milliseconds. */
const LOAD_MS = 10_000
/** After so many failures in a row it is left alone for so long: each request would wait for nothing. */
const FAILURES_MAX = 3
const REST_MS = 10_000
/** Megabytes that it may use: what goes beyond ends its thread, and not the gateway. */
const HEAP_MB = 512

interface Waiting {
  readonly timer: NodeJS.Timeout
  readonly resolve: (counted: Counted) => void
}

/** A module that counts tokens, on a thread of its own. What it takes too long for is cut off, together with the thread. Never rejects. */
export class Tokenizer {
  readonly #url: URL
  readonly #now: () => number
  #worker: Worker | null = null
  #next = 0
  readonly #waiting = new Map<number, Waiting>()
  #failures = 0
  #restsUntil = 0

  /** `now`: milliseconds, monotonic. */
  constructor(url: URL, now: () => number) {
    this.#url = url
    this.#now = now
  }

  /** Imports the module. Throws an Error that says why there is nothing that counts. */
  start(): Promise<void> {
    const worker = this.#start()
    return new Promise((resolve, reject) => {
      const failed = (reason: string) => {
        clearTimeout(timer)
        reject(new Error(reason))
        this.#end(worker, reason)
      }
      const timer = setTimeout(() => failed(`it was not there after ${LOAD_MS / 1000} s`), LOAD_MS)
      worker.once('error', error => failed(String(error?.message ?? error)))
      worker.once('exit', () => failed('its thread ended'))
      worker.once('message', (message: FromTokenizer) => {
        if (message.kind === 'none') return failed(message.reason)
        clearTimeout(timer)
        resolve()
      })
    })
  }

  /** Tokens of a request's input: a whole number from 1 to 10^9. Settles within `timeoutMs`. */
  count(work: CountWork, timeoutMs: number): Promise<Counted> {
    if (this.#now() < this.#restsUntil) return Promise.resolve({ kind: 'resting', reason: 'it failed again and again' })
    const worker = this.#worker ?? this.#start()
    return new Promise(resolve => {
      const id = this.#next++
      const timer = setTimeout(() => {
        this.#failed()
        this.#settle(id, { kind: 'timeout', reason: `it took longer than ${timeoutMs} ms` })
        this.#end(worker, 'its thread was ended, since another request took too long')
      }, timeoutMs)
      this.#waiting.set(id, { timer, resolve })
      const message: ToTokenizer = { id, ...work }
      worker.postMessage(message)
    })
  }

  /** Ends the thread. What it has not counted has failed. */
  async close(): Promise<void> {
    const worker = this.#worker
    if (worker !== null) await this.#end(worker, 'the gateway has let go of it')
  }

  #start(): Worker {
    // Nothing of the gateway's: neither its secrets nor its output, where a prompt could end up.
    const worker = new Worker(new URL('counting/thread.js', SRC), {
      workerData: this.#url.href,
      env: {},
      execArgv: [],
      stdin: false,
      stdout: true,
      stderr: true,
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
    })
    worker.stdout.resume()
    worker.stderr.resume()
    worker.on('message', (message: FromTokenizer) => this.#told(worker, message))
    worker.on('error', () => this.#died(worker))
    worker.on('exit', () => this.#died(worker))
    // After the listeners: one for messages makes it keep the process alive again.
    worker.unref()
    this.#worker = worker
    return worker
  }

  #told(worker: Worker, message: FromTokenizer): void {
    if (message.kind === 'counted') {
      this.#failures = 0
      this.#settle(message.id, { kind: 'counted', tokens: message.tokens })
    } else if (message.kind === 'failed') {
      this.#failed()
      this.#settle(message.id, { kind: 'failed', reason: message.reason })
    } else if (message.kind === 'none') {
      this.#failed()
      this.#end(worker, 'it can not be imported any more')
    }
  }

  #died(worker: Worker): void {
    if (this.#worker !== worker) return
    this.#failed()
    this.#end(worker, 'its thread ended')
  }

  /** The thread is gone for all that waits for it; the next request starts another. */
  #end(worker: Worker, reason: string): Promise<unknown> {
    if (this.#worker === worker) {
      this.#worker = null
      for (const id of [...this.#waiting.keys()]) this.#settle(id, { kind: 'failed', reason })
    }
    return worker.terminate()
  }

  #settle(id: number, counted: Counted): void {
    const waiting = this.#waiting.get(id)
    if (waiting === undefined) return
    this.#waiting.delete(id)
    clearTimeout(waiting.timer)
    waiting.resolve(counted)
  }

  #failed(): void {
    if (++this.#failures < FAILURES_MAX) return
    this.#failures = 0
    this.#restsUntil = this.#now() + REST_MS
  }
}
