import { resolve } from 'node:path'
import { type Loaded, loadConfig } from './config/load.js'
import { type ReadFile, readText } from './config/secrets.js'
import { kindsOf, loadNamedProviders } from './upstream/kinds.js'
import type { Provider } from './upstream/providers/provider.js'

export interface ReadConfig {
  readonly loaded: Loaded
  /** The kinds that the config uses, by name. */
  readonly providers: ReadonlyMap<string, Provider>
}

/**
 * Reads a config, and imports the provider kinds that it names. Throws a ConfigError. `readFile`: of it and of all that it names, each once; by default from
 * the disk.
 */
export async function readConfig(
  file: string,
  env: Readonly<Record<string, string | undefined>>,
  readFile: ReadFile = readText,
): Promise<ReadConfig> {
  const read = once(readFile)
  const { providers, names } = await loadNamedProviders(textOrNone(read, resolve(file)))
  return { loaded: loadConfig(file, { env, kinds: kindsOf(providers, names), readFile: read }), providers }
}

/** What names the kinds is what is loaded, though the file may hold something else by then. */
function once(readFile: ReadFile): ReadFile {
  const results = new Map<string, () => string>()
  return path => {
    let result = results.get(path)
    if (result === undefined) {
      result = attempted(() => readFile(path))
      results.set(path, result)
    }
    return result()
  }
}

function attempted(read: () => string): () => string {
  try {
    const text = read()
    return () => text
  } catch (error) {
    return () => {
      throw error
    }
  }
}

/** A file that can not be read is reported by the loader, in the form of all that is wrong with a config. */
function textOrNone(read: ReadFile, file: string): string {
  try {
    return read(file)
  } catch {
    return ''
  }
}
