import { parseArgs } from 'node:util'
import { loadConfig } from '../config/load.js'
import { effective } from '../config/print.js'
import { ConfigError } from '../config/problems.js'

export const summary = 'check gateway.yaml, and print the config as it counts'

export const usage = `Usage: model-gateway check [-c FILE]

Reads the config as the gateway would and prints what counts: defaults filled in,
prices in Rial, secrets hidden. Nothing is started, and no other file is written.

  -c, --config FILE   the config (default: gateway.yaml)
  -h, --help          this text

Exits 0 when the config can be used, 2 when it can not; every problem is a line
on stderr: FILE:LINE:COL: path: what is wrong.
`

interface Io {
  readonly stdout: (text: string) => void
  readonly stderr: (text: string) => void
  readonly env: NodeJS.ProcessEnv
  readonly cwd: string
}

export async function run(args: string[], io: Io): Promise<number> {
  let file: string
  try {
    const { values } = parseArgs({
      args,
      options: { config: { type: 'string', short: 'c', default: 'gateway.yaml' }, help: { type: 'boolean', short: 'h', default: false } },
      allowPositionals: false,
      strict: true,
    })
    if (values.help) {
      io.stdout(usage)
      return 0
    }
    file = values.config
  } catch (error) {
    io.stderr(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`)
    return 2
  }
  const { loadKinds } = await import('../upstream/kinds.js')
  const kinds = await loadKinds()
  try {
    const { config, warnings, templates } = loadConfig(file, { env: io.env, kinds, cwd: io.cwd })
    for (const warning of warnings) io.stderr(`${warning}\n`)
    io.stdout(effective(config, templates))
    return 0
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    io.stderr(`${error.message}\n`)
    return 2
  }
}
