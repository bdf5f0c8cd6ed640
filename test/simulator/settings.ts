import type { Config, Key, Price } from '../../src/config/config.js'
import { loadConfig } from '../../src/config/load.js'
import { kindsOf } from '../../src/upstream/kinds.js'
import type { Provider } from '../../src/upstream/providers/provider.js'
import type { ZONES } from './clock.js'
import type { Random } from './random.js'

export const SECRETS: Readonly<Record<string, string>> = {
  plain: 'mgk_plain',
  second: 'mgk_second',
  other: 'mgk_other',
  free: 'mgk_free',
}

/** Names that clients may ask for; all but the last answer chat. */
export const MODELS = ['near/main', 'near/main', 'near/dear', 'drained/one', 'near/gratis', 'near/unknown'] as const

const YAML = `
providers:
  near: {kind: simulated, base_url: "https://near.example", api_key: sk-near, timeout: {first_byte: 10m, idle: 10m, total: 20m}, health: off}
  far: {kind: simulated, base_url: "https://far.example", api_key: sk-far, timeout: {first_byte: 10m, idle: 10m, total: 20m}, health: off}
  drained: {kind: simulated, base_url: "https://drained.example", on_disconnect: drain, timeout: {first_byte: 10m, idle: 10m, total: 20m}, health: off}
# As many tries as targets, none of them spared: a pause would be one of the machine's clock, and no history could be told twice.
models:
  near/main: {price: {input: 1, output: 1}, max_output_tokens: 60, default_max_tokens: 20, fallback: [far/main, near/gratis], attempts: 3}
  near/dear: {price: {input: 1, output: 1}, max_output_tokens: 100, default_max_tokens: 30, attempts: 1}
  far/main: {price: {input: 1, output: 1}, max_output_tokens: 50, default_max_tokens: 40, attempts: 1}
  drained/one: {price: {input: 1, output: 1}, max_output_tokens: 60, default_max_tokens: 20, attempts: 1}
  near/gratis: {price: free, max_output_tokens: 60, default_max_tokens: 20, attempts: 1}
plans: {p: {requests_per_minute: 9}}
accounts: {acme: {opening_balance_rial: 150000}, beta: {opening_balance_rial: 900000}}
keys:
  plain: {account: acme, plan: p, secret: mgk_plain}
  second: {account: acme, plan: p, secret: mgk_second}
  other: {account: beta, plan: p, secret: mgk_other}
  free: {plan: p, secret: mgk_free}
`

/** A config that is read once, and changed by hand from then on: reading takes longer than a hundred requests. */
export function baseConfig(zone: (typeof ZONES)[number], kinds: ReadonlyMap<string, Provider>): Config {
  const text = `timezone: ${zone.timezone}\nmonth: ${zone.month}\n${YAML}`
  return loadConfig('gateway.yaml', { env: {}, kinds: kindsOf(kinds), readFile: () => text, cwd: '/' }).config
}

/** The same with other ceilings, higher and lower, and other prices. */
export function changed(config: Config, random: Random): Config {
  const models = new Map(
    [...config.models].map(([id, model]) => [id, model.price === null ? model : { ...model, price: anyPrice(random) }]),
  )
  const keys = new Map([...config.keys].map(([name, key]) => [name, anyCeilings(key, random)]))
  return { ...config, models, keys }
}

function anyPrice(random: Random): Price {
  const input = BigInt(random.from(0, 9_999_999))
  return {
    input,
    cached_input: (input * BigInt(random.from(0, 100))) / 100n,
    output: BigInt(random.from(1, 29_999_999)),
    request: random.once(3) ? BigInt(random.from(1, 9)) : 0n,
  }
}

function anyCeilings(key: Key, random: Random): Key {
  // Mostly room for some requests, at times for none, at times no ceiling.
  const ceiling = (least: number, most: number): bigint | null =>
    random.once(3) ? null : random.once(15) ? 0n : BigInt(random.from(least, most))
  return {
    ...key,
    plan: {
      ...key.plan,
      requests_per_minute: ceiling(1, 15),
      requests_per_hour: ceiling(5, 80),
      requests_per_day: ceiling(10, 120),
      tokens_per_minute: ceiling(100, 1500),
    },
    budget: { daily_tokens: ceiling(300, 20_000), daily_rial: ceiling(500, 200_000), monthly_rial: ceiling(1000, 600_000) },
    disabled: random.once(40),
  }
}
