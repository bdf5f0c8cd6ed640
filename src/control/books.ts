import { setTimeout as sleep } from 'node:timers/promises'
import type { UsageRecord } from '../ledger/ledger.js'
import { openLedger, type SqliteLedger } from '../ledger/sqlite.js'
import type { UsageFilter } from '../ledger/usage.js'
import { connectTo, type Remote } from './client.js'
import { type Answer, type Arguments, OPERATIONS, type Operations } from './operations.js'
import { socketOf } from './place.js'

/** A ledger as the command line sees it: through the gateway that runs on it, or its file itself. */
export interface Books {
  /** True: a gateway runs on it. */
  readonly running: boolean
  /** Rejects with an Error whose message is for whoever asked. */
  ask<Name extends keyof Operations>(name: Name, asked: Arguments<Name>): Promise<Answer<Name>>
  /** Ended records, oldest first. Memory does not grow with them. */
  records(query: UsageFilter): AsyncIterable<UsageRecord>
  close(): Promise<void>
}

export interface BooksOptions {
  /** Absolute, or `:memory:`. */
  readonly path: string
  readonly durability: 'power' | 'process'
  /** Whether a file that is not there is made. */
  readonly create: boolean
  /** See the ledger's own option of this name. */
  readonly acceptLoss?: boolean
}

/** How long another process may take to let go of the file, or to begin to answer: a gateway that starts or stops, another verb. */
const PATIENCE_MS = 3000
const PAUSE_MS = 100

/** Reaches the ledger. Throws an Error with a remedy. */
export async function openBooks(options: BooksOptions): Promise<Books> {
  const { path } = options
  if (path === ':memory:') throw new Error('this ledger is in memory (ledger.path is :memory:): nobody but the gateway itself sees it')
  const socket = socketOf(path)
  for (const deadline = Date.now() + PATIENCE_MS; ; await sleep(PAUSE_MS)) {
    const remote = socket === null ? null : await connectTo(socket)
    if (remote !== null) return through(remote)
    try {
      return at(await openLedger(options))
    } catch (error) {
      if (!isBusy(error)) throw error
      if (Date.now() > deadline) throw new Error(taken(path, socket), { cause: error })
    }
  }
}

function through(remote: Remote): Books {
  return { running: true, ask: remote.ask, records: remote.records, close: async () => {} }
}

function at(ledger: SqliteLedger): Books {
  return {
    running: false,
    ask: (name, asked) => {
      const operation = OPERATIONS[name] as unknown as (ledger: SqliteLedger, asked: Arguments<typeof name>) => Promise<Answer<typeof name>>
      return operation(ledger, asked)
    },
    records: async function* (query) {
      for await (const page of ledger.pages(query)) yield* page
    },
    close: () => ledger.close(),
  }
}

function isBusy(error: unknown): boolean {
  const { cause } = error as { readonly cause?: { readonly code?: unknown } }
  return typeof cause?.code === 'string' && /^SQLITE_(BUSY|LOCKED)/.test(cause.code)
}

function taken(path: string, socket: string | null): string {
  const where = socket === null ? 'there is no socket to ask it on' : `nobody answers on ${socket}`
  return `${path} is open in another process, but ${where}.\nWait for that process to end, or stop it: a gateway that answers has said so in its log.`
}
