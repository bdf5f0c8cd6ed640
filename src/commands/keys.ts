import { stringify } from 'yaml'
import type { Config, Key } from '../config/config.js'
import { sha256Of } from '../config/keys.js'
import { ConfigError } from '../config/problems.js'
import { didYouMean } from '../config/suggest.js'
import { isoTime, zone } from '../ledger/zone.js'
import { newSecret } from '../secret.js'
import { readConfig } from '../terminal/config.js'
import { json } from '../terminal/data.js'
import { COMMON, type Flags, noMore, optionsHelp, readFlags, subVerb } from '../terminal/flags.js'
import { fields, table } from '../terminal/table.js'
import { type Io, UsageError } from './command.js'

export const summary = 'make a key, or list those of the config'

export const words = ['new', 'list'] as const

export const flags = {
  name: { type: 'string', value: 'NAME', about: 'what ceilings, budgets and usage attach to (default: app, app-2, …)' },
  account: { type: 'string', value: 'A', about: 'whose wallet it spends from' },
  plan: { type: 'string', value: 'P', about: 'its ceilings' },
  ...COMMON,
} as const satisfies Flags

export const usage = `
model-gateway keys new [--name NAME] [--account A] [--plan P]
model-gateway keys list

new    makes a key and prints it with its SHA-256 and the YAML to paste under keys: in the config. The key is shown this once and
       kept nowhere; the config needs the SHA-256 alone. Account and plan are taken from the config where there is one.
list   the keys of the config: account, plan, budgets, and whether they count. Never a secret.

${optionsHelp(flags)}
`

export async function run(args: string[], io: Io): Promise<number> {
  const {
    flags: given,
    words: [first, ...rest],
  } = readFlags(args, flags)
  const verb = subVerb(first, words)
  noMore(rest)
  if (verb === 'new') {
    const config = await configIfAny(given.config, io)
    return make(config, { name: given.name, account: given.account, plan: given.plan }, given.json, io)
  }
  for (const name of ['name', 'account', 'plan'] as const) {
    if (given[name] !== undefined) throw new UsageError(`--${name} has no meaning for keys list`)
  }
  return list(await readConfig(given.config, io), given.json, io)
}

/** A key can be made before there is a config, and while one is being written. One that was named has to be there. */
async function configIfAny(file: string | undefined, io: Io): Promise<Config | null> {
  try {
    return await readConfig(file, io)
  } catch (error) {
    if (!(error instanceof ConfigError) || file !== undefined) throw error
    return null
  }
}

interface Wish {
  readonly name: string | undefined
  readonly account: string | undefined
  readonly plan: string | undefined
}

function make(config: Config | null, wish: Wish, asJson: boolean, io: Io): number {
  const name = wish.name ?? freeName(config)
  if (!/^[^\s\p{Cc}\u200e\u200f\u202a-\u202e]{1,128}$/u.test(name))
    throw new UsageError('--name: a name has no spaces, and at most 128 characters')
  if (config?.keys.has(name))
    throw new UsageError(`--name: there is a key ${JSON.stringify(name)} already; a new secret for it goes in the place of the old one`)
  const account = chosen('account', wish.account, config?.accounts)
  const plan = chosen('plan', wish.plan, config?.plans) ?? 'unlimited'
  const key = newSecret()
  const sha256 = sha256Of(key)
  const yaml = stringify({ [name]: { ...(account === undefined ? {} : { account }), plan, sha256 } }, { lineWidth: 0 })
  if (asJson) {
    io.stdout(`${json({ name, key, sha256, account: account ?? null, plan, yaml })}\n`)
    return 0
  }
  io.stdout(
    `${fields([
      ['key', key],
      ['sha256', sha256],
    ])}\n${yaml.replace(/^(?=.)/gm, '  ')}`,
  )
  io.stderr(
    '\nKeep the key: it is shown this once. The lines at the end go under keys: in the config; a running gateway then takes it at once.\n',
  )
  if (config === null)
    io.stderr(
      `There is no config here to choose from: see to it that it has the plan ${JSON.stringify(plan)}${account === undefined ? '' : ` and the account ${JSON.stringify(account)}`}.\n`,
    )
  return 0
}

function freeName(config: Config | null): string {
  for (let number = 1; ; number++) {
    const name = number === 1 ? 'app' : `app-${number}`
    if (config?.keys.has(name) !== true) return name
  }
}

/** The one that was asked for, which must exist, or the first that there is. */
function chosen(what: 'account' | 'plan', asked: string | undefined, known: ReadonlyMap<string, unknown> | undefined): string | undefined {
  if (known === undefined) return asked
  if (asked === undefined) return known.keys().next().value
  if (!known.has(asked))
    throw new UsageError(`--${what}: the config has no ${what} ${JSON.stringify(asked)}${didYouMean(asked, known.keys())}`)
  return asked
}

function list(config: Config, asJson: boolean, io: Io): number {
  const now = Date.now()
  const clock = zone(config.timezone)
  const rows = [...config.keys.values()].map(key => ({
    name: key.name,
    account: key.account,
    plan: key.plan.name,
    daily_token_budget: key.budget.daily_tokens,
    daily_budget_rial: key.budget.daily_rial,
    monthly_budget_rial: key.budget.monthly_rial,
    models: key.models,
    expires: key.expires === null ? null : isoTime(key.expires, clock),
    state: stateOf(key, now),
  }))
  if (asJson) io.stdout(`${json(rows)}\n`)
  else if (rows.length === 0)
    io.stderr(`${config.file} has no keys: whoever reaches the gateway may use it. \`model-gateway keys new\` makes one.\n`)
  else {
    const budget = (amount: bigint | null) => amount ?? 'none'
    io.stdout(
      table(
        [
          { title: 'NAME', cell: row => row.name },
          { title: 'ACCOUNT', cell: row => row.account },
          { title: 'PLAN', cell: row => row.plan },
          { title: 'TOKENS/DAY', right: true, cell: row => budget(row.daily_token_budget) },
          { title: 'RIAL/DAY', right: true, cell: row => budget(row.daily_budget_rial) },
          { title: 'RIAL/MONTH', right: true, cell: row => budget(row.monthly_budget_rial) },
          { title: 'MODELS', cell: row => row.models?.join(' ') ?? 'all' },
          { title: 'EXPIRES', cell: row => row.expires?.slice(0, 16) },
          { title: 'STATE', cell: row => row.state },
        ],
        rows,
      ),
    )
  }
  return 0
}

function stateOf({ disabled, expires }: Key, now: number): 'active' | 'disabled' | 'expired' {
  if (disabled) return 'disabled'
  return expires !== null && expires <= now ? 'expired' : 'active'
}
