import { userInfo } from 'node:os'
import type { Books } from '../control/books.js'
import { WALLETS_PER_PAGE } from '../control/operations.js'
import { ulids } from '../ids.js'
import { available, type Booking } from '../ledger/accounts.js'
import type { Amount, Wallet } from '../ledger/ledger.js'
import { isoTime, zone } from '../ledger/zone.js'
import { json } from '../terminal/data.js'
import { type Flags, noMore, optionsHelp, readFlags, subVerb } from '../terminal/flags.js'
import { knownAccount, LEDGER, type Place, placeOf, withBooks } from '../terminal/ledger.js'
import { parseRial, showAmount } from '../terminal/rial.js'
import { plain, table } from '../terminal/table.js'
import { type Io, UsageError } from './command.js'

export const summary = 'show a wallet, put money in, take money out'

export const words = ['show', 'history', 'credit', 'debit'] as const

export const flags = {
  note: { type: 'string', value: 'TEXT', about: 'kept with the credit' },
  'idempotency-key': {
    type: 'string',
    value: 'KEY',
    about: 'the first credit or debit of a key counts; sent again, it changes nothing',
  },
  'allow-negative': {
    type: 'boolean',
    about: 'take out more than is left; nothing is admitted until the wallet is above zero again',
  },
  ...LEDGER,
} as const satisfies Flags

export const usage = `
model-gateway wallet show [ACCOUNT]
model-gateway wallet history ACCOUNT
model-gateway wallet credit ACCOUNT AMOUNT [--note TEXT] [--idempotency-key KEY]
model-gateway wallet debit ACCOUNT AMOUNT [--note TEXT] [--idempotency-key KEY] [--allow-negative]

show     what was credited, spent and is held, and what is left; of every account, or of one
history  the latest 100 credits and debits
credit   puts Rial in; a gateway that runs admits requests on it at once
debit    takes Rial out, at most what is left: what requests under way hold stays theirs

AMOUNT is in whole Rial: 1000000, 1_000_000 or 1,000,000.

${optionsHelp(flags)}

Exits 1 when there is too little to take out, or the key was used for another amount or account.
`

const HISTORY_MAX = 100

export async function run(args: string[], io: Io): Promise<number> {
  const below = args.find(arg => /^-[0-9]/.test(arg))
  if (below !== undefined) throw new UsageError(`${below} is no amount: write whole Rial above 0; wallet debit takes money out`)
  const {
    flags: given,
    words: [first, account, ...rest],
  } = readFlags(args, flags)
  const verb = subVerb(first, words)
  const posting = verb === 'credit' || verb === 'debit'
  for (const name of ['note', 'idempotency-key', 'allow-negative'] as const) {
    const fits = name === 'allow-negative' ? verb === 'debit' : posting
    if (!fits && given[name] !== undefined && given[name] !== false) throw new UsageError(`--${name} has no meaning for wallet ${verb}`)
  }
  if (account === undefined && verb !== 'show') throw new UsageError(`wallet ${verb} needs an ACCOUNT${posting ? ' and an AMOUNT' : ''}`)
  if (!posting) {
    noMore(rest)
    const place = await placeOf(given, io)
    return withBooks(place, books =>
      verb === 'show' ? show(account, books, place, given.json, io) : history(account as string, books, place, given.json, io),
    )
  }
  const [amount, ...more] = rest
  if (amount === undefined) throw new UsageError(`wallet ${verb} needs an AMOUNT after the account`)
  noMore(more)
  const rial = parseRial(amount)
  const wish: Wish = {
    account: account as string,
    amount: verb === 'credit' ? rial : -rial,
    note: given.note ?? `by ${author()}`,
    key: given['idempotency-key'],
    overdraw: given['allow-negative'],
  }
  const place = await placeOf(given, io)
  return withBooks(place, books => post(wish, books, place, given.json, io), true)
}

async function show(account: string | undefined, books: Books, place: Place, asJson: boolean, io: Io): Promise<number> {
  const rows = (account === undefined ? await all(books, place) : [await one(account, books, place)]).map(figures)
  if (asJson) io.stdout(`${json(account === undefined ? rows : rows[0])}\n`)
  else if (rows.length === 0) io.stderr('There are no accounts.\n')
  else io.stdout(walletTable(rows))
  return 0
}

async function one(account: string, books: Books, place: Place): Promise<Wallet> {
  knownAccount(account, place, await books.ask('accounts', {}))
  return books.ask('wallet', { account })
}

