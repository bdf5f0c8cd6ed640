import type { ErrorDetails } from '../errors.js'
import type { Exchange, Tried } from '../exchange.js'
import type { Claim, Reading } from '../ledger/ledger.js'
import type { Ran } from '../lifecycle.js'
import type { Outcome } from '../policy.js'
import type { Access } from './log.js'

/**
 * One request that is over, as the page and the live views show it: its line of the log, and how it was decided. What it did not reach is
 * `null` or empty. Like the log it has no field for a prompt, an answer, a header or a secret, and none is to be added. Rial and counters are
 * bigint; all of it is plain data.
 */
export interface RecentExchange {
  /** Counts up by one with every request, from 1 at the first that was kept. */
  readonly seq: number
  readonly line: Access
  readonly account: string | null
  /** `refused`: nothing was held. `voided`: held and given back. `answered`: a page that is not metered. */
  readonly state: Outcome['state']
  /** What the policies claimed, in the order of the chain; empty where it did not come to that. */
  readonly claims: readonly RecentClaim[]
  /** A ceiling's no, in words and figures. Other errors have their code in the line, and no words: those may quote what the client sent. */
  readonly refusal: { readonly code: string; readonly message: string; readonly details: ErrorDetails } | null
  /** Tokens: what was held for. */
  readonly estimate: { readonly input: number; readonly output: number } | null
  readonly reasoning_tokens: number | null
  /** What the actual cost is above the hold. */
  readonly overrun_rial: bigint | null
  /** Every try at a target, in order. */
  readonly attempts: readonly Tried[]
  /** Milliseconds since it arrived. `read`: its body was there. `sent`: the provider was asked. `first`: there was something to tell. `answered`: the provider had ended. */
  readonly marks: {
    readonly read: number | null
    readonly sent: number | null
    readonly first: number | null
    readonly answered: number | null
  }
}

/** A claim, and its counter at the moment of the decision: admitted where posted + held + amount ≤ ceiling. */
export interface RecentClaim {
  /** Which policy claimed it; `null` where that is not known. */
  readonly policy: string | null
  readonly code: string
  readonly meter: string
  /** `key:app-a`, `account:acme`. */
  readonly subject: string
  readonly window: string
  /** Milliseconds since the epoch; `null`: it has no end. */
  readonly window_end: number | null
  readonly amount: bigint
  readonly posted: bigint
  /** By requests that were under way then, without this one. */
  readonly held: bigint
  /** `null`: none. Of a wallet: its credits. */
  readonly ceiling: bigint | null
  /** The first that did not fit: the refusal. */
  readonly refused: boolean
}

const KEPT = 2048
const REFUSED_KEPT = 512

/**
 * The last exchanges, for whoever watches: the page, `tail`, `top`. Memory is bounded: the last 2,048, and the last 512 that were refused or
 * failed, which a crowd of good ones does not push out. Nothing is kept, and nothing is to be called, while nobody watches (`on`).
 */
export class Recent {
  /** Which policy claims with a code: for a chain to note (`Chain.authors`) while it is on. */
  readonly authors = new Map<string, string>()
  readonly #all = new Ring<RecentExchange>(KEPT)
  readonly #refused = new Ring<RecentExchange>(REFUSED_KEPT)
  readonly #listeners = new Set<(exchange: RecentExchange) => void>()
  #watching = 0
  #seq = 0
  readonly #turned: (on: boolean) => void

  /** `turned` hears when the first begins to watch, and when the last has left. */
  constructor(turned: (on: boolean) => void = () => {}) {
    this.#turned = turned
  }

  /** Does anybody watch? Ask before calling `add`. */
  get on(): boolean {
    return this.#watching > 0
  }

  /** Of the last one kept; 0 where there is none. */
  get seq(): number {
    return this.#seq
  }

