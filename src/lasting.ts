import type { Config } from './config/config.js'

/** What this process keeps from its start to its end, whatever is reloaded: by setting, as text to compare. */
export function lasting({ listen, ops, admin, timezone, month, ledger, tls, workers, log }: Config): ReadonlyMap<string, string> {
  const settings = {
    listen,
    ops,
    admin,
    timezone,
    month,
    ledger,
    tls: tls === null,
    workers,
    'tls.client_ca': tls?.client_ca == null,
    'log.format': log.format,
  }
  return new Map(Object.entries(settings).map(([name, value]) => [name, JSON.stringify(value)]))
}

/** A config that was read again, as it is put to use: a counter belongs to a window, and in those of another zone or calendar every ceiling would be fresh. */
export function inWindowsOf({ timezone, month }: Config, config: Config): Config {
  return { ...config, timezone, month }
}
