import { didYouMean } from '../config/suggest.js'
import { CODES } from '../errors.js'
import { jsonLines } from '../telemetry/json-lines.js'
import type { Access } from '../telemetry/log.js'
import { prettyAccess } from '../telemetry/pretty-lines.js'
import { type Flags, noMore, optionsHelp, readFlags } from '../terminal/flags.js'
import { LEDGER, type Place, placeOf } from '../terminal/ledger.js'
import { watching } from '../terminal/watching.js'
import { type Io, UsageError } from './command.js'

export const summary = 'requests as they end'

export const flags = {
  key: { type: 'string', value: 'NAME', about: 'requests of this key alone' },
  model: { type: 'string', value: 'NAME', about: 'of this model; an alias stands for its model' },
  code: { type: 'string', value: 'CODE', about: 'with this code of an error; `any` is every one that has a code' },
  count: { type: 'string', value: 'N', about: 'end after so many' },
  ...LEDGER,
} as const satisfies Flags

export const usage = `
model-gateway tail [--key K] [--model M] [--code C] [--count N]

Shows the requests of a running gateway as they end: a line for people on a terminal, else, or with --json, the line of JSON that the
log has. When the gateway goes away, this waits for it to come back. Ctrl-C ends it.

${optionsHelp(flags)}
`

export async function run(args: string[], io: Io): Promise<number> {
  const { flags: given, words } = readFlags(args, flags)
  noMore(words)
  let left = countOf(given.count)
  const place = await placeOf(given, io)
  const { key, code } = given
  const model = given.model === undefined ? undefined : (place.config?.aliases.get(given.model) ?? given.model)
  const fits = (line: Access): boolean =>
    (key === undefined || line.key === key) &&
    (model === undefined || line.model === model) &&
    (code === undefined || line.code === code || (code === 'any' && line.code !== null))
  const leaving = new AbortController()
  const leave = (): void => leaving.abort()
  for (const signal of SIGNALS) process.once(signal, leave)
  for (const remark of unknown({ key, model, code }, place)) io.stderr(`${remark}\n`)
  const people = process.stdout.isTTY === true && !given.json
  const color = people && io.env.NO_COLOR === undefined
  const json = jsonLines()
  try {
    for await (const event of watching(place, leaving.signal)) {
      if (event.kind === 'missed') io.stderr(`${event.count} requests are left out here: they came faster than they were read.\n`)
      else if (event.kind === 'gone') io.stderr('The gateway has gone away; waiting for it.\n')
      else if (event.kind === 'back') io.stderr('It is back.\n')
      if (event.kind !== 'ended' || !fits(event.line)) continue
      io.stdout(people ? prettyAccess(event.line, color) : json.access(event.line))
      if (--left === 0) break
    }
  } finally {
    for (const signal of SIGNALS) process.removeListener(signal, leave)
  }
  return 0
}

const SIGNALS = ['SIGINT', 'SIGTERM'] as const

function countOf(text: string | undefined): number {
  if (text === undefined) return Number.POSITIVE_INFINITY
  if (!/^[1-9][0-9]{0,8}$/.test(text)) throw new UsageError(`--count: ${JSON.stringify(text)} is no whole number above 0`)
  return Number(text)
}

interface Filter {
  readonly key: string | undefined
  readonly model: string | undefined
  readonly code: string | undefined
}

/** Names that nobody knows: an empty screen should not be the answer to a slip of the pen. A policy may have codes of its own. */
function unknown({ key, model, code }: Filter, { config }: Place): string[] {
  const remarks: string[] = []
  const look = (what: string, name: string | undefined, known: Iterable<string> | undefined): void => {
    const names = [...(known ?? [])]
    if (name !== undefined && known !== undefined && !names.includes(name))
      remarks.push(`There is no ${what} ${JSON.stringify(name)}${didYouMean(name, names)}; waiting for it all the same.`)
  }
  look('key', key, config?.keys.keys())
  look('model', model, config?.models.keys())
  look('code of the gateway', code, ['any', ...CODES.keys()])
  return remarks
}
