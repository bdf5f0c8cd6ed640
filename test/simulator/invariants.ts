import type { Config } from '../../src/config/config.js'
import type { Exchange } from '../../src/exchange.js'
import type { JsonObject } from '../../src/json.js'
import type { EndingRecord, Hold, Settlement } from '../../src/ledger/ledger.js'
import { chatTokens } from '../../src/metering/chat.js'
import { type Books, type Fate, must } from './books.js'
import type { Client } from './client.js'
import type { Life } from './life.js'
import type { FarRequest } from './provider.js'
import { costOf } from './usage.js'

/** One request of one client, from its first byte to the end of its exchange. */
export interface Visit {
  readonly id: string
  readonly trace: string
  readonly key: string
  readonly body: JsonObject
  readonly client: Client
  readonly exchange: Exchange
  /** The config that it began with. */
  readonly config: Config
  readonly life: Life
  /** Its exchange is over. */
  over: boolean
  /** What was settled for it, once the ledger was asked to. */
  record: EndingRecord | null
  /** What it costs by the reference, in Rial. */
  due: bigint
}

/** What the gateway asks of its ledger for `visit`: the claims are its own key's, in windows of its own moment. */
export function checkHold({ claims, at, record }: Hold, { exchange, key, config, life }: Visit): void {
  const { account } = config.keys.get(key) ?? {}
  must(at === exchange.at && record.key === key, () => `${exchange.id} is held for ${record.key}`)
  const subjects = new Set([`key:${key}`, `account:${account}`])
  for (const { counter, amount, code } of claims) {
    must(subjects.has(counter.subject), () => `${exchange.id} of ${key} claims of ${counter.subject}`)
    const { start, end } = counter.window
    must(start <= at && at < end, () => `${exchange.id} at ${at} claims in the ${counter.window.kind} from ${start} to ${end}`)
    must(amount >= 0n, () => `${exchange.id} claims ${amount} for ${code}`)
  }
  const codes = claims.map(({ code }) => code).join(' ')
  const all =
    'rate_limit_rpm rate_limit_rph rate_limit_rpd rate_limit_tpm key_daily_token_budget_reached key_daily_budget_reached monthly_cap_reached'
  must(codes === (account === null ? all : `${all} insufficient_balance`), () => `${exchange.id} claims ${codes}`)
  must(
    life.farEnd.seen.every(far => far.trace !== exchange.traceId),
    () => `${exchange.id} was forwarded before it was held`,
  )
}

/** How a hold is ended: what it costs is the reference price of what the far end has done, at the prices of the visit's own config. */
export function checkEnd(visit: Visit, fate: Fate, record: EndingRecord, actual: Settlement['actual'] | null): void {
  const { id, exchange, config, life, trace } = visit
  const tried = (JSON.parse(record.attempts) as { target: string }[]).map(({ target }) => target)
  const seen = life.farEnd.seen.filter(far => far.trace === trace)
  must(seen.map(far => far.model.id).join() === tried.join(), () => `${id}: targets ${tried.join()}, the far end saw ${seen.length}`)
  if (fate === 'voided') {
    must(record.cost_rial === 0n && actual === null, () => `${id} is voided at ${record.cost_rial}`)
    return
  }
  const far = seen.at(-1)
  must(far?.sent === true, () => `${id} is ${fate}, and nothing had gone out`)
  const due = dueOf(visit, far, fate)
  const { input_tokens: input, cached_input_tokens: cached, output_tokens: output } = record
  const tokens = `${input}/${cached}/${output}`
  must(
    tokens === `${due.input}/${due.cached}/${due.output}`,
    () => `${id} (${far.usage.kind}, ${far.fate}) is ${fate} with ${tokens}, due are ${due.input}/${due.cached}/${due.output}`,
  )
  const cost = costOf(config.models.get(far.model.id)?.price ?? null, due)
  visit.due = cost
  const over = cost > exchange.estimateRial ? cost - exchange.estimateRial : 0n
  const billed =
    record.cost_rial === cost && record.overrun_rial === over && actual?.rial === cost && actual.tokens === BigInt(input + output)
  must(billed, () => `${id} is billed ${record.cost_rial} Rial (overrun ${record.overrun_rial}); ${cost} are due`)
}

function dueOf({ body }: Visit, far: FarRequest, fate: Fate): { input: number; cached: number; output: number } {
  const { due } = far.usage
  if (far.told && due !== null) return fate === 'settled' ? due : { ...due, output: Math.max(due.output, far.counted) }
  return { input: chatTokens(body, far.model).input, cached: 0, output: far.counted }
}

/** What holds for a visit that is over, whatever became of it. */
export function checkVisit({ id, client, exchange, trace, life, record }: Visit, books: Books): void {
  const entry = books.entries.get(id)
  const forwarded = life.farEnd.seen.some(far => far.trace === trace)
  if (entry === undefined) must(!forwarded, () => `${id} was forwarded without a hold`)
  if (client.whole) {
    must(entry?.fate === 'settled', () => `${id} was received in full, and is ${entry?.fate ?? 'unknown'}`)
    must(record !== null, () => `${id} was received in full before it was settled`)
  }
  if (!client.left && !life.disk.dead) must(client.ended || client.waiting, () => `${id} has no answer: ${client.status} ${exchange.gone}`)
  const refused = client.status === 402 || (client.status === 429 && !forwarded)
  if (refused) must(entry === undefined, () => `${id} was refused with ${client.status}, and is ${entry?.fate}`)
  const failed = client.status >= 400 && entry !== undefined && !client.left
  if (failed) must(entry.fate === 'voided' || entry.fate === 'held', () => `${id} got ${client.status}, and is ${entry.fate}`)
}

/** The ledger against the books, counter by counter and wallet by wallet; and against its own records. */
export async function checkLedger(life: Life, books: Books, accounts: Iterable<string>): Promise<void> {
  const { file } = life
  const balances = [...books.balances.values()]
  // Asked in one turn: nothing comes in between.
  const [readings, open, wallets] = await Promise.all([
    file
      .read(balances.map(({ counter }) => counter))
      .then(found => found.map((reading, i) => ({ reading, ...(balances[i] as (typeof balances)[0]) }))),
    file.open().then(found => ({
      found: found
        .map(({ id }) => id)
        .sort()
        .join(),
      right: books.open().sort().join(),
    })),
    Promise.all([...accounts].map(async account => ({ wallet: await file.wallet(account), credited: books.creditOf(account) }))),
  ])
  for (const { reading, counter, posted, pending } of readings) {
    must(reading.posted === posted && reading.pending === pending, () => {
      const { meter, subject, window } = counter
      return `${meter} of ${subject} in the ${window.kind} from ${window.start} is ${reading.posted} + ${reading.pending}, not ${posted} + ${pending}`
    })
  }
  must(open.found === open.right, () => `open are ${open.found}, not ${open.right}`)
  for (const { wallet, credited } of wallets) {
    must(wallet.credited === credited, () => `${wallet.account} was credited ${wallet.credited}, not ${credited}`)
  }
  const differences = await file.verify()
  must(differences.length === 0, () => `verify: ${JSON.stringify(differences)}`)
}
