import { dashboard } from '../terminal/dashboard.js'
import { Gathered } from '../terminal/figures.js'
import { COMMON, type Flags, noMore, optionsHelp, readFlags } from '../terminal/flags.js'
import { LEDGER, placeOf } from '../terminal/ledger.js'
import { openScreen } from '../terminal/screen.js'
import { watching } from '../terminal/watching.js'
import { type Io, UsageError } from './command.js'

export const summary = 'a live view of what happens, on a terminal'

export const flags = { config: LEDGER.config, ledger: LEDGER.ledger, help: COMMON.help } as const satisfies Flags

export const usage = `
model-gateway top

Shows what happens at a running gateway: requests, tokens and money of the last minute, what is held, refusals by their code, the slowest
requests, and the figures of each key and model. When the gateway goes away, this waits for it to come back. q or Ctrl-C ends it.
For programs there is \`model-gateway tail --json\`.

${optionsHelp(flags)}
`

/** Between two looks. Milliseconds. */
const REDRAW_MS = 500

export async function run(args: string[], io: Io): Promise<number> {
  const { flags: given, words } = readFlags(args, flags)
  noMore(words)
  const { stdout, stdin } = process
  if (stdout.isTTY !== true) throw new UsageError('top needs a terminal; for programs there is tail --json')
  const place = await placeOf({ ...given, json: false }, io)
  const leaving = new AbortController()
  const leave = (): void => leaving.abort()
  const events = watching(place, leaving.signal)
  // Where no gateway runs this throws, with the terminal still as it was.
  const first = await events.next()
  const gathered = new Gathered(performance.now())
  let gone = false
  const redraw = (): void => {
    const figures = gathered.figures(performance.now())
    screen.draw(dashboard(figures, place.config?.file ?? place.ledger.path, gone, screen.size))
  }
  const screen = openScreen({ output: stdout, input: stdin, color: io.env.NO_COLOR === undefined, resized: redraw, ended: leave })
  for (const signal of SIGNALS) process.once(signal, leave)
  const timer = setInterval(redraw, REDRAW_MS)
  try {
    for (let next = first; next.done !== true; next = await events.next()) {
      const { kind } = next.value
      if (kind === 'gone' || kind === 'back') {
        gone = kind === 'gone'
        redraw()
      } else {
        gathered.add(next.value, performance.now())
        if (kind === 'state') redraw()
      }
    }
  } finally {
    clearInterval(timer)
    screen.close()
    for (const signal of SIGNALS) process.removeListener(signal, leave)
  }
  return 0
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
