import { isTimezone } from '../config/dates.js'
import type { Booking } from '../ledger/accounts.js'
import type { KeptCalibration } from '../ledger/calibration-book.js'
import type { Credit, Difference, OpenHold, Wallet } from '../ledger/ledger.js'
import type { SqliteLedger } from '../ledger/sqlite.js'
import { DIMENSIONS, type UsageFilter, type UsageQuery, type UsageRow } from '../ledger/usage.js'
import { copyLedger } from './copy.js'
import { RequestError } from './wire.js'

/** So many wallets come at once, after the one of a name; fewer are the last ones. They take some 2 ms. */
export const WALLETS_PER_PAGE = 500

/**
 * What the command line may ask of a ledger, by name: the same whether it has opened the file itself or asks a gateway that runs. Each
 * checks what it is given, which may come from a program of another version. A RequestError says what is wrong with it.
 */
export const OPERATIONS = {
  wallet: async (ledger: SqliteLedger, { account }: { readonly account: string }): Promise<Wallet> =>
    ledger.wallet(text('account', account)),

  wallets: async (ledger: SqliteLedger, { after }: { readonly after: string }): Promise<Wallet[]> => {
    if (typeof after !== 'string' || after.length > 4096) throw new RequestError('after is a text of at most 4096 characters')
    return ledger.wallets(after, WALLETS_PER_PAGE)
  },

  accounts: (ledger: SqliteLedger, _: object): Promise<string[]> => ledger.accounts(),

  credits: async (ledger: SqliteLedger, { account, limit }: { readonly account: string; readonly limit: number }): Promise<Credit[]> => {
    if (!Number.isSafeInteger(limit) || limit < 1 || limit > 10_000) throw new RequestError('limit is a whole number from 1 to 10000')
    return ledger.credits(text('account', account), limit)
  },

  book: async (ledger: SqliteLedger, { credit, overdraw }: { readonly credit: Credit; readonly overdraw: boolean }): Promise<Booking> => {
    if (typeof credit !== 'object' || credit === null) throw new RequestError('credit is missing')
    const { id, account, amount, note, at } = credit
    if (typeof amount !== 'bigint' || amount === 0n) throw new RequestError('amount is a whole number other than 0')
    if (typeof note !== 'string') throw new RequestError('note is a text')
    const checked = { id: text('id', id), account: text('account', account), amount, note, at: moment('at', at) }
    try {
      return await ledger.book(checked, overdraw === true)
    } catch (error) {
      if (error instanceof RangeError) throw new RequestError(error.message, { cause: error })
      throw error
    }
  },

  calibrations: (ledger: SqliteLedger, _: object): Promise<KeptCalibration[]> => ledger.calibrations(),

  holds: (ledger: SqliteLedger, _: object): Promise<OpenHold[]> => ledger.open(),

  usage: async (ledger: SqliteLedger, query: UsageQuery): Promise<UsageRow[]> => {
    const { by, timezone, calendar } = query
    if (!Array.isArray(by) || by.some(name => !DIMENSIONS.includes(name)) || new Set(by).size < by.length)
      throw new RequestError(`by is a list of ${DIMENSIONS.join(', ')}`)
    if (calendar !== 'gregorian' && calendar !== 'persian') throw new RequestError('calendar is gregorian or persian')
    if (!isTimezone(text('timezone', timezone))) throw new RequestError(`there is no time zone ${JSON.stringify(timezone)}`)
    return ledger.usage({ ...filter(query), by, timezone, calendar })
  },

  summed: async (ledger: SqliteLedger, _: object): Promise<{ readonly before: number | null }> => ({ before: await ledger.summedBefore() }),

  verify: (ledger: SqliteLedger, _: object): Promise<Difference[]> => ledger.verify(),

  backup: async (ledger: SqliteLedger, { path }: { readonly path: string }): Promise<{ readonly bytes: number }> =>
    copyLedger(ledger, text('path', path)),
} as const

export type Operations = typeof OPERATIONS
export type Arguments<Name extends keyof Operations> = Parameters<Operations[Name]>[1]
export type Answer<Name extends keyof Operations> = Awaited<ReturnType<Operations[Name]>>

/** The fields of a filter, and no others. */
export function filter({ key, account, model, since, until }: UsageFilter): UsageFilter {
  return {
    ...(key === undefined ? {} : { key: text('key', key) }),
    ...(account === undefined ? {} : { account: text('account', account) }),
    ...(model === undefined ? {} : { model: text('model', model) }),
    ...(since === undefined ? {} : { since: moment('since', since) }),
    ...(until === undefined ? {} : { until: moment('until', until) }),
  }
}

function text(name: string, value: unknown): string {
  if (typeof value === 'string' && value !== '' && value.length <= 4096) return value
  throw new RequestError(`${name} is a text of 1 to 4096 characters`)
}

function moment(name: string, value: unknown): number {
  if (typeof value === 'number' && Number.isSafeInteger(value)) return value
  throw new RequestError(`${name} is in milliseconds since the epoch`)
}
