import type { Io } from '../commands/command.js'
import type { Config } from '../config/config.js'
import { loadConfig } from '../config/load.js'
import { loadKinds } from '../upstream/kinds.js'

/** The config as the gateway would read it. Throws a ConfigError. Its warnings are for `check` and the start to tell. */
export async function readConfig(file: string | undefined, io: Io): Promise<Config> {
  const kinds = await loadKinds()
  return loadConfig(file ?? 'gateway.yaml', { env: io.env, kinds, cwd: io.cwd }).config
}
