import type { Key, Plan } from '../../src/config/config.js'
import { GatewayError } from '../../src/errors.js'
import { ANONYMOUS, type Asked } from '../../src/exchange.js'
import type { Counter, Reading } from '../../src/ledger/ledger.js'
import { windows } from '../../src/ledger/windows.js'
import type { Host } from '../../src/policy.js'
import { sampleModel } from './sample-call.js'

/** A moment in the middle of everything: 2026-11-21 13:45:20.500 in Tehran, 10:15:20.500 UTC. */
export const AT = Date.UTC(2026, 10, 21, 10, 15, 20, 500)

export const tehran = windows('Asia/Tehran', 'gregorian')

export function keyOf(
  given: Partial<Omit<Key, 'plan' | 'budget'>> & { readonly plan?: Partial<Plan>; readonly budget?: Partial<Key['budget']> } = {},
): Key {
  return {
    ...ANONYMOUS,
    name: 'a',
    account: 'acme',
    ...given,
    plan: { ...ANONYMOUS.plan, name: 'p', ...given.plan },
    budget: { ...ANONYMOUS.budget, ...given.budget },
  }
}

/** A request of which everything is known, as policies see it. */
export function asked(given: Partial<Asked> = {}): Asked {
  return {
    id: 'req_01K9ZB3J6Q0V8N7T5R4W2Y1XCD',
    at: AT,
    surface: 'chat',
    method: 'POST',
    path: '/v1/chat/completions',
    headers: {},
    clientRequestId: null,
    traceId: '0'.repeat(32),
    key: keyOf(),
    body: { model: 'acme/model-1' },
    model: sampleModel(),
    stream: false,
    estimate: { input: 9, output: 10 },
    estimateRial: 400n,
    ...given,
  }
}

export interface TestHost extends Host {
  readonly asked: Counter[][]
  readonly logged: unknown[][]
}

/** A host whose counters read what `found` says: posted and pending. */
export function host(
  keys: readonly Key[] = [],
  found: (counter: Counter) => readonly [bigint, bigint] = () => [0n, 0n],
  now = AT,
): TestHost {
  const asked: Counter[][] = []
  const logged: unknown[][] = []
  return {
    asked,
    logged,
    keys: new Map(keys.map(key => [key.name, key])),
    window: tehran,
    now: () => now,
    read: async counters => {
      asked.push([...counters])
      return counters.map((counter): Reading => {
        const [posted, pending] = found(counter)
        return { counter, ceiling: null, posted, pending }
      })
    },
    error: (code, message, options) => new GatewayError(code, message, options),
    log: (...line) => logged.push(line),
  }
}
