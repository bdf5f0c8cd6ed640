import { parseArgs } from 'node:util'
import type { Config, KindInfo } from '../config/config.js'
import type { Unpriced } from '../config/included.js'
import { loadConfig } from '../config/load.js'
import { effective } from '../config/print.js'
import { ConfigError } from '../config/problems.js'
import type { Io } from './command.js'

export const summary = 'check gateway.yaml, and print the config as it counts'

export const usage = `Usage: model-gateway check [-c FILE]

Reads the config as the gateway would and prints what counts: defaults filled in,
prices in Rial, secrets hidden. Nothing is started, and no other file is written.
Models of the catalog that have no price are listed on stderr: they are not served.

  -c, --config FILE   the config (default: gateway.yaml)
  -h, --help          this text

Exits 0 when the config can be used, 2 when it can not; every problem is a line
on stderr: FILE:LINE:COL: path: what is wrong.
`

/** `kinds`: what kinds of provider there are; those that are built in by default. */
export async function run(args: string[], io: Io, kinds: () => Promise<ReadonlyMap<string, KindInfo>> = builtIn): Promise<number> {
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
  try {
    const { config, warnings, unpriced, template } = loadConfig(file, { env: io.env, kinds: await kinds(), cwd: io.cwd })
    await checkPolicies(config)
    for (const warning of warnings) io.stderr(`${warning}\n`)
    if (unpriced.length > 0) io.stderr(unpricedText(unpriced))
    io.stdout(effective(config, template))
    return 0
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    io.stderr(`${error.message}\n`)
    return 2
  }
}

/** The models that a price would open, and the fields that it must have. */
function unpricedText(models: readonly Unpriced[]): string {
  const width = Math.max(...models.map(({ id }) => id.length))
  const lines = models.map(({ id, missing }) => `  ${id.padEnd(width)}  ${missing.join(', ')}`)
  return `not served, for want of a price (in prices; the fields that are missing):\n${lines.join('\n')}\n`
}

/** Policies are loaded as for a start, and closed again: a name or an option that is wrong shows here. */
async function checkPolicies(config: Config): Promise<void> {
  const { buildChain } = await import('../build-chain.js')
  const { windows } = await import('../ledger/windows.js')
  const quiet = (): void => {}
  const ledger = { read: async () => [] }
  const find = windows(config.timezone, config.month)
  const chain = await buildChain({ config, windows: find, ledger, now: Date.now, log: quiet, fault: quiet })
  await chain.close()
}

async function builtIn(): Promise<ReadonlyMap<string, KindInfo>> {
  // Only now: `--help` needs none of them.
  const { loadKinds } = await import('../upstream/kinds.js')
  return loadKinds()
}
