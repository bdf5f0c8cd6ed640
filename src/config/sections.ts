import { resolve } from 'node:path'
import type { Address, Config, Key, Ms, PolicyUse } from './config.js'
import { isTimezone, timezones } from './dates.js'
import type { Draft } from './draft.js'
import { LONGEST_TIMER, parseDuration, parseSize } from './durations.js'
import type { Findings } from './findings.js'
import type { Path } from './problems.js'
import { didYouMean } from './suggest.js'

/** `127.0.0.1:8080`, `[::1]:8080`. Port 0: one that is free. */
export function readAddress(findings: Findings, text: string, path: Path): Address {
  const colon = text.lastIndexOf(':')
  const port = Number(text.slice(colon + 1))
  if (port > 65535) findings.wrong(path, 'the port must be at most 65535')
  return { host: text.slice(0, colon).replace(/^\[|\]$/g, ''), port }
}

/** The page's address, which is no other listener's. */
export function readAdmin(findings: Findings, text: string | null, others: Readonly<Record<string, Address | null>>): Address | null {
  if (text === null) return null
  const admin = readAddress(findings, text, ['admin'])
  for (const [name, other] of Object.entries(others)) {
    if (other !== null && admin.port !== 0 && other.port === admin.port && other.host === admin.host)
      findings.wrong(['admin'], `is the address of ${name} too; the page has one of its own`)
  }
  return admin
}

/** A duration that a timer can wait. Zero only where `zero` says so: elsewhere it would be «never», or «at once», by accident. */
export function readTimer(findings: Findings, text: string, path: Path, zero: 'zero' | 'no zero' = 'no zero'): Ms {
  const duration = parseDuration(text)
  if (duration === null || duration > LONGEST_TIMER) findings.wrong(path, 'must be at most 24d')
  else if (duration === 0 && zero === 'no zero') findings.wrong(path, 'must be longer than 0')
  return duration ?? 0
}

export function readBodyLimit(findings: Findings, size: string | number): number {
  const bytes = typeof size === 'number' ? size : (parseSize(size) ?? 0)
  if (bytes < 1 || bytes > 1024 ** 3) findings.wrong(['limits', 'body'], 'must be from 1B to 1GiB')
  return bytes
}

export function checkTimezone(findings: Findings, timezone: string): boolean {
  if (isTimezone(timezone)) return true
  findings.wrong(['timezone'], `is no time zone that is known here; an example is Asia/Tehran${didYouMean(timezone, timezones())}`)
  return false
}

const DAY: Ms = 86_400_000

export function readLedger(findings: Findings, draft: Draft['ledger']): Config['ledger'] {
  const { retention = null } = draft
  const kept = retention === null ? null : parseDuration(retention)
  if (retention !== null && !(kept !== null && kept >= DAY && kept <= 36_500 * DAY))
    findings.wrong(['ledger', 'retention'], 'must be from 1d to 36500d')
  return { ...draft, retention: kept, path: draft.path === ':memory:' ? draft.path : resolve(findings.source.folder, draft.path) }
}

/** Does a policy go by the path of its file, from the config's folder on? Else it is one of ours, or a package. */
export function isPath(use: string): boolean {
  return /^\.{0,2}\//.test(use)
}

/** The policies in their order; one that stands twice would claim twice. */
export function readPolicies(findings: Findings, drafts: Draft['policies']): PolicyUse[] {
  const uses: PolicyUse[] = []
  for (const [index, draft] of drafts.entries()) {
    const use = typeof draft === 'string' ? draft : draft.use
    if (use === undefined) continue
    const path = ['policies', index]
    if (uses.some(other => other.use === use)) findings.wrong(path, `${JSON.stringify(use)} stands in the list twice`)
    if (isPath(use)) findings.files.push(resolve(findings.source.folder, use))
    uses.push({ use, with: typeof draft === 'string' ? undefined : draft.with, at: findings.source.at(path) })
  }
  return uses
}

/** A ceiling that no policy of the list enforces is refused: nobody should believe in one that does not hold. */
export function checkEnforced(findings: Findings, policies: readonly PolicyUse[], keys: ReadonlyMap<string, Key>): void {
  const has = (name: string) => policies.some(({ use }) => use === name)
  // A policy that is not one of ours may stand in for any of ours; nobody here can tell.
  const foreign = policies.some(({ use }) => /[./]/.test(use))
  const need = (name: string, path: Path, why: string) => {
    if (has(name)) return
    const message = `the policy ${JSON.stringify(name)} is not in policies, so ${why}`
    if (foreign) findings.warn(path, `${message}, unless another policy does`)
    else findings.wrong(path, message)
  }
  const first = (test: (key: Key) => boolean) => [...keys.values()].find(test)

  if (keys.size > 0) need('auth', ['policies'], 'nobody could use a key')
  const rated = first(({ plan }) =>
    [plan.requests_per_minute, plan.requests_per_hour, plan.requests_per_day, plan.tokens_per_minute].some(isSet),
  )
  if (rated !== undefined) need('rate', ['plans', rated.plan.name], 'nothing enforces these ceilings')
  const budgeted = first(({ budget }) => [budget.daily_tokens, budget.daily_rial, budget.monthly_rial].some(isSet))
  if (budgeted !== undefined) need('budget', ['keys', budgeted.name, 'budget'], 'nothing enforces this budget')
  const paying = first(({ account }) => account !== null)
  if (paying !== undefined) need('hold', ['keys', paying.name, 'account'], 'nothing is held from the wallet')
}

function isSet(ceiling: bigint | null): boolean {
  return ceiling !== null
}
