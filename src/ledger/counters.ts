import type { Counter } from './ledger.js'
import type { Window } from './windows.js'

/*
 * The names of what is counted. Policies claim these, GET /v1/key reads them, and nothing else spells them out.
 */

const ALL_TIME: Window = { kind: 'all', start: 0, end: Number.POSITIVE_INFINITY }

export function keyRequests(key: string, window: Window): Counter {
  return { meter: 'requests', subject: `key:${key}`, window }
}

export function keyTokens(key: string, window: Window): Counter {
  return { meter: 'tokens', subject: `key:${key}`, window }
}

export function keyRial(key: string, window: Window): Counter {
  return { meter: 'rial', subject: `key:${key}`, window }
}

/** The wallet: a counter of all time, whose ceiling is what has been credited. */
export function accountRial(account: string): Counter {
  return { meter: 'rial', subject: accountSubject(account), window: ALL_TIME }
}

export function accountSubject(account: string): string {
  return `account:${account}`
}

/** The account whose credits a subject's ceiling `'credits'` means; `null` where the subject is no account. */
export function accountOf(subject: string): string | null {
  return subject.startsWith('account:') ? subject.slice('account:'.length) : null
}
