import { resolve } from 'node:path'
import { json } from '../terminal/data.js'
import { noMore, optionsHelp, readFlags, subVerb } from '../terminal/flags.js'
import { LEDGER, placeOf, withBooks } from '../terminal/ledger.js'
import { showAmount } from '../terminal/rial.js'
import { table } from '../terminal/table.js'
import { type Io, UsageError } from './command.js'

export const summary = 'verify the ledger, or back it up'

export const flags = LEDGER
export const words = ['verify', 'backup'] as const

export const usage = `
model-gateway ledger verify
model-gateway ledger backup FILE

verify   recomputes every counter and balance from the records and credits, while requests go on; exits 1 and lists what differs
backup   writes a copy of the ledger as it is at one moment, while requests go on, to a FILE that is not there yet. It is written
         by the process that has the ledger open: a running gateway, where there is one. It appears under its name when it is
         whole and on the disk. To restore it, stop the gateway, put the copy in the ledger's place, and remove what lies beside it
         with the ledger's name and -wal at its end.

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
  return withBooks(place, async books => {
    if (file !== undefined) {
      const path = resolve(io.cwd, file)
      const { bytes } = await books.ask('backup', { path })
      if (given.json) io.stdout(`${json({ path, bytes })}\n`)
      else io.stderr(`${path}: ${showAmount(bytes)} bytes, whole and on the disk.\n`)
      return 0
    }
    const differences = await books.ask('verify', {})
    const whole = differences.length === 0
    if (given.json) io.stdout(`${json({ whole, differences })}\n`)
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
    io.stderr(whole ? `${place.ledger.path}: every counter and balance agrees with the records.\n` : `${differences.length} differences.\n`)
    return whole ? 0 : 1
  })
}
