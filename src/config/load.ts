import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { dirname, resolve } from 'node:path'
import type { JsonObject } from '../json.js'
import { PACKAGE } from '../paths.js'
import type { Config, KindInfo } from './config.js'
import { type Document, readDocument } from './document.js'
import type { Draft, ModelDraft } from './draft.js'
import { Findings } from './findings.js'
import { includedModels, type Unpriced } from './included.js'
import { DEMO_SECRET, readAccounts, readKeys, readPlans, sha256Of } from './keys.js'
import { KnownModels } from './known-models.js'
import { readModels } from './models.js'
import { ConfigError, type Path, type PlacedProblem } from './problems.js'
import { isLoopback, readProviders } from './providers.js'
import { ModelNames } from './references.js'
import { conform } from './schema.js'
import { type ReadFile, readStream, readText, reason, variables } from './secrets.js'
import { checkEnforced, checkTimezone, readAddress, readAdmin, readBodyLimit, readLedger, readPolicies, readTimer } from './sections.js'
import { Source, shownAs } from './source.js'
import { readTls } from './tls.js'

export interface LoadOptions {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Kinds of provider, by name. */
  readonly kinds: ReadonlyMap<string, KindInfo>
  /** Reads every file that the config names, and the config itself. Default: from the disk, as UTF-8; the config itself may be a pipe then. */
  readonly readFile?: ReadFile
  /** What `file` is relative to, and what messages show it relative to. Default: the process's own. */
  readonly cwd?: string
}

export interface Loaded {
  readonly config: Config
  /** For an operator's eyes, one line each, with `file:line:col` where they have one. */
  readonly warnings: readonly string[]
  /** Models of the `catalog` that are not served, for want of a price. */
  readonly unpriced: readonly Unpriced[]
  /** Absolute paths of the files besides gateway.yaml that it was made of: prices, secrets, certificates, policies. */
  readonly files: readonly string[]
  /** A value that holds variables, as it is written: what may be shown in its place. Undefined where it holds none. */
  template(path: Path): string | undefined
  /** Where a path stands, for messages: `gateway.yaml:12:5`. The nearest above it, where it does not exist. */
  at(path: Path): string
}

/**
 * Reads gateway.yaml. Throws a `ConfigError` with every problem that it has. Nothing else is touched: no port, no ledger, no policy (their
 * names and what stands under `with` are for the chain to check).
 */
export function loadConfig(file: string, options: LoadOptions): Loaded {
  const { env, kinds, readFile = readText, cwd = process.cwd() } = options
  const absolute = resolve(cwd, file)
  const shown = shownAs(absolute, cwd)
  const folder = dirname(absolute)
  const filled = variables(env, folder, readFile)
  const document = open(absolute, shown, options.readFile ?? readStream, text => readDocument(text, filled.fill))
  const source = new Source({ document, shown }, { folder, cwd, readFile, fill: filled.fill })
  const at = (path: Path) => source.at(path)
  const schema = readSchema()
  const { value, problems } = conform(schema, source.value)
  const findings = new Findings({
    kinds,
    env,
    folder,
    readFile,
    pricesRead: source.pricesRead,
    raw: path => valueAt(source.value, path),
    text: path => source.text(path),
    at,
  })
  findings.problems.push(...source.problems, ...problems)
  if (source.pricesFile !== null) findings.files.push(source.pricesFile)
  const files = () => [...filled.files, ...findings.files]
  const built = value === undefined ? undefined : build(findings, value as Draft, absolute, blankModel(schema))
  if (built === undefined || findings.problems.length + source.errors.length > 0) {
    throw new ConfigError(shown, inOrder([...findings.problems.map(problem => source.place(problem)), ...source.errors], shown), files())
  }
  return {
    config: built.config,
    warnings: [...filled.warnings, ...findings.warnings],
    unpriced: built.unpriced,
    files: files(),
    template: path => source.template(path),
    at,
  }
}

/** The schema of gateway.yaml, as it is shipped beside the code. */
export function readSchema(): JsonObject {
  return JSON.parse(readFileSync(new URL('config/gateway.schema.json', PACKAGE), 'utf8')) as JsonObject
}

/** A model of which nothing is said. */
function blankModel(schema: JsonObject): ModelDraft {
  return conform({ $ref: '#/$defs/model', $defs: schema.$defs }, {}).value as ModelDraft
}

