import type { Config, Model, ProviderSettings } from '../config/config.js'
import type { Surface } from '../endpoints/endpoint.js'
import { Gate } from './gate.js'
import type { Provider, Transport, Wire } from './providers/provider.js'

/** One configured provider, running: its kind, its settings and its connections. */
export interface Upstream {
  readonly settings: ProviderSettings
  readonly provider: Provider
  readonly transport: Transport
  /** The way to the transport, for as many at one time as the settings allow. */
  readonly gate: Gate
}

/** What the models of a config can be asked for, and in which wire. */
export class Wires {
  readonly #kinds: ReadonlyMap<string, Provider>

  constructor(config: Pick<Config, 'providers'>, kinds: ReadonlyMap<string, Provider>) {
    this.#kinds = new Map([...config.providers.values()].map(({ name, kind }) => [name, kindOf(kind, kinds)]))
  }

  /** Can this model be asked for this surface? */
  answers(model: Model, surface: Surface): boolean {
    return this.#kindOf(model).wires[surface] !== undefined && (model.surfaces === null || model.surfaces.includes(surface))
  }

  wire(model: Model, surface: Surface): Wire {
    const wire = this.#kindOf(model).wires[surface]
    if (wire === undefined) throw new Error(`provider kind ${model.provider.kind} has no wire for ${surface}`)
    return wire
  }

  #kindOf(model: Model): Provider {
    const kind = this.#kinds.get(model.provider.name)
    if (kind === undefined) throw new Error(`provider ${model.provider.name} is not configured`)
    return kind
  }
}

/** The running providers of a config, by name. */
export class Upstreams extends Wires {
  readonly #byName: ReadonlyMap<string, Upstream>

  private constructor(config: Config, kinds: ReadonlyMap<string, Provider>, byName: ReadonlyMap<string, Upstream>) {
    super(config, kinds)
    this.#byName = byName
  }

  /** Starts what the config names. A provider whose settings are those of `before` keeps its connections. */
  static async start(config: Config, kinds: ReadonlyMap<string, Provider>, before?: Upstreams): Promise<Upstreams> {
    const byName = new Map<string, Upstream>()
    for (const settings of config.providers.values()) {
      const old = before === undefined ? undefined : before.#byName.get(settings.name)
      if (old !== undefined && same(old.settings, settings)) {
        byName.set(settings.name, { ...old, settings })
        continue
      }
      const provider = kindOf(settings.kind, kinds)
      const transport = provider.transport?.(settings) ?? (await overHttp(settings))
      const { max_connections: connections, queue, queue_timeout: timeoutMs } = settings
      byName.set(settings.name, { settings, provider, transport, gate: new Gate(transport, { connections, queue, timeoutMs }) })
    }
    return new Upstreams(config, kinds, byName)
  }

  of(model: Model): Upstream {
    const upstream = this.#byName.get(model.provider.name)
    if (upstream === undefined) throw new Error(`provider ${model.provider.name} is not running`)
    return upstream
  }

  /** Closes the connections that `after` did not take over. */
  async close(after?: Upstreams): Promise<void> {
    const kept = new Set(after === undefined ? [] : [...after.#byName.values()].map(upstream => upstream.transport))
    await Promise.all([...this.#byName.values()].filter(({ transport }) => !kept.has(transport)).map(({ transport }) => transport.close()))
  }
}

/** Imported when the first provider needs it: reading undici is a third of a start. */
async function overHttp(settings: ProviderSettings): Promise<Transport> {
  const { httpTransport } = await import('./http.js')
  return httpTransport(settings)
}

function kindOf(kind: string, kinds: ReadonlyMap<string, Provider>): Provider {
  const provider = kinds.get(kind)
  if (provider === undefined) throw new Error(`there is no provider kind ${kind}`)
  return provider
}

function same(a: ProviderSettings, b: ProviderSettings): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}
