import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { gateway as start } from '../../../dist/test/support/gateway.js'
import { provider as serve } from '../../../dist/test/support/provider.js'

export { chat, json, openStream, sse } from '../../../dist/test/support/provider.js'

export const TOKEN = 'a-token-of-sixteen'
/** Secrets of the keys in `yaml`. */
export const SECRETS = {
  checkout: 'mgk_of_checkout_1',
  demo: 'mgk_of_demo_12345',
  nightly: 'mgk_of_nightly_12',
  'support-bot': 'mgk_of_support_12',
}

/** A config as a small company has it, on a scripted provider. */
export const yaml = (url, admin) => `
admin: 127.0.0.1:${admin}
admin_token: ${TOKEN}
ledger: {path: data/ledger.db, durability: process}
providers:
  sandbox: {kind: sandbox}
  openai: {kind: openai, base_url: "${url}", api_key: sk-upstream, insecure: true, health: off}
models:
  sandbox/echo: {price: {input: 20000, output: 60000}, max_output_tokens: 4096, default_max_tokens: 512}
  openai/gpt-4o-mini:
    price: {input: 157500, cached_input: 78750, output: 630000}
    max_output_tokens: 16384
    default_max_tokens: 2048
    fallback: [sandbox/echo]
  openai/gpt-4o: {price: {input: 2625000, output: 10500000}, max_output_tokens: 16384, default_max_tokens: 1024}
aliases: {default: sandbox/echo}
plans:
  free: {requests_per_minute: 10, requests_per_hour: 100, requests_per_day: 500, tokens_per_minute: 20000}
  team: {requests_per_minute: 600, tokens_per_minute: 400000}
  unlimited: {}
accounts:
  acme: {opening_balance_rial: 5000000}
  globex: {opening_balance_rial: 120000}
  initech: {opening_balance_rial: 900000000}
keys:
  demo: {account: acme, plan: free, secret: ${SECRETS.demo}, budget: {daily_tokens: 200000, daily_rial: 400000, monthly_rial: 5000000}}
  checkout: {account: initech, plan: team, secret: ${SECRETS.checkout}, budget: {monthly_rial: 500000000}}
  support-bot: {account: initech, plan: unlimited, secret: ${SECRETS['support-bot']}}
  nightly: {account: globex, plan: team, secret: ${SECRETS.nightly}, budget: {daily_rial: 90000}}
`

/** A running gateway, stopped with the file that asks for it. `page`: the address of its page, which stays the same over `again`. `prepare` is given its folder first. */
export async function gateway(url, prepare = async () => {}) {
  const folder = mkdtempSync(join(tmpdir(), 'model-gateway-browser-'))
  await prepare(folder)
  after(() => rmSync(folder, { recursive: true, force: true }))
  const admin = await freePort()
  const begin = async () => {
    const running = await start({ teardown: after, testdir: () => folder }, yaml(url, admin))
    process.on('exit', () => running.process.kill('SIGKILL'))
    return running
  }
  const page = `http://127.0.0.1:${admin}`
  const running = await begin()
  return { ...running, page, again: begin, ask: asker(() => running.url) }
}

/** Asks as one of the keys; what comes back has been read to its end. */
export function asker(url) {
  return async (key, body) => {
    const response = await fetch(`${url()}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${SECRETS[key] ?? key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'default', messages: [{ role: 'user', content: 'Hello' }], ...body }),
    })
    await response.text()
    return { status: response.status, id: response.headers.get('x-request-id') }
  }
}

/** The far end: a server that does what its script says, closed with the file that asks for it. */
export function provider(script) {
  return serve({ teardown: after }, script)
}

function freePort() {
  return new Promise(resolve => {
    const server = createServer()
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })
}
