import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, extname, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

/** Imports a module by the name that the config uses; where it lies is decided by what the name looks like. */
export interface PluginPlace {
  /** Folder of the modules that go by a bare name: `rate` is `<folder>/rate.js`. */
  readonly folder: URL
  /** The config file: `./x` is relative to it, and packages are looked for from there. */
  readonly configFile: string
}

/** The bare names there are: the files of the folder. */
export function names(folder: URL): string[] {
  return readdirSync(folder)
    .filter(file => extname(file) === '.js')
    .map(file => file.slice(0, -3))
    .sort()
}

/** The module that `use` names: a file of the folder, a path that begins with a dot (or is absolute), or a package. Throws an Error with a remedy. */
export async function importPlugin(use: string, place: PluginPlace): Promise<Record<string, unknown>> {
  const url = locate(use, place)
  return (await import(url.href)) as Record<string, unknown>
}

function locate(use: string, place: PluginPlace): URL {
  if (/^\.{0,2}\//.test(use)) return pathToFileURL(resolve(dirname(place.configFile), use))
  if (names(place.folder).includes(use)) return new URL(`${use}.js`, place.folder)
  const require = createRequire(place.configFile)
  try {
    return pathToFileURL(require.resolve(use))
  } catch (error) {
    if ((error as { code?: string }).code === 'ERR_PACKAGE_PATH_NOT_EXPORTED') return importOnly(use, require)
    throw new Error(`there is neither a policy nor a package of this name (policies: ${names(place.folder).join(', ')})`, { cause: error })
  }
}

/** A package that exports itself to `import` alone, which `require.resolve` does not see. */
function importOnly(use: string, require: NodeJS.Require): URL {
  for (const folder of require.resolve.paths(use) ?? []) {
    try {
      const root = join(folder, use)
      const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { exports?: unknown }
      const entry = entryOf(exports)
      if (entry !== undefined) return pathToFileURL(join(root, entry))
    } catch {
      // Not in this folder: the next one.
    }
  }
  throw new Error(`package ${use} exports nothing that can be imported`)
}

function entryOf(exports: unknown): string | undefined {
  if (typeof exports === 'string') return exports
  if (typeof exports !== 'object' || exports === null) return undefined
  const conditions = exports as Record<string, unknown>
  for (const condition of ['.', 'node', 'import', 'default']) {
    const entry = entryOf(conditions[condition])
    if (entry !== undefined) return entry
  }
  return undefined
}

/** The folder of the gateway's own policies. */
export const POLICIES = new URL('../policies/', import.meta.url)

/** A path for a message. */
export function shown(url: URL): string {
  return fileURLToPath(url)
}
