import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Clock } from '../clock.js'
import type { Address, Config } from '../config/config.js'
import type { Path } from '../config/problems.js'
import { type Inner, type Reply, startInner } from '../http/inner.js'
import type { SqliteLedger } from '../ledger/sqlite.js'
import type { Serving } from '../serving.js'
import type { Recent } from '../telemetry/recent.js'
import type { Health } from '../upstream/health.js'
import { VERSION } from '../version.js'
import { objection, opens } from './door.js'
import { files, SHIELD } from './files.js'
import { asJson } from './json.js'
import { limits } from './limits.js'
import { live, type UnderWay } from './live.js'
import { providers } from './providers.js'
import { Pulse } from './pulse.js'
import { QueryError, Spending } from './spend.js'
import { why } from './why.js'

/** Where a path stands in the config that new requests run under; a reload puts another one here. */
export interface Places {
  at: (path: Path) => string
}

export interface AdminOptions {
  readonly address: Address
  /** What opens it. */
  readonly token: () => string
  readonly recent: Recent
  readonly serving: Pick<Serving, 'runtime' | 'draining'>
  readonly underWay: () => UnderWay
  readonly ledger: SqliteLedger
  readonly health: Pick<Health, 'reports'>
  readonly clock: Clock
  readonly places: Places
  readonly failed: (error: unknown) => void
}

/**
 * The listener of the built-in page. It only reads: GET and HEAD are all that it knows. The page's own files are open to whoever may come in
 * (door.ts); every figure takes the token. Watches the exchanges that end from now on until it is closed. Rejects when the address can not be had.
 */
export async function startAdmin(options: AdminOptions): Promise<Inner> {
  const { address, recent, clock, failed } = options
  const pulse = new Pulse()
  const file = files()
  const views = viewsOf(options, pulse)
  const inner = await startInner({ name: 'admin', address, failed, answer: request => answer(request, options, file, views) })
  const leave = recent.watch(exchange => pulse.add(exchange, clock.now()))
  return {
    ...inner,
    close: () => {
      leave()
      return inner.close()
    },
  }
}

/** A token for a start that is given none: 128 bits. */
export function newToken(): string {
  return `mgp_${randomBytes(16).toString('base64url')}`
}

type View = (query: URLSearchParams, rest: string) => unknown

async function answer(
  request: IncomingMessage,
  { address, token }: AdminOptions,
  file: (path: string) => Reply | null,
  views: ReadonlyMap<string, View>,
): Promise<Reply> {
  const [path = '', query = ''] = (request.url ?? '').split('?', 2)
  const no = objection(request, address.host)
  if (no !== null) return error(403, no)
  if (request.method !== 'GET' && request.method !== 'HEAD') return error(405, 'this listener only reads', { allow: 'GET, HEAD' })
  const found = file(path)
  if (found !== null) return found
  if (!path.startsWith('/api/')) return error(404, 'not found')
  if (!opens(request, token())) return error(401, 'this needs the token', { 'www-authenticate': 'Bearer' })
  const [, , name = '', rest = ''] = path.split('/', 4)
  const view = views.get(name)
  if (view === undefined) return error(404, 'not found')
  try {
    const shown = await view(new URLSearchParams(query), rest)
    return shown === null ? error(404, 'not found') : json(200, shown)
  } catch (fault) {
    if (fault instanceof QueryError) return error(400, fault.message)
    throw fault
  }
}

function viewsOf(options: AdminOptions, pulse: Pulse): ReadonlyMap<string, View> {
  const { recent, serving, underWay, ledger, health, clock, places } = options
  // A page that was open notices by it that the gateway was started anew.
  const run = randomBytes(6).toString('hex')
  const since = clock.now()
  const spending = new Spending(ledger)
  const monotonic = (): number => clock.monotonic()
  const facts = { recent, pulse, underWay, stats: () => ledger.stats(), draining: () => serving.draining }
  return new Map<string, View>([
    ['live', query => ({ run, ...live(facts, wholeOf(query, 'after'), clock.now()) })],
    ['about', () => about(serving.runtime.config, run, since, clock.now())],
    [
      'requests',
      (_, id) => {
        const exchange = recent.find(id)
        if (exchange === undefined) return null
        return { ...exchange, why: why(exchange, { config: serving.runtime.config, at: places.at }) }
      },
    ],
    ['limits', query => limits(serving.runtime, ledger, (query.get('search') ?? '').slice(0, 100), clock.now())],
    ['providers', () => ({ now: clock.now(), providers: providers(serving.runtime, health, pulse, clock.monotonic()) })],
    [
      'spend',
      query =>
        spending.of(
          { from: query.get('from') ?? '', to: query.get('to') ?? '', key: query.get('key'), model: query.get('model') },
          serving.runtime,
          monotonic,
        ),
    ],
  ])
}

/** What does not change while it runs, or only by a reload. */
function about({ timezone, policies, keys, models, providers: known }: Config, run: string, since: number, now: number) {
  return {
    run,
    version: VERSION,
    since,
    now,
    timezone,
    policies: policies.map(({ use }) => use),
    keys: keys.size,
    models: models.size,
    providers: known.size,
  }
}

function wholeOf(query: URLSearchParams, name: string): number {
  const text = query.get(name) ?? '0'
  if (!/^\d{1,15}$/.test(text)) throw new QueryError(`${name} is a whole number`)
  return Number(text)
}

function json(status: number, value: unknown, headers: Readonly<Record<string, string>> = {}): Reply {
  return { status, contentType: 'application/json', body: asJson(value), headers: { ...SHIELD, ...headers } }
}

function error(status: number, message: string, headers: Readonly<Record<string, string>> = {}): Reply {
  return json(status, { error: message }, headers)
}
