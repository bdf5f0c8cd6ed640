import { readFileSync } from 'node:fs'
import { dirname, isAbsolute, relative, resolve } from 'node:path'
import type { JsonObject } from '../json.js'
import type { Config, KindInfo } from './config.js'
import { type Document, readDocument } from './document.js'
import type { Draft } from './draft.js'
import { Findings } from './findings.js'
import { DEMO_SECRET, readAccounts, readKeys, readPlans, sha256Of } from './keys.js'
import { readModels } from './models.js'
import { ConfigError, type Path, type PlacedProblem, type Problem, showPath } from './problems.js'
import { isLoopback, readProviders } from './providers.js'
import { ModelNames } from './references.js'
import { conform } from './schema.js'
import { type ReadFile, readText, reason, variables } from './secrets.js'
import { checkEnforced, checkTimezone, readAddress, readBodyLimit, readLedger, readPolicies, readTimer, readTls } from './sections.js'

export interface LoadOptions {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Kinds of provider, by name. */
  readonly kinds: ReadonlyMap<string, KindInfo>
  /** Reads every file that the config names, and the config itself. Default: from the disk, as UTF-8. */
  readonly readFile?: ReadFile
  /** What `file` is relative to, and what messages show it relative to. Default: the process's own. */
  readonly cwd?: string
}

export interface Loaded {
  readonly config: Config
  /** For an operator's eyes, one line each, with `file:line:col` where they have one. */
  readonly warnings: readonly string[]
  /** Absolute paths of the files besides gateway.yaml that it was made of: secrets, certificates. */
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
  const document = open(absolute, shown, readFile, text => readDocument(text, filled.fill))
  const at = (path: Path) => {
    const { line, col } = document.locate(path)
    return `${shown}:${line}:${col}`
  }
  const { value, problems } = conform(readSchema(), document.value)
  const findings = new Findings({ kinds, folder, readFile, raw: path => valueAt(document.value, path), text: document.text, at })
  findings.problems.push(...document.problems, ...problems)
  const files = () => [...filled.files, ...findings.files]
  const config = value === undefined ? undefined : build(findings, value as Draft, absolute)
  if (config === undefined || findings.problems.length > 0) throw new ConfigError(shown, placed(document, findings.problems), files())
  return {
    config,
    warnings: [...filled.warnings, ...findings.warnings],
    files: files(),
    template: document.template,
    at,
  }
}

/** The schema of gateway.yaml, as it is shipped beside the code. */
export function readSchema(): JsonObject {
  return JSON.parse(readFileSync(new URL('../../../config/gateway.schema.json', import.meta.url), 'utf8')) as JsonObject
}

function build(findings: Findings, draft: Draft, file: string): Config {
  const listen = readAddress(findings, draft.listen, ['listen'])
  const ops = draft.ops === null ? null : readAddress(findings, draft.ops, ['ops'])
  if (ops !== null && ops.port !== 0 && ops.port === listen.port && ops.host === listen.host) {
    findings.wrong(['ops'], 'is the address of listen too; metrics and probes have one of their own')
  }
  const timezone = checkTimezone(findings, draft.timezone) ? draft.timezone : 'UTC'
  const names = new ModelNames(findings, draft.aliases)
  const providers = readProviders(findings, draft.providers ?? {})
  const models = readModels(findings, draft.models ?? {}, providers, names)
  const plans = readPlans(draft.plans, names)
  const keys = readKeys(findings, draft.keys, plans, names, timezone)
  const policies = readPolicies(findings, draft.policies)
  checkEnforced(findings, policies, keys)
  if (findings.names('models').size === 0 && draft.models !== undefined)
    findings.wrongName(['models'], 'there is no model in it: nothing could be called')
  const demo = sha256Of(DEMO_SECRET)
  if (!isLoopback(listen.host)) {
    if (findings.names('keys').size === 0) findings.warn(['listen'], 'there are no keys: whoever reaches this address can use every model')
    for (const key of keys.values()) {
      if (key.sha256 === demo)
        findings.warn(['keys', key.name], 'this secret is printed in the manual, and the gateway can be reached from other machines')
    }
  }
  return {
    file,
    listen,
    ops,
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
    drain_timeout: readTimer(findings, draft.drain_timeout, ['drain_timeout'], 'zero'),
    tls: readTls(findings, draft.tls),
    log: draft.log,
  }
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
  if (document.errors.length > 0) throw new ConfigError(shown, inOrder(document.errors))
  if (document.value === null) throw fail({ message: 'the file is empty' })
  return document
}

function placed(document: Document, problems: readonly Problem[]): PlacedProblem[] {
  return inOrder(
    problems.map(({ path, message, part, place }) => ({ ...(place ?? document.locate(path, part)), path: showPath(path), message })),
  )
}

function inOrder(problems: readonly PlacedProblem[]): PlacedProblem[] {
  return [...problems].sort((a, b) => a.line - b.line || a.col - b.col)
}

/** As people would name it: relative where it lies below the working directory, so that a click in a terminal finds it. */
function shownAs(file: string, cwd: string): string {
  const name = relative(cwd, file)
  return name.startsWith('..') || isAbsolute(name) ? file : name
}

function valueAt(root: unknown, path: Path): unknown {
  let value = root
  for (const step of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined
    value = (value as Readonly<Record<string | number, unknown>>)[step]
  }
  return value
}
