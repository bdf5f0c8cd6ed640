import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { KEY, gateway as start } from '../../../dist/test/support/gateway.js'
import { provider as serve } from '../../../dist/test/support/provider.js'

export { chat, json, sse } from '../../../dist/test/support/provider.js'
export { KEY }

export const PRICE = { input: 1_000_000, cached_input: 500_000, output: 2_000_000 }

/** Rial for so many tokens at PRICE. */
export const rial = ({ input, cached = 0, output = 0 }) => BigInt(input - cached) + BigInt(Math.ceil(cached / 2)) + BigInt(2 * output)

/**
 * A running gateway, stopped with the file that asks for it. `config` adds to a sandbox, and to a key `a` without ceilings. Besides what
 * `test/support/gateway.ts` gives: `v1`, the base URL that most libraries want, and `bills()`, which stops it and reads its usage records.
 */
export async function gateway({ providers = {}, models = {}, plans = {}, accounts = {}, keys = {}, ...more } = {}, options = {}) {
  const sections = {
    ledger: { path: 'data/ledger.db', durability: 'process' },
    // The libraries shall see each failure: the gateway itself tries once, and spares no provider for what it did before.
    providers: withEach({ sandbox: { kind: 'sandbox' }, ...providers }, { health: 'off' }),
    models: withEach({ 'sandbox/echo': { price: PRICE, default_max_tokens: 256, max_output_tokens: 4096 }, ...models }, { attempts: 1 }),
    plans: { open: {}, ...plans },
    accounts: { rich: { opening_balance_rial: 1_000_000_000 }, ...accounts },
    keys: { a: { account: 'rich', plan: 'open', secret: KEY }, ...keys },
    ...more,
  }
  const folder = mkdtempSync(join(tmpdir(), 'model-gateway-clients-'))
  const yaml = Object.entries(sections).map(([name, value]) => `${name}: ${JSON.stringify(value)}\n`)
  const running = await start({ teardown: after, testdir: () => folder }, yaml.join(''), options)
  after(() => rmSync(folder, { recursive: true, force: true }))
  // A file that takes too long is ended by SIGTERM, without its hooks.
  process.on('exit', () => running.process.kill('SIGKILL'))
  process.once('SIGTERM', () => process.exit(1))
  let records
  const bills = async () => {
    records ??= running.stop().then(async code => {
      if (code !== 0) throw new Error(`the gateway ended with ${code}:\n${running.output()}`)
      return new Map((await running.records()).map(record => [record.id, record]))
    })
    return records
  }
  /** The requests of one key so far, as the log tells them, which is written in its own time: a request that is made last is waited for. */
  const requestsOf = async key => {
    const id = (await running.get('/v1/models')).headers.get('x-request-id')
    while (!running.lines().some(line => line.request_id === id)) await new Promise(resolve => setTimeout(resolve, 5))
    return running.lines().filter(line => line.key === key && line.request_id !== id)
  }
  return { ...running, v1: `${running.url}/v1`, bills, requestsOf }
}

/** The far end: a server that does what its script says, closed with the file that asks for it. */
export function provider(script) {
  return serve({ teardown: after }, script)
}

/** Settings of a provider at a scripted server. */
export const at = (far, kind = 'openai', more = {}) => ({ kind, base_url: far.url, api_key: 'sk-upstream', insecure: true, ...more })

function withEach(entries, settings) {
  return Object.fromEntries(Object.entries(entries).map(([name, entry]) => [name, { ...settings, ...entry }]))
}
