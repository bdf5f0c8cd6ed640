import { createHash } from 'node:crypto'
import type { Account, Key, Plan } from './config.js'
import { parseMoment } from './dates.js'
import type { Draft, KeyDraft, PlanDraft, Section } from './draft.js'
import type { Findings } from './findings.js'
import { showPath } from './problems.js'
import { checkReference, type ModelNames } from './references.js'

/** The secret of the key in the shipped gateway.yaml: known to everybody. */
export const DEMO_SECRET = 'mgk_demo_local_only'
const SHORT_SECRET = 16

export function readPlans(drafts: Section<PlanDraft>, names: ModelNames): Map<string, Plan> {
  const plans = new Map<string, Plan>()
  for (const [name, draft] of Object.entries(drafts)) {
    names.checkList(draft.models, ['plans', name, 'models'])
    plans.set(name, {
      name,
      requests_per_minute: ceiling(draft.requests_per_minute),
      requests_per_hour: ceiling(draft.requests_per_hour),
      requests_per_day: ceiling(draft.requests_per_day),
      tokens_per_minute: ceiling(draft.tokens_per_minute),
      models: draft.models,
    })
  }
  return plans
}

export function readAccounts(drafts: Draft['accounts']): Map<string, Account> {
  return new Map(Object.entries(drafts).map(([name, draft]) => [name, { name, opening_balance_rial: BigInt(draft.opening_balance_rial) }]))
}

/** The keys of the file, without their secrets. What is wrong with them is in `findings`. */
export function readKeys(
  findings: Findings,
  drafts: Section<KeyDraft>,
  plans: ReadonlyMap<string, Plan>,
  names: ModelNames,
  timezone: string,
): Map<string, Key> {
  const keys = new Map<string, Key>()
  const bySecret = new Map<string, string>()
  const planNames = findings.names('plans')
  const accountNames = findings.names('accounts')
  const moments = new Map<string, number | null>()

  const moment = (text: string): number | null => {
    // A zone costs 50 µs to ask; many keys end on the same day.
    if (!moments.has(text)) moments.set(text, parseMoment(text, timezone))
    return moments.get(text) ?? null
  }

  for (const [name, draft] of Object.entries(drafts)) {
    const path = ['keys', name]
    if (name === 'anonymous') findings.wrongName(path, 'this name is what callers without a key are counted under')
    if (draft.account !== undefined) checkReference(findings, [...path, 'account'], 'account', draft.account, accountNames)
    if (draft.plan !== undefined) checkReference(findings, [...path, 'plan'], 'plan', draft.plan, planNames)
    names.checkList(draft.models, [...path, 'models'])
    const expires = draft.expires === null ? null : moment(draft.expires)
    if (draft.expires !== null && expires === null) findings.wrong([...path, 'expires'], 'no calendar has this moment')

    const sha256 = digest(draft)
    const from = draft.secret === undefined ? 'sha256' : 'secret'
    const other = sha256 === undefined ? undefined : bySecret.get(sha256)
    if (other !== undefined) findings.wrong([...path, from], `the same secret as ${showPath(['keys', other])}`)
    else if (sha256 !== undefined) bySecret.set(sha256, name)
    if (draft.secret !== undefined && draft.secret.length < SHORT_SECRET) {
      findings.warn(
        [...path, 'secret'],
        `the secret of ${showPath(path)} is short enough to be guessed; \`model-gateway keys new\` makes a good one`,
      )
    }

    const plan = draft.plan === undefined ? undefined : plans.get(draft.plan)
    if (plan === undefined || sha256 === undefined) continue
    const { daily_tokens, daily_rial, monthly_rial } = draft.budget
    keys.set(name, {
      name,
      account: draft.account ?? null,
      plan,
      budget: { daily_tokens: ceiling(daily_tokens), daily_rial: ceiling(daily_rial), monthly_rial: ceiling(monthly_rial) },
      sha256,
      models: draft.models,
      expires,
      disabled: draft.disabled,
    })
  }
  return keys
}

/** SHA-256 of a secret in hex, as a key holds it. */
export function sha256Of(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}

function digest(draft: KeyDraft): string | undefined {
  return draft.secret === undefined ? draft.sha256?.toLowerCase() : sha256Of(draft.secret)
}

function ceiling(amount: number | null): bigint | null {
  return amount === null ? null : BigInt(amount)
}
