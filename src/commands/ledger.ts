import { resolve } from 'node:path'
import type { Books } from '../control/books.js'
import { json } from '../terminal/data.js'
import { noMore, optionsHelp, readFlags, subVerb } from '../terminal/flags.js'
import { LEDGER, placeOf, withBooks } from '../terminal/ledger.js'
import { showAmount } from '../terminal/rial.js'
import { table } from '../terminal/table.js'
import { type Io, UsageError } from './command.js'

export const summary = 'verify the ledger, back it up, or start it without a log that was lost'

export const flags = LEDGER
export const words = ['verify', 'backup', 'accept-loss'] as const

export const usage = `
model-gateway ledger verify
model-gateway ledger backup FILE
model-gateway ledger accept-loss

verify        recomputes every counter and balance from the records and credits, while requests go on; exits 1 and lists what differs,
              or says that the file is damaged
backup        writes a copy of the ledger as it is at one moment, while requests go on, to a FILE that is not there yet. It is written
              by the process that has the ledger open: a running gateway, where there is one. It appears under its name when it is
              whole and on the disk. To restore it, stop the gateway, put the copy in the ledger's place, and remove what lies beside
              it with the ledger's name and -wal at its end.
accept-loss   a ledger whose gateway was killed is whole only together with its log, the -wal beside it; where that is missing, damaged or
              another's, no start goes on by itself. This goes on with what is left, if that is a whole database: what was paid, held and
              credited since the log began (some megabytes ago) is gone. The log that is there is kept with .aside at its
              end. Then verifies.

${optionsHelp(flags)}
`

export async function run(args: string[], io: Io): Promise<number> {
  const {
    flags: given,
    words: [first, ...rest],
  } = readFlags(args, flags)
  const verb = subVerb(first, words)
  const file = verb === 'backup' ? rest.shift() : undefined
  noMore(rest)
  if (verb === 'backup' && file === undefined) throw new UsageError('ledger backup needs the FILE to write')
  const place = await placeOf(given, io)
  if (verb === 'accept-loss') {
    const { ledger } = place
    return withBooks({ ...place, ledger: { ...ledger, acceptLoss: true } }, async books => {
      if (books.running) throw new Error(`a gateway runs on ${ledger.path}: it has lost nothing that could be accepted.`)
      return verified(books, ledger.path, given, io)
    })
  }
  return withBooks(place, async books => {
    if (file !== undefined) {
      const path = resolve(io.cwd, file)
      const { bytes } = await books.ask('backup', { path })
      if (given.json) io.stdout(`${json({ path, bytes })}\n`)
      else io.stderr(`${path}: ${showAmount(bytes)} bytes, whole and on the disk.\n`)
      return 0
    }
    return verified(books, place.ledger.path, given, io)
  })
}

async function verified(books: Books, path: string, { json: asJson }: { readonly json: boolean }, io: Io): Promise<number> {
  const differences = await books.ask('verify', {})
  const whole = differences.length === 0
  if (asJson) io.stdout(`${json({ whole, differences })}\n`)
  else if (!whole) {
    io.stdout(
      table(
        [
          { title: 'WHAT', cell: row => row.what },
          { title: 'EXPECTED', cell: row => row.expected },
          { title: 'FOUND', cell: row => row.found },
        ],
        differences,
      ),
    )
  }
  io.stderr(whole ? `${path}: every counter and balance agrees with the records.\n` : `${differences.length} differences.\n`)
  return whole ? 0 : 1
}
