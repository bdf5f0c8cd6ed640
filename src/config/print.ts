import { stringify } from 'yaml'
import type { Address, Config, Key, Model, ModelTarget, ProviderSettings } from './config.js'
import { formatDuration, formatSize } from './durations.js'
import type { Path } from './problems.js'

const HIDDEN = '(hidden)'

/**
 * The config as it counts, as YAML in the form of gateway.yaml: defaults filled in, aliases and fallbacks resolved, prices in Rial. Secrets
 * never show: a provider's key is hidden, of a client's secret the first 8 digits of its SHA-256 are left; inside `options` and `with`,
 * what came from a variable shows as the variable (`template`, as loaded), and what is named like a secret is hidden.
 */
export function effective(config: Config, template: Template = () => undefined): string {
  return stringify(counting(config, template), { lineWidth: 0, aliasDuplicateObjects: false })
}

/** The same as a value; maps of the config are Maps in it. */
export function counting(config: Config, template: Template): object {
  const { tls, listen, ops, admin, limits, timeout, workers, drain_timeout } = config
  const { retention, ...ledger } = config.ledger
  const section = <T>(map: ReadonlyMap<string, T>, show: (value: T) => unknown) =>
    new Map([...map].map(([name, value]) => [name, show(value)]))
  const own = (value: unknown, path: Path) => shielded(value, path, template)
  return {
    listen: address(listen),
    ops: ops === null ? null : address(ops),
    admin: admin === null ? null : address(admin),
    ...(config.admin_token === null ? {} : { admin_token: HIDDEN }),
    timezone: config.timezone,
    month: config.month,
    ledger: { ...ledger, ...(retention === null ? {} : { retention: formatDuration(retention) }) },
    policies: config.policies.map(({ use, with: settings }, index) =>
      settings === undefined ? use : { use, with: own(settings, ['policies', index, 'with']) },
    ),
    providers: section(config.providers, settings => provider(settings, own)),
    models: section(config.models, settings => model(settings, own)),
    aliases: config.aliases,
    plans: section(config.plans, ({ name: _, ...plan }) => plan),
    accounts: section(config.accounts, ({ name: _, ...account }) => account),
    keys: section(config.keys, key),
    limits: { ...limits, body: formatSize(limits.body) },
    timeout: durations(timeout),
    workers,
    drain_timeout: formatDuration(drain_timeout),
    ...(tls === null
      ? {}
      : { tls: { cert: tls.cert, key: tls.key, ...(tls.client_ca === null ? {} : { client_ca: tls.client_ca.file }) } }),
    log: config.log,
  }
}

/** A value as it is written, where it holds variables. */
export type Template = (path: Path) => string | undefined

type Shield = (value: unknown, path: Path) => unknown

function provider(settings: ProviderSettings, own: Shield): unknown {
  const { name, api_key, ca, proxy, timeout, queue_timeout, health, options, base_url, ...rest } = settings
  return {
    ...rest,
    ...(base_url === '' ? {} : { base_url }),
    ...(api_key === null ? {} : { api_key: HIDDEN }),
    ...(ca === undefined ? {} : { ca: ca.file }),
    // Its address may hold credentials.
    ...(proxy === undefined ? {} : { proxy: 'environment' }),
    timeout: durations(timeout),
    queue_timeout: formatDuration(queue_timeout),
    health: health === null ? 'off' : { ...health, ejection: formatDuration(health.ejection) },
    ...(Object.keys(options).length === 0 ? {} : { options: own(options, ['providers', name, 'options']) }),
  }
}

function model({ id, provider: _, price, created, options, targets, counter, ...rest }: Model, own: Shield): unknown {
  return {
    ...rest,
    ...(counter === undefined ? {} : { tokenizer: counter.use, tokenizer_timeout: formatDuration(counter.timeout) }),
    price: price ?? 'free',
    ...(targets === undefined ? {} : { targets: targets.map((one, index) => target(one, ['models', id, 'targets', index], own)) }),
    created: new Date(created * 1000).toISOString().slice(0, 10),
    ...(Object.keys(options).length === 0 ? {} : { options: own(options, ['models', id, 'options']) }),
  }
}

function target({ weight, model: { provider, upstream, price, options } }: ModelTarget, path: Path, own: Shield): unknown {
  return {
    provider: provider.name,
    upstream,
    weight,
    price: price ?? 'free',
    ...(Object.keys(options).length === 0 ? {} : { options: own(options, [...path, 'options']) }),
  }
}

function key({ name: _, plan, sha256, expires, ...rest }: Key): unknown {
  return { ...rest, plan: plan.name, sha256: `${sha256.slice(0, 8)}…`, expires: expires === null ? null : new Date(expires).toISOString() }
}

function address({ host, port }: Address): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

function durations(fields: object): unknown {
  return Object.fromEntries(Object.entries(fields).map(([name, duration]) => [name, formatDuration(duration as number)]))
}

function shielded(value: unknown, path: Path, template: Template): unknown {
  const written = template(path)
  if (written !== undefined) return written
  const last = path.at(-1)
  if (typeof value === 'string' && typeof last === 'string' && /secret|token|passw|credential|key/i.test(last)) return HIDDEN
  if (Array.isArray(value)) return value.map((item, index) => shielded(item, [...path, index], template))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, below]) => [name, shielded(below, [...path, name], template)]))
}