  /** From now on exchanges are kept, and told to `listener` as they end. The function that is returned ends it, once. */
  watch(listener: (exchange: RecentExchange) => void = () => {}): () => void {
    // A copy of its own, so that one function may listen twice.
    const own = (exchange: RecentExchange): void => listener(exchange)
    this.#listeners.add(own)
    if (++this.#watching === 1) this.#turned(true)
    return () => {
      if (!this.#listeners.delete(own)) return
      this.#watching--
      if (this.#watching > 0) return
      this.#all.clear()
      this.#refused.clear()
      this.#turned(false)
    }
  }

  /** An exchange that is over. `exchange` and `ran` are `null` for a request that was turned away before anybody was asked who it is. */
  add(line: Access, exchange: Exchange | null, ran: Ran | null): void {
    this.#keep(recent(++this.#seq, line, exchange, ran, this.authors))
  }

  /** One that is over in another process, whose number it does not keep. */
  take(exchange: RecentExchange): void {
    this.#keep({ ...exchange, seq: ++this.#seq })
  }

  #keep(kept: RecentExchange): void {
    this.#all.push(kept)
    if (kept.line.code !== null) this.#refused.push(kept)
    for (const listener of this.#listeners) listener(kept)
  }

  /** Those after `seq`, oldest first: at most the last `limit`. `refused`: only those that were refused or failed. */
  after(seq: number, limit: number, which: 'all' | 'refused' = 'all'): RecentExchange[] {
    return (which === 'all' ? this.#all : this.#refused).last(limit, kept => kept.seq > seq)
  }

  /** The one of a request id, while it is kept. */
  find(id: string): RecentExchange | undefined {
    const same = (kept: RecentExchange): boolean => kept.line.request_id === id
    return this.#all.find(same) ?? this.#refused.find(same)
  }
}

/** The last `size` of what was pushed. */
class Ring<T> {
  readonly #slots: T[] = []
  #next = 0

  constructor(readonly size: number) {}

  push(value: T): void {
    this.#slots[this.#next] = value
    this.#next = (this.#next + 1) % this.size
  }

  clear(): void {
    this.#slots.length = 0
    this.#next = 0
  }

  find(test: (value: T) => boolean): T | undefined {
    return this.#slots.find(test)
  }

  /** The newest ones, as long as the test holds, oldest first. */
  last(limit: number, test: (value: T) => boolean): T[] {
    const found: T[] = []
    const most = Math.min(limit, this.#slots.length)
    for (let back = 1; back <= most; back++) {
      const value = this.#slots[(this.#next - back + this.size) % this.size] as T
      if (!test(value)) break
      found.push(value)
    }
    return found.reverse()
  }
}

const NO_MARKS: RecentExchange['marks'] = { read: null, sent: null, first: null, answered: null }

function recent(
  seq: number,
  line: Access,
  exchange: Exchange | null,
  ran: Ran | null,
  authors: ReadonlyMap<string, string>,
): RecentExchange {
  const details = ran?.error?.details
  return {
    seq,
    line,
    account: exchange?.key.account ?? null,
    state: ran?.outcome.state ?? 'refused',
    claims: exchange === null ? [] : claimsOf(exchange, ran?.outcome.state === 'refused', authors),
    refusal:
      ran === null || ran.error === null || details === undefined ? null : { code: ran.error.code, message: ran.error.message, details },
    estimate: exchange?.estimate === undefined ? null : { input: exchange.estimate.input, output: exchange.estimate.output },
    reasoning_tokens: ran?.billing?.usage.reasoning ?? null,
    overrun_rial: ran?.billing?.overrun ?? null,
    attempts: exchange?.tried ?? [],
    marks: exchange === null ? NO_MARKS : marksOf(exchange),
  }
}

function marksOf({ marks, since }: Exchange): RecentExchange['marks'] {
  const after = (moment: number | undefined): number | null => (moment === undefined ? null : moment - since)
  return { read: after(marks.read), sent: after(marks.sent), first: after(marks.first), answered: after(marks.answered) }
}

function claimsOf({ claims, readings }: Exchange, refused: boolean, authors: ReadonlyMap<string, string>): RecentClaim[] {
  if (readings.length < claims.length) return []
  let decided = false
  return claims.map((claim, i) => {
    const { posted, pending, ceiling } = readings[i] as Reading
    const no = refused && !decided && ceiling !== null && posted + pending + asked(claims, claim, i + 1) > ceiling
    if (no) decided = true
    const { kind, end } = claim.counter.window
    return {
      policy: authors.get(claim.code) ?? null,
      code: claim.code,
      meter: claim.counter.meter,
      subject: claim.counter.subject,
      window: kind,
      window_end: Number.isFinite(end) ? end : null,
      amount: claim.amount,
      posted,
      // After an admission a reading has this request in it.
      held: refused ? pending : pending - asked(claims, claim, claims.length),
      ceiling,
      refused: no,
    }
  })
}

/** What the first `count` claims of a request ask of a counter. */
function asked(claims: readonly Claim[], { counter }: Claim, count: number): bigint {
  let sum = 0n
  for (let i = 0; i < count; i++) {
    const { counter: other, amount } = claims[i] as Claim
    const { kind, start } = other.window
    if (
      other.meter === counter.meter &&
      other.subject === counter.subject &&
      kind === counter.window.kind &&
      start === counter.window.start
    )
      sum += amount
  }
  return sum
}
