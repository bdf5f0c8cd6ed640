import { Chain, type HookFault } from './chain.js'
import type { Config, PolicyUse } from './config/config.js'
import { ConfigError, type PlacedProblem, showPath } from './config/problems.js'
import { conform } from './config/schema.js'
import { didYouMean } from './config/suggest.js'
import { GatewayError } from './errors.js'
import { isObject, type JsonObject } from './json.js'
import type { Ledger } from './ledger/ledger.js'
import type { Windows } from './ledger/windows.js'
import { POLICIES } from './paths.js'
import { placed } from './placed.js'
import { importPlugin, names } from './plugin.js'
import type { Host, Policy, PolicyFactory } from './policy.js'

export interface ChainFacts {
  readonly config: Config
  readonly windows: Windows
  readonly ledger: Pick<Ledger, 'read'>
  readonly now: () => number
  readonly log: (policy: string, message: string, fields?: Readonly<Record<string, unknown>>) => void
  readonly fault: HookFault
}

/** Builds the chain that a config names. Throws a ConfigError with every policy that can not be had, or whose options are wrong. */
export async function buildChain(facts: ChainFacts): Promise<Chain> {
  const problems: PlacedProblem[] = []
  const policies: Policy[] = []
  for (const use of facts.config.policies) {
    try {
      const policy = await build(use, facts)
      policies.push(policy)
      checkHooks(use.use, policy)
      checkCodes(use.use, policy.codes)
    } catch (error) {
      problems.push({ ...placed(use.at), path: 'policies', message: (error as Error).message })
    }
  }
  if (problems.length > 0) {
    await new Chain(policies, facts.fault).close()
    throw new ConfigError(placed(facts.config.policies[0]?.at ?? '').file, problems)
  }
  return new Chain(policies, facts.fault)
}

async function build(use: PolicyUse, facts: ChainFacts): Promise<Policy> {
  const module = await importPlugin(use.use, { folder: POLICIES, configFile: facts.config.file }).catch((error: Error) => {
    throw new Error(`policy ${JSON.stringify(use.use)} can not be loaded: ${error.message}${didYouMean(use.use, names(POLICIES))}`, {
      cause: error,
    })
  })
  const factory = module.default
  if (typeof factory !== 'function') throw new Error(`policy ${JSON.stringify(use.use)} has no function as its default export`)
  const options = optionsOf(use, module.options)
  const policy = await make(use.use, factory as PolicyFactory<unknown>, options, hostFor(use.use, facts))
  if (!isObject(policy) || typeof policy.name !== 'string') throw new Error(`policy ${JSON.stringify(use.use)} made nothing with a name`)
  return policy as unknown as Policy
}

async function make(use: string, factory: PolicyFactory<unknown>, options: unknown, host: Host): Promise<unknown> {
  try {
    return await factory(options, host)
  } catch (error) {
    throw new Error(`policy ${JSON.stringify(use)} can not be made: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    })
  }
}

type Hook = Exclude<keyof Policy, 'name' | 'codes'>

const EVERY_HOOK: Readonly<Record<Hook, true>> = {
  identify: true,
  amend: true,
  admit: true,
  forward: true,
  observe: true,
  respond: true,
  finish: true,
  close: true,
}
const HOOKS = Object.keys(EVERY_HOOK) as Hook[]

/** A hook that goes by a wrong name would never run, and what it was to refuse would pass. A name that is near a hook's which is there is a name of its own. */
function checkHooks(use: string, policy: Policy): void {
  const named = `policy ${JSON.stringify(use)}`
  const missing = HOOKS.filter(hook => policy[hook] === undefined)
  for (const hook of HOOKS)
    if (!['undefined', 'function'].includes(typeof policy[hook])) throw new Error(`${named}: ${hook} is no function`)
  for (const method of methods(policy)) {
    const meant = Object.hasOwn(EVERY_HOOK, method) ? '' : didYouMean(method, missing)
    if (meant !== '') throw new Error(`${named} has a function ${JSON.stringify(method)}, which is no hook${meant}`)
  }
  if (missing.length === HOOKS.length) throw new Error(`${named} has no hook; there are ${HOOKS.join(', ')}`)
}

/** The names of all functions that an object has, its classes' included. Getters are not run. */
function methods(policy: object): string[] {
  const found: string[] = []
  for (let owner = policy; owner !== null && owner !== Object.prototype; owner = Object.getPrototypeOf(owner)) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(owner)))
      if (typeof value === 'function' && name !== 'constructor') found.push(name)
  }
  return found
}

/** Label values of metrics: few, and of one shape. */
const CODES_MAX = 32
const CODE = /^[a-z][a-z0-9_]{0,63}$/

function checkCodes(use: string, codes: unknown): void {
  if (codes === undefined) return
  if (Array.isArray(codes) && codes.length <= CODES_MAX && codes.every(code => typeof code === 'string' && CODE.test(code))) return
  throw new Error(`policy ${JSON.stringify(use)} has codes that are no list of at most ${CODES_MAX} names like "too_many_in_flight"`)
}

/** What `with` says, held against the schema that the module exports. A policy without one takes no options. */
function optionsOf(use: PolicyUse, schema: unknown): unknown {
  const given = use.with ?? {}
  if (!isObject(schema)) {
    if (isObject(given) && Object.keys(given).length === 0) return {}
    throw new Error(`policy ${JSON.stringify(use.use)} takes no options: it exports no schema of them`)
  }
  const { value, problems } = conform({ type: 'object', ...schema } as JsonObject, given)
  if (problems.length > 0)
    throw new Error(problems.map(({ path, message }) => `with${path.length === 0 ? '' : `.${showPath(path)}`} ${message}`).join('; '))
  return value
}

function hostFor(policy: string, { config, windows, ledger, now, log }: ChainFacts): Host {
  return {
    keys: config.keys,
    window: windows,
    now,
    read: counters => ledger.read(counters),
    error: (code, message, options) => new GatewayError(code, message, options),
    log: (message, fields) => log(policy, message, fields),
  }
}
