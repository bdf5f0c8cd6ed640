import { buildChain } from './build-chain.js'
import { Catalog } from './config/catalog.js'
import type { Config } from './config/config.js'
import { Tokenizers } from './counting/tokenizers.js'
import type { Ledger } from './ledger/ledger.js'
import { windows } from './ledger/windows.js'
import { isoTime, zone } from './ledger/zone.js'
import type { Runtime, Services } from './runtime.js'
import type { Log } from './telemetry/log.js'
import type { Provider } from './upstream/providers/provider.js'
import { Upstreams } from './upstream/upstream.js'

export interface SetUpFacts {
  readonly ledger: Pick<Ledger, 'read'>
  readonly log: Log
  readonly services: Pick<Services, 'clock' | 'fault' | 'counted'>
}

/** Turns a config into running parts. Throws a ConfigError where a policy can not be had. Nothing of `before` is changed, nor in the ledger. */
export async function setUp(
  config: Config,
  providers: ReadonlyMap<string, Provider>,
  facts: SetUpFacts,
  before?: Runtime,
): Promise<Runtime> {
  const { ledger, log, services } = facts
  const place = zone(config.timezone)
  const find = windows(config.timezone, config.month)
  const chain = await buildChain({
    config,
    windows: find,
    ledger,
    now: () => services.clock.now(),
    log: (policy, message, fields) => log.policy(policy, message, fields),
    fault: (policy, hook, error) => services.fault(`hook ${hook} of a policy failed`, error, { policy }),
  })
  let tokenizers: Tokenizers | undefined
  try {
    tokenizers = await Tokenizers.start(config, () => services.clock.monotonic(), services.counted)
    return {
      config,
      chain,
      tokenizers,
      catalog: new Catalog(config),
      upstreams: await Upstreams.start(config, providers, provider => tellDistrust(provider, log), before?.upstreams),
      windows: find,
      iso: at => isoTime(at, place),
    }
  } catch (error) {
    await chain.close()
    await tokenizers?.close()
    throw error
  }
}

/**
 * An account's opening balance, be it 0, is credited once, when the account is first seen; what the config says later changes nothing. For a config that is sure to
 * come into force. When this returns, the ledger has been asked already: whatever it is asked from then on finds the credits.
 */
export async function openAccounts({ accounts }: Config, ledger: Pick<Ledger, 'credit'>, at: number): Promise<void> {
  await Promise.all(
    [...accounts.values()].map(({ name, opening_balance_rial: amount }) =>
      ledger.credit({ id: `opening:${name}`, account: name, amount, note: 'opening balance', at }),
    ),
  )
}

function tellDistrust(provider: string, log: Log): void {
  const message = 'a provider wrote what nobody had asked for: for a minute, each of its requests has a connection of its own'
  log.warn(message, { provider })
}

/** Nothing of this config is under way any more. */
export async function closeRuntime({ chain, tokenizers, upstreams }: Runtime): Promise<void> {
  await chain.close()
  await tokenizers.close()
  await upstreams.close()
}
