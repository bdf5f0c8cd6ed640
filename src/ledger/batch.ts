import { unavailable } from './unavailable.js'

/** What a batch is written to. Between two batches nothing is half done. */
export interface Store {
  /** Writes all that the operations of a batch have changed, in one transaction. True when there was anything to write. Throws: outcome unknown. */
  commit(): boolean
  /** Gives up what a batch has begun to write. */
  rollback(): void
  /** Resolves when all that was committed is as durable as was promised. */
  sync(): Promise<void>
  /** What is to be done between two batches; `undefined` when there is nothing. */
  tidy(): Promise<void> | undefined
  /** Whether an error that an operation threw means that the store itself is broken; any other is the operation's own. */
  isBroken(error: unknown): boolean
}

/** Sees each batch that wrote: the seconds from its first operation to its durability, and its number of operations. */
export type ObserveCommit = (seconds: number, operations: number) => void

// 256 operations run in about 2 ms: longer must nothing hold up the event loop.
const OPERATIONS_MAX = 256

interface Pending {
  readonly run: () => unknown
  readonly resolve: (value: never) => void
  readonly reject: (error: unknown) => void
  /** Set when it has thrown for a reason of its own. */
  error?: unknown
  value?: unknown
}

/**
 * Group commit: collects the operations of one turn of the event loop, runs them in their order in one transaction, and
 * resolves them when that is durable; meanwhile the next batch gathers. An operation that throws is rejected alone, so it must throw
 * before it changes anything. Once the store fails, the outcome of that batch is unknown: it and all that follows are rejected.
 */
export class Batches {
  readonly #store: Store
  readonly #observe: ObserveCommit
  #queue: Pending[] = []
  #tasks: { readonly run: () => Promise<void>; readonly resolve: () => void; readonly reject: (error: unknown) => void }[] = []
  #running = false
  #idle: (() => void)[] = []
  #failure: string | null = null

  constructor(store: Store, observe: ObserveCommit) {
    this.#store = store
    this.#observe = observe
  }

  /** Why nothing is run any more, in words; `null` while all is well. */
  get failure(): string | null {
    return this.#failure
  }

  run<T>(operation: () => T): Promise<T> {
    if (this.#failure !== null) return Promise.reject(unavailable(this.#failure))
    return new Promise((resolve, reject) => {
      this.#queue.push({ run: operation, resolve, reject })
      this.#schedule()
    })
  }

  /** Runs a task when nothing is being written, and writes nothing until it is over. A task that rejects has failed the store. */
  between(task: () => Promise<void>): Promise<void> {
    if (this.#failure !== null) return Promise.reject(unavailable(this.#failure))
    return new Promise((resolve, reject) => {
      this.#tasks.push({ run: task, resolve, reject })
      this.#schedule()
    })
  }

  /** Lets what was asked for come to its end; what is asked for after this is rejected with `reason`. */
  async stop(reason: string): Promise<void> {
    const ended = this.#running ? new Promise<void>(resolve => this.#idle.push(resolve)) : undefined
    this.#failure ??= reason
    await ended
  }

  /** The store is known to be of no use any more: what waits and all that follows is rejected. What is being written comes to its end. */
  fail(error: unknown): void {
    if (this.#failure === null) this.#fail(error, [])
  }

  #schedule(): void {
    if (this.#running) return
    this.#running = true
    // All that the other callbacks of this turn have to say joins the batch.
    setImmediate(() => void this.#next())
  }

  async #next(): Promise<void> {
    const batch = this.#take()
    try {
      if (batch.length > 0) await this.#write(batch)
      await this.#store.tidy()
      for (let task = this.#tasks[0]; task !== undefined; task = this.#tasks[0]) {
        await task.run()
        this.#tasks.shift()
        task.resolve()
      }
    } catch (error) {
      this.#fail(error, batch)
    }
    if (this.#queue.length > 0 || this.#tasks.length > 0) {
      setImmediate(() => void this.#next())
      return
    }
    this.#running = false
    for (const resolve of this.#idle.splice(0)) resolve()
  }

  #take(): Pending[] {
    const batch = this.#queue
    this.#queue = batch.length > OPERATIONS_MAX ? batch.splice(OPERATIONS_MAX) : []
    return batch
  }

  async #write(batch: Pending[]): Promise<void> {
    const started = performance.now()
    for (const operation of batch) this.#attempt(operation)
    if (this.#store.commit()) {
      await this.#store.sync()
      this.#observe((performance.now() - started) / 1000, batch.length)
    }
    for (const { resolve, reject, value, error } of batch) {
      if (error === undefined) resolve(value as never)
      else reject(error)
    }
  }

  #attempt(operation: Pending): void {
    try {
      operation.value = operation.run()
    } catch (error) {
      if (this.#store.isBroken(error)) throw error
      operation.error = error
    }
  }

  #fail(error: unknown, batch: Pending[]): void {
    const reason = error instanceof Error ? error.message : String(error)
    this.#failure = `the ledger could not be written: ${reason}. What was under way then may or may not be in it. Remove the cause, then restart the gateway.`
    this.#store.rollback()
    const rejection = unavailable(this.#failure, error)
    // Promises that were resolved before `tidy` failed stay resolved: those batches are durable.
    for (const { reject } of [...batch, ...this.#queue.splice(0), ...this.#tasks.splice(0)]) reject(rejection)
  }
}
