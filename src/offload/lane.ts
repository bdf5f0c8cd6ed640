import { Worker } from 'node:worker_threads'
import type { Config } from '../config/config.js'
import { SRC } from '../paths.js'
import type { Pieces } from '../pieces.js'
import type { AnswerWork, QuestionWork, Told, ToldAnswer, ToldQuestion, ToThread } from './messages.js'
import { unpacked } from './thrown.js'

interface Waiting {
  readonly bytes: number
  /** Where the bytes come from that come back. */
  readonly from: Pieces | null
  readonly resolve: (done: never) => void
  readonly reject: (error: unknown) => void
}

/**
 * One thread, and what waits for it, in the order in which it came. It starts with the first work, and does not keep the process alive. A thread
 * that fails, or whose words can not be read, rejects all that waits for it, and the next work starts another.
 */
export class Lane {
  #worker: Worker | null = null
  #next = 0
  readonly #waiting = new Map<number, Waiting>()
  #configs = new WeakMap<Config, number>()
  #configNumber = 0
  #bytes = 0

  /** Bytes that wait to be worked on. */
  get bytes(): number {
    return this.#bytes
  }

  /** While it is asked, `bytes` is empty. */
  question(bytes: Pieces, asked: Omit<QuestionWork, 'bytes'>, config: Config): Promise<ToldQuestion> {
    const work = { ...asked, bytes: bytes.list }
    return this.#ask(config, bytes.length, (id, number) => ({ kind: 'question', id, config: number, work }), bytes)
  }

  answer(work: AnswerWork, config: Config, bytes: number): Promise<ToldAnswer> {
    return this.#ask(config, bytes, (id, number) => ({ kind: 'answer', id, config: number, work }))
  }

  /** Ends the thread. What it has not answered yet is rejected. */
  async close(): Promise<void> {
    await this.#worker?.terminate()
  }

  #ask<T>(config: Config, bytes: number, message: (id: number, config: number) => ToThread, from: Pieces | null = null): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const id = this.#next++
      const worker = this.#running()
      worker.postMessage(message(id, this.#configOf(config, worker)), from?.owned ?? [])
      this.#waiting.set(id, { bytes, from, resolve, reject })
      this.#bytes += bytes
    })
  }

  #running(): Worker {
    if (this.#worker !== null) return this.#worker
    const worker = new Worker(new URL('offload/thread.js', SRC))
    worker.on('message', (told: Told) => this.#told(told))
    // Whose answer could not be read is not known: none of them would ever be told.
    worker.on('messageerror', error => {
      this.#died(worker, error)
      void worker.terminate()
    })
    worker.on('error', error => this.#died(worker, error))
    worker.on('exit', () => this.#died(worker, new Error('the thread for large bodies ended')))
    // After the listeners: one for messages makes it keep the process alive again.
    worker.unref()
    this.#worker = worker
    this.#configs = new WeakMap()
    return worker
  }

  #configOf(config: Config, worker: Worker): number {
    const known = this.#configs.get(config)
    if (known !== undefined) return known
    const number = this.#configNumber++
    this.#configs.set(config, number)
    const message: ToThread = { kind: 'config', number, config }
    worker.postMessage(message)
    return number
  }

  #told(told: Told): void {
    const waiting = this.#waiting.get(told.id)
    if (waiting === undefined) return
    this.#waiting.delete(told.id)
    this.#bytes -= waiting.bytes
    if (told.bytes !== undefined) waiting.from?.giveBack(told.bytes)
    if ('done' in told) waiting.resolve(told.done as never)
    else waiting.reject(unpacked(told.thrown))
  }

  /** What it was working on has failed; the next work starts another. */
  #died(worker: Worker, error: Error): void {
    // A thread that failed also exits, later: by then another one may be at work.
    if (this.#worker !== worker) return
    this.#worker = null
    for (const waiting of this.#waiting.values()) waiting.reject(error)
    this.#waiting.clear()
    this.#bytes = 0
  }
}
