import type { Counter } from './ledger.js'
import type { Window } from './windows.js'

/*
 * The names of what is counted. Policies claim these, GET /v1/key reads them, and nothing else spells them out.
 */

const ALL_TIME: Window = { kind: 'all', start: 0, end: Number.POSITIVE_INFINITY }

export function keyRequests(key: string, window: Window): Counter {
  return { meter: 'requests', subject: keySubject(key), window }
}

export function keyTokens(key: string, window: Window): Counter {
  return { meter: 'tokens', subject: keySubject(key), window }
}

export function keyRial(key: string, window: Window): Counter {
  return { meter: 'rial', subject: keySubject(key), window }
}

/** The wallet: a counter of all time, whose ceiling is what has been credited. */
export function accountRial(account: string): Counter {
  return { meter: 'rial', subject: accountSubject(account), window: ALL_TIME }
}

const ACCOUNT = 'account:'

export const accountSubject = subjects(ACCOUNT)

const keySubject = subjects('key:')

const SUBJECTS_KEPT = 10_000

/** Subjects by name, each made once: they are looked up with every request. */
function subjects(prefix: string): (name: string) => string {
  const known = new Map<string, string>()
  return name => {
    let subject = known.get(name)
    if (subject === undefined) {
      subject = prefix + name
      if (known.size >= SUBJECTS_KEPT) known.clear()
      known.set(name, subject)
    }
    return subject
  }
}

/** The account whose credits a subject's ceiling `'credits'` means; `null` where the subject is no account. */
export function accountOf(subject: string): string | null {
  return subject.startsWith(ACCOUNT) ? subject.slice(ACCOUNT.length) : null
}
