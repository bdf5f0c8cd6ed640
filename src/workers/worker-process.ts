import cluster, { type Worker as Child } from 'node:cluster'
import type { Duplex } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { deserialize, serialize } from 'node:v8'
import type { OpenHold } from '../ledger/ledger.js'
import { SRC } from '../paths.js'
import { FRAME, Frames } from './frames.js'
import { LedgerDoor, type OwnedLedger } from './ledger-door.js'
import type { Order, Word } from './messages.js'

const PROGRAM = fileURLToPath(new URL('workers/process.js', SRC))
/** Where the owner's end of the way to the worker is, among the child's streams. */
const WORKER_FD = 4

export interface WorkerFacts {
  /** From 1. */
  readonly number: number
  readonly ledger: OwnedLedger
  readonly now: () => number
  readonly word: (word: Word) => void
  readonly lines: (text: string) => void
  /** Once: it has ended, however it did, and what it had left open has ended with it. `left` is an Error where the ledger has failed. */
  readonly gone: (how: string, left: readonly OpenHold[] | Error) => void
}

/** A worker, at the owner's end: a process, and the way to it. */
export class WorkerProcess {
  readonly #child: Child
  readonly #frames: Frames
  readonly #door: LedgerDoor

  /** Starts it. It does nothing before it is told to begin. */
  constructor({ number, ledger, now, word, lines, gone }: WorkerFacts) {
    // Read at each fork: whoever else makes workers in this process sets their own.
    cluster.setupPrimary({
      exec: PROGRAM,
      args: [String(number)],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc', 'pipe'],
      serialization: 'json',
    })
    this.#child = cluster.fork()
    const way = this.#child.process.stdio[WORKER_FD] as unknown as Duplex
    this.#door = new LedgerDoor(ledger, text => this.#frames.text(FRAME.answers, text))
    this.#frames = new Frames(way, (kind, payload) => {
      if (kind === FRAME.operations) this.#door.asked(payload.toString('utf8'))
      else if (kind === FRAME.lines) lines(payload.toString('utf8'))
      else word(deserialize(payload) as Word)
    })
    // To one that has died in the meantime; its end is told all the same.
    way.on('error', () => {})
    const silent = new Promise<void>(resolve => way.once('close', resolve))
    const ended = new Promise<string>(resolve => {
      this.#child.process.once('error', error => resolve(error.message))
      this.#child.process.once('exit', (code, signal) => resolve(signal === null ? `exit code ${code}` : `signal ${signal}`))
    })
    void Promise.all([ended, silent]).then(async ([how]) => {
      // All that it ever asked has been read by now.
      const left = await this.#door.gone(now()).catch((error: Error) => error)
      gone(how, left)
    })
  }

  tell(order: Order): void {
    this.#frames.bytes(FRAME.order, serialize(order))
  }

  kill(): void {
    this.#child.process.kill('SIGKILL')
  }
}
