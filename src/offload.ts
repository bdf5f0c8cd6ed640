import { Worker } from 'node:worker_threads'
import type { Place } from './config/catalog.js'
import type { Config, Key } from './config/config.js'
import type { Body, Endpoint, Estimate } from './endpoints/endpoint.js'
import { type ErrorOptions, GatewayError } from './errors.js'
import { parseBody } from './http/body.js'
import type { Runtime } from './runtime.js'
import { forwardedBody, type Question } from './understand.js'

/** Bodies larger than this are understood on another thread, so that no other request waits for them. Bytes. */
export const INLINE_BYTES_MAX = 128 * 1024

export interface Asking {
  readonly id: number
  readonly bytes: Uint8Array
  readonly surface: Endpoint['surface']
  readonly key: Key
  /** For ids that a translation makes. */
  readonly call: { readonly id: string; readonly created: number }
  /** The config that the request began with, by number. */
  readonly config: number
}

/** To the thread. */
export type ToThread = { readonly kind: 'config'; readonly number: number; readonly config: Config } | ({ readonly kind: 'ask' } & Asking)

/** From the thread: a question without what can be found here again. */
export interface Told {
  readonly id: number
  readonly question?: {
    readonly model: string
    /** `place`: its position among `catalog.targets` of the model. */
    readonly targets: readonly {
      readonly place: number
      readonly outgoing: Uint8Array
      readonly estimate: Estimate
      readonly bound?: number
    }[]
    readonly stream: boolean
    readonly includeUsage: boolean
  }
  readonly error?: { readonly code: string; readonly message: string; readonly options: ErrorOptions }
  /** A fault of ours, not of the request. */
  readonly fault?: string
}

interface Waiting {
  readonly asked: { readonly bytes: Uint8Array; readonly endpoint: Endpoint; readonly runtime: Runtime }
  readonly resolve: (question: Question) => void
  readonly reject: (error: unknown) => void
}

/** The thread on which large bodies are understood. It starts with the first of them, and does not keep the process alive. */
export class Offload {
  #worker: Worker | null = null
  #next = 0
  readonly #waiting = new Map<number, Waiting>()
  #configs = new WeakMap<Config, number>()
  #configNumber = 0

  /** As `understand` does with the parsed bytes: the same question, the same errors. */
  ask(bytes: Uint8Array, endpoint: Endpoint, runtime: Runtime, key: Key, call: Asking['call']): Promise<Question> {
    return new Promise((resolve, reject) => {
      const id = this.#next++
      const worker = this.#running()
      const message: ToThread = { kind: 'ask', id, bytes, surface: endpoint.surface, key, call, config: this.#configOf(runtime, worker) }
      worker.postMessage(message)
      this.#waiting.set(id, { asked: { bytes, endpoint, runtime }, resolve, reject })
    })
  }

  /** Ends the thread. What it has not answered yet is rejected. */
  async close(): Promise<void> {
    await this.#worker?.terminate()
  }

  #running(): Worker {
    if (this.#worker !== null) return this.#worker
    const worker = new Worker(new URL('./offload-thread.js', import.meta.url))
    worker.on('message', (told: Told) => this.#told(told))
    worker.on('error', error => this.#died(worker, error))
    worker.on('exit', () => this.#died(worker, new Error('the thread for large bodies ended')))
    // After the listeners: one for messages makes it keep the process alive again.
    worker.unref()
    this.#worker = worker
    this.#configs = new WeakMap()
    return worker
  }

  #configOf({ config }: Runtime, worker: Worker): number {
    const known = this.#configs.get(config)
    if (known !== undefined) return known
    const number = this.#configNumber++
    this.#configs.set(config, number)
    const message: ToThread = { kind: 'config', number, config }
    worker.postMessage(message)
    return number
  }

  #told({ id, question, error, fault }: Told): void {
    const waiting = this.#waiting.get(id)
    if (waiting === undefined) return
    this.#waiting.delete(id)
    if (error !== undefined) waiting.reject(new GatewayError(error.code, error.message, error.options))
    else if (question === undefined) waiting.reject(new Error(`the thread for large bodies failed: ${fault}`))
    else {
      try {
        waiting.resolve(questionOf(question, waiting.asked))
      } catch (failure) {
        waiting.reject(failure)
      }
    }
  }

  /** What it was working on has failed; the next large body starts another. */
  #died(worker: Worker, error: Error): void {
    // A thread that failed also exits, later: by then another one may be at work.
    if (this.#worker !== worker) return
    this.#worker = null
    for (const waiting of this.#waiting.values()) waiting.reject(error)
    this.#waiting.clear()
  }
}

function questionOf(told: NonNullable<Told['question']>, { bytes, endpoint, runtime }: Waiting['asked']): Question {
  const model = runtime.catalog.find(told.model)
  if (model === undefined) throw new Error(`model ${told.model} is not in this config`)
  const places = runtime.catalog.targets(model)
  let parsed: Body | undefined
  return {
    ...told,
    model,
    targets: told.targets.map(({ place: position, ...target }) => {
      const place = places[position] as Place
      return {
        ...place,
        ...target,
        // Translations of answers look into it, and shapes: it costs a second parse, here.
        get body() {
          parsed ??= parseBody(bytes) as Body
          return forwardedBody(parsed, endpoint, place.model, told.stream)
        },
      }
    }),
  }
}
