import { readFile } from 'node:fs/promises'
import { type Loaded, loadConfig } from './config/load.js'
import { kindsOf, loadNamedProviders } from './upstream/kinds.js'
import type { Provider } from './upstream/providers/provider.js'

export interface ReadConfig {
  readonly loaded: Loaded
  /** The kinds that the config uses, by name. */
  readonly providers: ReadonlyMap<string, Provider>
}

/** Reads a config, and imports the provider kinds that it names. Throws a ConfigError. */
export async function readConfig(file: string, env: Readonly<Record<string, string | undefined>>): Promise<ReadConfig> {
  // A file that can not be read is reported by the loader, in the form of all that is wrong with a config.
  const text = await readFile(file, 'utf8').catch(() => '')
  const { providers, names } = await loadNamedProviders(text)
  return { loaded: loadConfig(file, { env, kinds: kindsOf(providers, names) }), providers }
}