interface Built {
  readonly config: Config
  readonly unpriced: readonly Unpriced[]
}

function build(findings: Findings, draft: Draft, file: string, blank: ModelDraft): Built {
  const listen = readAddress(findings, draft.listen, ['listen'])
  const ops = draft.ops === null ? null : readAddress(findings, draft.ops, ['ops'])
  if (ops !== null && ops.port !== 0 && ops.port === listen.port && ops.host === listen.host) {
    findings.wrong(['ops'], 'is the address of listen too; metrics and probes have one of their own')
  }
  const admin = readAdmin(findings, draft.admin, { listen, ops })
  if (admin !== null && !isLoopback(admin.host))
    findings.warn(['admin'], 'the page can be reached from other machines, and its token goes over the network as plain text')
  const timezone = checkTimezone(findings, draft.timezone) ? draft.timezone : 'UTC'
  const known = new KnownModels()
  const providers = readProviders(findings, draft.providers ?? {})
  const included = includedModels(findings, draft, providers, known)
  const names = new ModelNames(findings, draft.aliases, included)
  const models = readModels(findings, draft, { providers, names, known, blank, included: included.served })
  const plans = readPlans(draft.plans, names)
  const keys = readKeys(findings, draft.keys, plans, names, timezone)
  const policies = readPolicies(findings, draft.policies)
  checkEnforced(findings, policies, keys)
  if (draft.catalog.length === 0) {
    if (findings.source.raw(['models']) === undefined) findings.wrong([], '"models" is missing')
    else if (findings.names('models').size === 0 && draft.models !== undefined)
      findings.wrongName(['models'], 'there is no model in it: nothing could be called')
  }
  const demo = sha256Of(DEMO_SECRET)
  if (!isLoopback(listen.host)) {
    if (findings.names('keys').size === 0) findings.warn(['listen'], 'there are no keys: whoever reaches this address can use every model')
    for (const key of keys.values()) {
      if (key.sha256 === demo)
        findings.warn(['keys', key.name], 'this secret is printed in the manual, and the gateway can be reached from other machines')
    }
  }
  const config: Config = {
    file,
    listen,
    ops,
    admin,
    admin_token: draft.admin_token ?? null,
    timezone,
    month: draft.month,
    ledger: readLedger(findings, draft.ledger),
    policies,
    providers,
    models,
    aliases: names.aliases,
    plans,
    accounts: readAccounts(draft.accounts),
    keys,
    limits: { body: readBodyLimit(findings, draft.limits.body), connections: draft.limits.connections },
    timeout: {
      request: readTimer(findings, draft.timeout.request, ['timeout', 'request']),
      write: readTimer(findings, draft.timeout.write, ['timeout', 'write']),
    },
    workers: draft.workers === 'auto' ? availableParallelism() : draft.workers,
    drain_timeout: readTimer(findings, draft.drain_timeout, ['drain_timeout'], 'zero'),
    tls: readTls(findings, draft.tls),
    log: draft.log,
  }
  return { config, unpriced: included.unpriced }
}

/** Reads and parses, or throws what keeps it from being read. */
function open(file: string, shown: string, readFile: ReadFile, parse: (text: string) => Document): Document {
  const fail = (problem: Partial<PlacedProblem> & { message: string }) =>
    new ConfigError(shown, [{ line: 1, col: 1, path: '', ...problem }])
  let text: string
  try {
    text = readFile(file)
  } catch (error) {
    throw fail({ message: `cannot read it: ${reason(error)}` })
  }
  const document = parse(text)
  // What follows a syntax error is guesswork; it alone is reported.
  if (document.errors.length > 0) throw new ConfigError(shown, inOrder(document.errors, shown))
  if (document.value === null) throw fail({ message: 'the file is empty' })
  return document
}

/** In the order of the files, gateway.yaml first. */
function inOrder(problems: readonly PlacedProblem[], main: string): PlacedProblem[] {
  const other = ({ file = main }: PlacedProblem) => Number(file !== main)
  return [...problems].sort((a, b) => other(a) - other(b) || a.line - b.line || a.col - b.col)
}

function valueAt(root: unknown, path: Path): unknown {
  let value = root
  for (const step of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined
    value = (value as Readonly<Record<string | number, unknown>>)[step]
  }
  return value
}
