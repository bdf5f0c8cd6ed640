import { readdir } from 'node:fs/promises'
import type { KindInfo } from '../config/config.js'
import { SRC } from '../paths.js'
import type { Provider } from './providers/provider.js'

const FOLDER = new URL('upstream/providers/', SRC)

/** Every kind of provider that is built in, by name: `upstream/providers/<kind>.js`, its default export. */
export async function loadProviders(folder: URL = FOLDER): Promise<ReadonlyMap<string, Provider>> {
  return imported(await kindNames(folder), folder)
}

/**
 * The kinds that the text of a config can mean, and the names of all others: a start need not read the code of twenty providers to run one.
 * A kind that the text does not name in plain words (it may come from a variable) makes it all of them.
 */
export async function loadNamedProviders(text: string, folder: URL = FOLDER): Promise<NamedProviders> {
  const names = await kindNames(folder)
  const hidden = /\bkind["']?\s*:\s*["']?[$*&|>]/.test(text)
  const named = hidden ? names : names.filter(name => text.includes(name))
  return { providers: await imported(named, folder), names }
}

export interface NamedProviders {
  readonly providers: ReadonlyMap<string, Provider>
  /** Of all kinds there are. */
  readonly names: readonly string[]
}

async function kindNames(folder: URL): Promise<string[]> {
  const files = (await readdir(folder)).filter(file => file.endsWith('.js') && file !== 'provider.js')
  return files.map(file => file.slice(0, -'.js'.length)).sort()
}

async function imported(names: readonly string[], folder: URL): Promise<ReadonlyMap<string, Provider>> {
  const modules = await Promise.all(
    names.map(name => import(new URL(`${name}.js`, folder).href) as Promise<{ readonly default?: Provider }>),
  )
  const providers = new Map<string, Provider>()
  for (const [index, name] of names.entries()) {
    const provider = modules[index]?.default
    // A file that only helps others has no default export.
    if (provider !== undefined) providers.set(name, provider)
  }
  return providers
}

/** What the config must know of each kind. */
export async function loadKinds(folder: URL = FOLDER): Promise<ReadonlyMap<string, KindInfo>> {
  return kindsOf(await loadProviders(folder))
}

/** `names`: kinds there are besides, which the config does not use; they are known by name alone. */
export function kindsOf(providers: ReadonlyMap<string, Provider>, names: readonly string[] = []): ReadonlyMap<string, KindInfo> {
  const kinds = new Map<string, KindInfo>(names.map(name => [name, { surfaces: [] }]))
  for (const [kind, provider] of providers) kinds.set(kind, kindInfo(provider))
  return kinds
}

function kindInfo({ baseUrl, transport, defaults, options, modelOptions, wires }: Provider): KindInfo {
  // What answers in this process needs no address.
  const address = baseUrl ?? (transport === undefined ? undefined : '')
  return {
    ...(address === undefined ? {} : { baseUrl: address }),
    ...(defaults === undefined ? {} : { defaults }),
    ...(options === undefined ? {} : { options }),
    ...(modelOptions === undefined ? {} : { modelOptions }),
    surfaces: Object.keys(wires),
  }
}
