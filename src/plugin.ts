import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, extname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { isObject } from './json.js'

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
  const entry = exported(use, require)
  if (entry !== undefined) return entry
  try {
    return pathToFileURL(require.resolve(use))
  } catch (error) {
    if ((error as { code?: string }).code === 'ERR_PACKAGE_PATH_NOT_EXPORTED') {
      throw new Error(`package ${use} exports nothing that can be imported`, { cause: error })
    }
    throw new Error(`there is neither a policy nor a package of this name (policies: ${names(place.folder).join(', ')})`, { cause: error })
  }
}

/** What a package exports to `import`; `require.resolve` sees only what it exports to `require`, which may be another module or none. */
function exported(use: string, require: NodeJS.Require): URL | undefined {
  const [, name = use, below = ''] = /^((?:@[^/]+\/)?[^/]+)(\/.*)?$/.exec(use) ?? []
  for (const folder of require.resolve.paths(use) ?? []) {
    const root = join(folder, name)
    let exports: unknown
    try {
      exports = (JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { exports?: unknown }).exports
    } catch {
      // Not in this folder: the next one.
      continue
    }
    const entry = entryOf(at(exports, `.${below}`))
    return entry === undefined ? undefined : pathToFileURL(join(root, entry))
  }
  return undefined
}

/** What stands under a subpath of `exports`; without subpaths, all of it is the package's main entry. */
function at(exports: unknown, subpath: string): unknown {
  if (!isObject(exports) || !Object.keys(exports).some(key => key.startsWith('.'))) return subpath === '.' ? exports : undefined
  return exports[subpath]
}

const CONDITIONS = new Set(['node', 'import', 'default'])

/** The first condition that holds, in the package's own order, as Node finds it. */
function entryOf(exports: unknown): string | undefined {
  if (typeof exports === 'string') return exports
  if (!isObject(exports)) return undefined
  for (const [condition, target] of Object.entries(exports)) {
    const entry = CONDITIONS.has(condition) ? entryOf(target) : undefined
    if (entry !== undefined) return entry
  }
  return undefined
}

/** The folder of the gateway's own policies. */
export const POLICIES = new URL('../policies/', import.meta.url)
