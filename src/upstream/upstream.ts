import type { Config, Model, ProviderSettings } from '../config/config.js'
import type { Surface } from '../endpoints/endpoint.js'
import { Gate } from './gate.js'
import type { HeaderFields, Provider, Transport, Wire } from './providers/provider.js'

/** One configured provider, running: its kind, its settings and its connections. */
export interface Upstream {
  readonly settings: ProviderSettings
  readonly provider: Provider
  /** Header fields that carry the credentials. */
  readonly credentials: HeaderFields
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

/** The way to a provider, for as long as a config uses it. */
class Shared {
  readonly #transport: Transport
  #users = 0

  constructor(transport: Transport) {
    this.#transport = transport
  }

  take(): void {
    this.#users++
  }

  async leave(): Promise<void> {
    if (--this.#users === 0) await this.#transport.close()
  }
}

interface Running extends Upstream {
  readonly shared: Shared
}

/** The running providers of a config, by name. */
export class Upstreams extends Wires {
  readonly #byName: ReadonlyMap<string, Running>

  private constructor(config: Config, kinds: ReadonlyMap<string, Provider>, byName: ReadonlyMap<string, Running>) {
    super(config, kinds)
    this.#byName = byName
    for (const { shared } of byName.values()) shared.take()
  }

  /**
   * Starts what the config names. A provider whose settings are those of `before` keeps its connections. `distrusted` hears, by its name, of
   * one that has written what nobody had asked for, at most once a minute.
   */
  static async start(
    config: Config,
    kinds: ReadonlyMap<string, Provider>,
    distrusted: (provider: string) => void,
    before?: Upstreams,
  ): Promise<Upstreams> {
    const byName = new Map<string, Running>()
    for (const settings of config.providers.values()) {
      const old = before === undefined ? undefined : before.#kept(settings)
      if (old !== undefined) {
        byName.set(settings.name, { ...old, settings })
        continue
      }
      const provider = kindOf(settings.kind, kinds)
      const transport = provider.transport?.(settings) ?? (await overHttp(settings, () => distrusted(settings.name)))
      const { max_connections: connections, queue, queue_timeout: timeoutMs } = settings
      const gate = new Gate(transport, { connections, queue, timeoutMs })
      const credentials = provider.authorize(settings.api_key, settings)
      byName.set(settings.name, { settings, provider, credentials, transport, gate, shared: new Shared(transport) })
    }
    return new Upstreams(config, kinds, byName)
  }

  of(model: Model): Upstream {
    const upstream = this.#byName.get(model.provider.name)
    if (upstream === undefined) throw new Error(`provider ${model.provider.name} is not running`)
    return upstream
  }

  /** Is this provider reached as `before` reached it? */
  keeps(name: string, before: Upstreams): boolean {
    const own = this.#byName.get(name)
    return own !== undefined && own.shared === before.#byName.get(name)?.shared
  }

  /** Nothing of this config is under way any more: the connections that no other config uses are closed. Once. */
  async close(): Promise<void> {
    await Promise.all([...this.#byName.values()].map(({ shared }) => shared.leave()))
  }

  #kept(settings: ProviderSettings): Running | undefined {
    const old = this.#byName.get(settings.name)
    return old !== undefined && same(old.settings, settings) ? old : undefined
  }
}

/** Imported when the first provider needs it: reading undici is a third of a start. */
async function overHttp(settings: ProviderSettings, distrusted: () => void): Promise<Transport> {
  const { httpTransport } = await import('./http.js')
  return httpTransport(settings, { now: () => performance.now(), distrusted })
}

function kindOf(kind: string, kinds: ReadonlyMap<string, Provider>): Provider {
  const provider = kinds.get(kind)
  if (provider === undefined) throw new Error(`there is no provider kind ${kind}`)
  return provider
}

function same(a: ProviderSettings, b: ProviderSettings): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}
