import type { Test } from 'tap'
import { accountRial } from '../../src/ledger/counters.js'
import type { Admission, Claim, Counter, Ends, Ledger } from '../../src/ledger/ledger.js'
import type { WindowKind } from '../../src/ledger/windows.js'
import { admissionRecord, endingRecord } from './figures.js'

/** The moment of everything in a script. */
export const AT = 1_764_000_000_000

const LENGTH: { readonly [kind in WindowKind]: number } = {
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
  month: 2_592_000_000,
  all: Number.POSITIVE_INFINITY,
}

/**
 * Runs a script against a ledger, one operation and its answer a line; `#` begins a remark.
 *
 *     credit c1 acme 1000 -> credited
 *     hold r1 acme 600 requests/app-a/minute@0=1<=10:counted -> admitted      # of a wallet, and of another counter
 *     hold r2 acme 600 -> insufficient_balance                               # the code of the claim that does not fit
 *     settle r1 450 tokens=20 -> ended                                       # Rial, and another meter's
 *     void r1 -> already_ended
 *     balance acme -> posted=450 pending=0
 *     read requests/app-a/minute@0 -> posted=1 pending=0
 *     open -> -
 *     recover -> r1 r2
 *     verify -> same
 *
 * An operation that is rejected answers `! ` and the error's message, of which the script may give the beginning.
 */
export async function script(t: Test, ledger: Ledger, text: string): Promise<void> {
  for (const line of text.split('\n')) {
    const [command = '', expected = ''] = line
      .replace(/#.*/, '')
      .split('->')
      .map(part => part.trim())
    if (command === '') continue
    const answer = await run(ledger, command.split(/\s+/)).catch((error: Error) => `! ${error.message}`)
    t.equal(expected.startsWith('!') && answer.startsWith(expected) ? expected : answer, expected, command)
  }
}

async function run(ledger: Ledger, [verb, first = '', ...rest]: string[]): Promise<string> {
  switch (verb) {
    case 'credit':
      return ledger.credit({ id: first, account: rest[0] ?? '', amount: BigInt(rest[1] ?? ''), note: 'script', at: AT })
    case 'hold':
      return answer(await ledger.hold({ id: first, at: AT, claims: claims(rest), record: admissionRecord() }))
    case 'settle':
      return ledger.settle(first, { state: 'settled', actual: actual(rest), record: endingRecord() })
    case 'void':
      return ledger.void(first, endingRecord({ ended_by: 'upstream_error', cost_rial: 0n }))
    case 'balance':
      return amounts(await ledger.wallet(first))
    case 'read':
      return (await ledger.read([counter(first)])).map(amounts).join()
    case 'open':
      return ids(await ledger.open())
    case 'recover':
      return ids(await ledger.recover(AT + 1000))
    case 'records':
      return ids(await ledger.records(Object.fromEntries([first, ...rest].filter(part => part !== '').map(part => part.split('=')))))
    case 'verify':
      return (await ledger.verify()).map(({ what, expected, found }) => `${what}: ${found}, not ${expected}`).join('; ') || 'same'
    default:
      throw new Error(`a script can not ${verb}`)
  }
}

function claims(words: readonly string[]): Claim[] {
  const claims: Claim[] = []
  for (let i = 0; i < words.length; i++) {
    const word = words[i] as string
    if (word.includes('/')) claims.push(claim(word))
    else claims.push({ counter: accountRial(word), amount: BigInt(words[++i] ?? ''), ceiling: 'credits', code: 'insufficient_balance' })
  }
  return claims
}

/** `meter/subject/kind@start=amount<=ceiling:ends`; without a ceiling it has none. */
export function claim(word: string): Claim {
  const [, name = '', amount = '', ceiling, ends] = /^([^=]+)=(-?\d+)(?:<=(\d+))?(?::(\w+))?$/.exec(word) ?? []
  const of = counter(name)
  const rest = ends === undefined ? {} : { ends: ends as Ends }
  return {
    counter: of,
    amount: BigInt(amount),
    ceiling: ceiling === undefined ? null : BigInt(ceiling),
    code: `${of.meter}_${of.window.kind}`,
    ...rest,
  }
}

export function counter(name: string): Counter {
  const [, meter = '', key = '', kind = '', start = ''] = /^(\w+)\/([\w-]+)\/(\w+)@(\d+)$/.exec(name) ?? []
  const length = LENGTH[kind as WindowKind]
  return { meter, subject: `key:${key}`, window: { kind: kind as WindowKind, start: Number(start), end: Number(start) + length } }
}

function actual(words: readonly string[]): { [meter: string]: bigint } {
  return Object.fromEntries(
    words.map(word => (word.includes('=') ? word.split('=') : ['rial', word])).map(([meter, amount]) => [meter, BigInt(amount ?? '')]),
  )
}

function answer(admission: Admission): string {
  return admission.admitted ? 'admitted' : admission.refused.code
}

function amounts({ posted, pending }: { readonly posted: bigint; readonly pending: bigint }): string {
  return `posted=${posted} pending=${pending}`
}

function ids(rows: readonly { readonly id: string }[]): string {
  return rows.map(row => row.id).join(' ') || '-'
}
