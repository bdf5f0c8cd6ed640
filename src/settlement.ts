import type { Clock } from './clock.js'
import type { GatewayError } from './errors.js'
import type { Exchange } from './exchange.js'
import { AMOUNT_MAX } from './ledger/cells.js'
import type { EndedBy, EndingRecord, Settlement } from './ledger/ledger.js'
import { cost, priceText } from './metering/price.js'
import type { Usage } from './metering/usage.js'
import type { Services } from './runtime.js'
import type { Billable } from './upstream/fallback.js'

/** What an exchange is charged for. `cost` and `overrun` in Rial. */
export interface Billing {
  readonly usage: Usage
  readonly cost: bigint
  readonly overrun: bigint
  readonly endedBy: EndedBy
}

/** How an exchange that has delivered something has ended. */
export interface End {
  readonly usage: Usage
  readonly endedBy: EndedBy
  readonly status: number
  readonly error: GatewayError | null
}

/**
 * The settlement of what `billable` has delivered, at the price of the target that delivered it. Of what is more than a ledger can keep, the most that it can: a
 * settlement that is refused would leave its hold open, and charge nothing.
 */
export function settlement(
  exchange: Exchange,
  billable: Billable,
  end: End,
  { clock, fault }: Pick<Services, 'clock' | 'fault'>,
): { billing: Billing; settled: Settlement } {
  const { usage } = end
  const due = cost(billable.target.model.price, usage)
  const charged = atMost(due)
  if (charged < due)
    fault('a request cost more than a ledger can keep', new RangeError(`${due} Rial, of which ${charged} are charged`), {
      request_id: exchange.id,
    })
  const record = ending(exchange, end, charged, billable, clock)
  return {
    billing: { usage, cost: charged, overrun: record.overrun_rial, endedBy: end.endedBy },
    settled: {
      state: end.error === null ? 'settled' : 'partial',
      actual: { tokens: atMost(BigInt(usage.input + usage.output)), rial: charged },
      record,
    },
  }
}

/** The second half of the usage record. `charged`: Rial. */
export function ending(exchange: Exchange, end: End, charged: bigint, billable: Billable | null, clock: Clock): EndingRecord {
  const { usage } = end
  const model = billable?.target.model ?? exchange.model
  const held = exchange.estimateRial
  const now = clock.monotonic()
  const { first } = exchange.marks
  return {
    ended_at: clock.now(),
    ended_by: end.endedBy,
    usage_source: usage.source,
    input_tokens: usage.input,
    cached_input_tokens: usage.cached,
    output_tokens: usage.output,
    reasoning_tokens: usage.reasoning,
    cost_rial: charged,
    overrun_rial: charged > held ? charged - held : 0n,
    status: end.status,
    code: end.error?.code ?? null,
    provider: model.provider.name,
    price: priceText(model.price),
    upstream_request_id: billable?.upstreamRequestId ?? null,
    attempts: JSON.stringify(exchange.tried),
    ttft_ms: exchange.stream && first !== undefined ? Math.round(first - exchange.since) : null,
    duration_ms: Math.round(now - exchange.since),
  }
}

function atMost(amount: bigint): bigint {
  return amount > AMOUNT_MAX ? AMOUNT_MAX : amount
}
