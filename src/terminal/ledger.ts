import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { type Io, UsageError } from '../commands/command.js'
import type { Config } from '../config/config.js'
import { isTimezone } from '../config/dates.js'
import { didYouMean } from '../config/suggest.js'
import { type Books, type BooksOptions, openBooks } from '../control/books.js'
import { readConfig } from './config.js'
import { COMMON, type Flags, type Given } from './flags.js'

/** The flags of a verb that reads a ledger. */
export const LEDGER = {
  config: { ...COMMON.config, about: 'the config that names the ledger (default: gateway.yaml)' },
  ledger: { type: 'string', value: 'FILE', about: 'this ledger, a backup for one; the config is not read then' },
  json: COMMON.json,
  help: COMMON.help,
} as const satisfies Flags

/** Which ledger, and what is known about it. */
export interface Place {
  /** `null`: the ledger was named by itself. */
  readonly config: Config | null
  readonly ledger: Omit<BooksOptions, 'create'>
  readonly timezone: string
  readonly calendar: Config['month']
}

/** Where the flags say that the ledger is. Throws a ConfigError where the config can not be read. */
export async function placeOf(flags: Given<typeof LEDGER> & { readonly timezone?: string | undefined }, io: Io): Promise<Place> {
  const { timezone } = flags
  if (timezone !== undefined && !isTimezone(timezone))
    throw new UsageError(`--timezone: there is no time zone ${JSON.stringify(timezone)}; write one like Asia/Tehran or UTC`)
  if (flags.ledger === undefined) {
    const config = await readConfig(flags.config, io)
    const { path, durability } = config.ledger
    return { config, ledger: { path, durability }, timezone: timezone ?? config.timezone, calendar: config.month }
  }
  if (flags.config !== undefined) throw new UsageError('--config and --ledger both name a ledger: leave one of them out')
  const ledger = { path: resolve(io.cwd, flags.ledger), durability: 'power' } as const
  return { config: null, ledger, timezone: timezone ?? 'Asia/Tehran', calendar: 'gregorian' }
}

/** Works with a ledger, running or not, and lets go of it. `create`: where there is no file yet, and the config allows it, one is made. */
export async function withBooks<Result>(place: Place, work: (books: Books) => Promise<Result>, create = false): Promise<Result> {
  const { path } = place.ledger
  const makes = create && place.config?.ledger.create === true
  if (!makes && path !== ':memory:' && !existsSync(path)) {
    throw new Error(
      `there is no ledger at ${path}${place.config?.ledger.create === true ? ' yet: the gateway makes it when it first starts' : ''}.`,
    )
  }
  const books = await openBooks({ ...place.ledger, create: makes })
  try {
    return await work(books)
  } finally {
    await books.close()
  }
}

/** Throws a UsageError unless the config or the ledger knows this account: a slip of the pen must not make a wallet. */
export function knownAccount(account: string, place: Place, booked: readonly string[]): void {
  const names = [...new Set([...(place.config?.accounts.keys() ?? []), ...booked])]
  if (names.includes(account)) return
  const where = place.config === null ? 'this ledger' : `${place.config.file} or its ledger`
  throw new UsageError(`there is no account ${JSON.stringify(account)} in ${where}${didYouMean(account, names)}`)
}
