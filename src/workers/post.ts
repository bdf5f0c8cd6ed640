import type { Order, Tidings, Word } from './messages.js'
import type { WorkerProcess } from './worker-process.js'

type Said<Kind extends Word['kind']> = Extract<Word, { readonly kind: Kind }>
/** What a post needs of its worker. */
type Told = Pick<WorkerProcess, 'tell' | 'kill'>

/** The place of one worker, and who has it. */
export class Post {
  /** From 1. */
  readonly number: number
  process: Told | null = null
  /** `leaving`: it takes no more connections, and ends with what it has under way. */
  state: 'starting' | 'up' | 'leaving' | 'ended' = 'starting'
  /** The change that its worker has made ready for last. */
  ready = 0
  since = 0
  pauseMs = 0
  tidings: Tidings | null = null
  /** When those came, of the monotonic clock. */
  told = 0
  /** Looks in a row that found no word of it since the one before. */
  silent = 0
  /** Those who wait for a word of it; with `null` when it is gone. */
  readonly #waiting = new Set<(word: Word | null) => void>()

  constructor(number: number) {
    this.number = number
  }

  /** Tells those who wait for it what it has said. `null`: it is gone. */
  heard(word: Word | null): void {
    for (const hear of [...this.#waiting]) hear(word)
  }

  /** Resolves when it listens; rejects with what it could not do. */
  begun(): Promise<void> {
    return new Promise((resolve, reject) => {
      const hear = (word: Word | null): void => {
        if (word !== null && word.kind !== 'listening' && word.kind !== 'failed') return
        this.#waiting.delete(hear)
        if (word === null) reject(new Error(`worker ${this.number} ended before it had begun`))
        else if (word.kind === 'failed') reject(Object.assign(new Error(word.message), word))
        else resolve()
      }
      this.#waiting.add(hear)
    })
  }

  /** Its answer: the next word of this kind, and of the change that the order is about. `null`: it ended first; `'late'`: it has not said so in time. */
  asked<Kind extends Word['kind']>(order: Order, kind: Kind, patienceMs: number): Promise<Said<Kind> | null | 'late'> {
    return new Promise(resolve => {
      const done = (answer: Said<Kind> | null | 'late'): void => {
        clearTimeout(timer)
        this.#waiting.delete(hear)
        resolve(answer)
      }
      const hear = (word: Word | null): void => {
        if (word === null) done(null)
        else if (word.kind === kind && sameChange(word, order)) done(word as Said<Kind>)
      }
      const timer = setTimeout(done, patienceMs, 'late')
      this.#waiting.add(hear)
      this.process?.tell(order)
    })
  }

  /** Resolves when nobody has it. */
  gone(): Promise<void> {
    if (this.process === null) return Promise.resolve()
    return new Promise(resolve => {
      const hear = (word: Word | null): void => {
        if (word !== null) return
        this.#waiting.delete(hear)
        resolve()
      }
      this.#waiting.add(hear)
    })
  }
}

function sameChange(word: Word, order: Order): boolean {
  return !('change' in word && 'change' in order) || word.change === order.change
}
