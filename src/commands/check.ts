import type { Config, KindInfo } from '../config/config.js'
import type { Unpriced } from '../config/included.js'
import { loadConfig } from '../config/load.js'
import { counting, effective } from '../config/print.js'
import { ConfigError } from '../config/problems.js'
import type { Correction } from '../metering/calibration.js'
import { json } from '../terminal/data.js'
import { COMMON, type Flags, noMore, optionsHelp, readFlags } from '../terminal/flags.js'
import type { Io } from './command.js'

export const summary = 'check gateway.yaml, and print the config as it counts'

export const flags = COMMON satisfies Flags

export const usage = `
model-gateway check [-c FILE]

Reads the config as the gateway would and prints what counts: defaults filled in, prices in Rial, secrets hidden. Nothing is started,
and no other file is written. Models of the catalog that have no price are listed on stderr: they are not served. So is what the reports
of providers have taught of models, where there is a ledger: how many requests, and by what their estimates are multiplied.

${optionsHelp(flags)}

Exits 0 when the config can be used, 2 when it can not; every problem is a line on stderr: FILE:LINE:COL: path: what is wrong.
With --json, all of it is one document on stdout: problems, warnings, unpriced, learned, and the config (null while there are problems).
`

/** `kinds`: what kinds of provider there are; those that are built in by default. */
export async function run(args: string[], io: Io, kinds: () => Promise<ReadonlyMap<string, KindInfo>> = builtIn): Promise<number> {
  const { flags: given, words } = readFlags(args, flags)
  noMore(words)
  try {
    const loaded = loadConfig(given.config ?? 'gateway.yaml', { env: io.env, kinds: await kinds(), cwd: io.cwd })
    const { config, unpriced, template } = loaded
    await checkPolicies(config)
    await checkTokenizers(config)
    const { learned, failed } = await learnedOf(config)
    const unread = failed === null ? [] : [`what models have taught can not be read from ${config.ledger.path}: ${failed}`]
    const warnings = [...loaded.warnings, ...unread]
    if (given.json) io.stdout(`${json({ problems: [], warnings, unpriced, learned, config: counting(config, template) })}\n`)
    else {
      for (const warning of warnings) io.stderr(`${warning}\n`)
      if (unpriced.length > 0) io.stderr(unpricedText(unpriced))
      if (learned.length > 0) io.stderr(learnedText(learned))
      io.stdout(effective(config, template))
    }
    return 0
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    if (given.json) {
      const problems = error.problems.map(({ file = error.file, line, col, path, message }) => ({ file, line, col, path, message }))
      io.stdout(`${json({ problems, warnings: [], unpriced: [], learned: [], config: null })}\n`)
    } else io.stderr(`${error.message}\n`)
    return 2
  }
}

/** The models that a price would open, and the fields that it must have. */
function unpricedText(models: readonly Unpriced[]): string {
  const width = Math.max(...models.map(({ id }) => id.length))
  const lines = models.map(({ id, missing }) => `  ${id.padEnd(width)}  ${missing.join(', ')}`)
  return `not served, for want of a price (in prices; the fields that are missing):\n${lines.join('\n')}\n`
}

interface Learned extends Correction {
  readonly model: string
  readonly samples: number
}

/** What the models of the config have taught. A ledger that can not be read is no fault of the config. */
async function learnedOf(config: Config): Promise<{ readonly learned: readonly Learned[]; readonly failed: string | null }> {
  const { taught } = await import('../control/taught.js')
  const { Calibrations } = await import('../metering/calibrations.js')
  try {
    const calibrations = new Calibrations(
      await taught(config.ledger.path),
      async () => {},
      () => {},
    )
    const learned = [...config.models.values()].flatMap(model => {
      const found = calibrations.learned(model)
      return found === null ? [] : [{ model: model.id, ...found }]
    })
    return { learned, failed: null }
  } catch (error) {
    return { learned: [], failed: (error as Error).message }
  }
}

function learnedText(learned: readonly Learned[]): string {
  const width = Math.max(...learned.map(({ model }) => model.length))
  const lines = learned.map(({ model, samples, typical, upper }) => {
    return `  ${model.padEnd(width)}  ${String(samples).padStart(4)} requests, likely × ${typical.toFixed(2)}, held × ${upper.toFixed(2)}`
  })
  return `learned from what providers report (their last 512 to 1024 requests; from 32 on it counts):\n${lines.join('\n')}\n`
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

/** Modules that count tokens are imported as for a start, on threads of their own. */
async function checkTokenizers(config: Config): Promise<void> {
  const { Tokenizers } = await import('../counting/tokenizers.js')
  const tokenizers = await Tokenizers.start(
    config,
    () => performance.now(),
    () => {},
  )
  await tokenizers.close()
}

async function builtIn(): Promise<ReadonlyMap<string, KindInfo>> {
  // Only now: `--help` needs none of them.
  const { loadKinds } = await import('../upstream/kinds.js')
  return loadKinds()
}