/** Page by page: a gateway that runs has requests to answer in between. */
async function all(books: Books, place: Place): Promise<Wallet[]> {
  const wallets = new Map<string, Wallet>()
  for (const account of place.config?.accounts.keys() ?? []) wallets.set(account, { account, credited: 0n, posted: 0n, pending: 0n })
  let page: Wallet[]
  let after = ''
  do {
    page = await books.ask('wallets', { after })
    for (const wallet of page) wallets.set(wallet.account, wallet)
    after = page.at(-1)?.account ?? ''
  } while (page.length === WALLETS_PER_PAGE)
  return [...wallets.values()].sort((a, b) => (a.account < b.account ? -1 : 1))
}

async function history(account: string, books: Books, place: Place, asJson: boolean, io: Io): Promise<number> {
  knownAccount(account, place, await books.ask('accounts', {}))
  const credits = await books.ask('credits', { account, limit: HISTORY_MAX })
  const clock = zone(place.timezone)
  const rows = credits.map(({ id, at, amount, note }) => ({ time: isoTime(at, clock), amount_rial: amount, note, id }))
  if (asJson) io.stdout(`${json(rows)}\n`)
  else if (rows.length === 0) io.stderr(`Nothing was ever credited to ${account}.\n`)
  else {
    io.stdout(
      table(
        [
          { title: 'TIME', cell: row => row.time },
          { title: 'RIAL', cell: row => row.amount_rial },
          { title: 'NOTE', cell: row => row.note },
          { title: 'ID', cell: row => row.id },
        ],
        rows,
      ),
    )
  }
  return 0
}

interface Wish {
  readonly account: string
  /** Below zero: taken out. */
  readonly amount: Amount
  readonly note: string
  readonly key: string | undefined
  readonly overdraw: boolean
}

async function post(wish: Wish, books: Books, place: Place, asJson: boolean, io: Io): Promise<number> {
  const { account, amount, note, key, overdraw } = wish
  knownAccount(account, place, await books.ask('accounts', {}))
  const at = Date.now()
  // With a prefix, so that no key of a person is the id of an opening balance.
  const credit = { id: `cli:${key ?? ulids()(at)}`, account, amount, note, at }
  const booking = await books.ask('book', { credit, overdraw })
  const done = booking.outcome === 'credited' || booking.outcome === 'already_credited'
  io.stderr(`${told(wish, booking, place)}\n`)
  if (asJson) {
    const { outcome, credit: counted, wallet } = booking
    io.stdout(`${json({ outcome, id: counted.id, amount_rial: counted.amount, note: counted.note, wallet: figures(wallet) })}\n`)
  } else if (done) {
    io.stdout(walletTable([figures(booking.wallet)]))
  }
  return done ? 0 : 1
}

/** In a container, a user may have a number and no name. */
function author(): string {
  try {
    return userInfo().username
  } catch {
    return `user ${process.getuid?.()}`
  }
}

function told({ account, amount, key }: Wish, { outcome, credit, wallet }: Booking, place: Place): string {
  const booked = (rial: Amount, name: string) =>
    rial < 0n ? `${showAmount(-rial)} Rial were taken from ${plain(name)}` : `${showAmount(rial)} Rial were credited to ${plain(name)}`
  const before = () => `${booked(credit.amount, credit.account)} at ${isoTime(credit.at, zone(place.timezone))}`
  if (outcome === 'credited') return `${booked(amount, account)}.`
  if (outcome === 'already_credited') return `Nothing changed: with this key, ${before()}.`
  if (outcome === 'conflict') return `Nothing changed: the key ${JSON.stringify(key)} belongs to another one. With it, ${before()}.`
  return [
    `Nothing changed: ${plain(account)} has ${showAmount(available(wallet))} Rial available, ${showAmount(-amount)} were to be taken out`,
    `(credited ${showAmount(wallet.credited)}, spent ${showAmount(wallet.posted)}, held by requests under way ${showAmount(wallet.pending)}).`,
    'Take less, or say --allow-negative.',
  ].join('\n')
}

type Figures = ReturnType<typeof figures>

function figures(wallet: Wallet) {
  const { account, credited, posted, pending } = wallet
  return {
    account,
    credited_rial: credited,
    spent_rial: posted,
    balance_rial: credited - posted,
    held_rial: pending,
    available_rial: available(wallet),
  }
}

function walletTable(rows: readonly Figures[]): string {
  return table(
    [
      { title: 'ACCOUNT', cell: row => row.account },
      { title: 'CREDITED', cell: row => row.credited_rial },
      { title: 'SPENT', cell: row => row.spent_rial },
      { title: 'HELD', cell: row => row.held_rial },
      { title: 'AVAILABLE', cell: row => row.available_rial },
    ],
    rows,
  )
}
