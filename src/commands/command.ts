import type { Flags } from '../terminal/flags.js'

/** What a verb may touch of the world. */
export interface Io {
  readonly stdout: (text: string) => void
  readonly stderr: (text: string) => void
  readonly env: NodeJS.ProcessEnv
  readonly cwd: string
}

/** One verb: `commands/<verb>.ts` exports these. */
export interface Command {
  /** One line for the list of verbs. */
  readonly summary: string
  /** The whole help. */
  readonly usage: string
  /** All of its options: it reads no others, its help explains these, and shells complete them. */
  readonly flags: Flags
  /** What its first word may be, for a verb that does more than one thing. */
  readonly words?: readonly string[]
  /** Exit code: 0, 1 (the answer is no, or it failed) or 2 (bad usage, or a bad config). */
  run(args: string[], io: Io): Promise<number>
}

/** The call is wrong; the message says how. Exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}
