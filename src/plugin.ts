import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, realpathSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, extname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { readBytes, reason } from './config/secrets.js'
import { isPath } from './config/sections.js'
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
  return (await import(locate(use, place).href)) as Record<string, unknown>
}

/** A module stays loaded under its URL: with what the file holds in it, a file that was edited is another module. What it imports itself is not. */
function asItIs(file: string): URL {
  const url = pathToFileURL(file)
  try {
    url.searchParams.set('sha256', createHash('sha256').update(readBytes(file)).digest('hex').slice(0, 16))
    // CommonJS goes by the file's name alone.
    Reflect.deleteProperty(createRequire(file).cache, realpathSync(file))
  } catch (error) {
    throw new Error(`${file}: ${reason(error)}`, { cause: error })
  }
  return url
}

function locate(use: string, place: PluginPlace): URL {
  if (!isPath(use) && names(place.folder).includes(use)) return new URL(`${use}.js`, place.folder)
  return moduleUrl(
    use,
    place.configFile,
    `there is neither a policy nor a package of this name (policies: ${names(place.folder).join(', ')})`,
  )
}

/** Where the module lies that is a path from the config's file, or a package found from there. Throws an Error: `missing` where there is none. */
export function moduleUrl(use: string, configFile: string, missing = 'there is no package of this name'): URL {
  if (isPath(use)) return asItIs(resolve(dirname(configFile), use))
  const require = createRequire(configFile)
  const entry = exported(use, require)
  if (entry !== undefined) return entry
  try {
    return pathToFileURL(require.resolve(use))
  } catch (error) {
    if ((error as { code?: string }).code === 'ERR_PACKAGE_PATH_NOT_EXPORTED') {
      throw new Error(`package ${use} exports nothing that can be imported`, { cause: error })
    }
    throw new Error(missing, { cause: error })
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
