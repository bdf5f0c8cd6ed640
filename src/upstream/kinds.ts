import { readdir } from 'node:fs/promises'
import type { KindInfo } from '../config/config.js'
import type { Provider } from './providers/provider.js'

const FOLDER = new URL('./providers/', import.meta.url)

/** Every kind of provider that is built in, by name: `providers/<kind>.js` beside this file, its default export. */
export async function loadProviders(folder: URL = FOLDER): Promise<ReadonlyMap<string, Provider>> {
  const files = (await readdir(folder)).filter(file => file.endsWith('.js') && file !== 'provider.js').sort()
  const modules = await Promise.all(files.map(file => import(new URL(file, folder).href) as Promise<{ readonly default?: Provider }>))
  const providers = new Map<string, Provider>()
  for (const [index, file] of files.entries()) {
    const provider = modules[index]?.default
    // A file that only helps others has no default export.
    if (provider !== undefined) providers.set(file.slice(0, -'.js'.length), provider)
  }
  return providers
}

/** What the config must know of each kind. */
export async function loadKinds(folder: URL = FOLDER): Promise<ReadonlyMap<string, KindInfo>> {
  return kindsOf(await loadProviders(folder))
}

export function kindsOf(providers: ReadonlyMap<string, Provider>): ReadonlyMap<string, KindInfo> {
  return new Map([...providers].map(([kind, provider]) => [kind, kindInfo(provider)]))
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
