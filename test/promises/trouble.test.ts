import { readFileSync } from 'node:fs'
import { createServer as createTls } from 'node:https'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { badServer, tcp } from '../support/bad-server.js'
import { AUTH, gateway, inspect, KEY, metric, type RunningGateway } from '../support/gateway.js'
import { FIXTURES } from '../support/paths.js'
import { connections, faults } from './faults.js'

/*
 * Every fault of the table, whole and streamed, against one process: each is answered with its status and its code, no hold stays open, the
 * figures of the ledger agree, and nothing of it stays in memory.
 */

const MEMORY_GROWTH_MAX = 64 * 1024 * 1024
const AT_ONCE = 8
const MESSAGES = [{ role: 'user', content: 'Hello' }]
const OTHERS: Readonly<Record<string, object>> = {
  '/v1/completions': { prompt: 'Hello' },
  '/v1/embeddings': { input: 'Hello' },
  '/v1/moderations': { input: 'Hello' },
  '/v1/rerank': { query: 'Hello', documents: ['Hello', 'Bye'] },
}

interface Row {
  readonly id: string
  readonly name: string
  readonly path: string
  readonly body: object
  readonly expected: string
}

t.test('what a provider does wrong', async t => {
  const decoys = { seen: 0 }
  const decoy = await tcp(t, socket => {
    decoys.seen++
    socket.destroy()
  })
  const server = await badServer(t)
  const refusing = await closedPort(t)
  const selfSigned = await tls(t)
  const providers: [name: string, url: string][] = [
    ['refused', `http://127.0.0.1:${refusing}/v1`],
    ['strange', `https://127.0.0.1:${selfSigned}/v1`],
  ]
  const rows: Row[] = []
  const add = (provider: string, name: string, mode: string, path: string, body: object, expected: string): void => {
    rows.push({
      id: `${provider}-${mode.replace(/\W+/g, '-')}`,
      name: `${name} · ${mode}`,
      path,
      body: { model: `${provider}/m`, ...body },
      expected,
    })
  }
  const chats = (provider: string, name: string, whole: string | undefined, stream: string | undefined): void => {
    const path = '/v1/chat/completions'
    if (whole !== undefined) add(provider, name, 'chat', path, { messages: MESSAGES }, whole)
    if (stream !== undefined) add(provider, name, 'chat, stream', path, { messages: MESSAGES, stream: true }, stream)
  }
  chats('refused', 'nobody listens', '502 upstream_unavailable voided', '502 upstream_unavailable voided')
  chats('strange', 'TLS, a certificate of nobody', '502 upstream_unavailable voided', '502 upstream_unavailable voided')
  for (const [index, { name, scheme, each, what }] of connections.entries()) {
    providers.push([`c${index}`, `${scheme}://127.0.0.1:${await tcp(t, each)}/v1`])
    chats(`c${index}`, name, what, what)
  }
  for (const [index, { name, act, whole, stream, all }] of faults(`http://127.0.0.1:${decoy}/v1/chat/completions`).entries()) {
    const provider = `f${index}`
    providers.push([provider, `http://127.0.0.1:${server.port}/${provider}/v1`])
    server.on(`/${provider}/`, act)
    chats(provider, name, whole, stream)
    if (all === undefined) continue
    for (const [path, body] of Object.entries(OTHERS)) add(provider, name, path.slice(4), path, body, all)
  }
  const running = await gateway(t, config(providers))
  const pid = running.process.pid

  const total = (): number => [...server.seen.values()].reduce((sum, count) => sum + count, 0)
  const pass = async (suffix: string): Promise<Map<string, string>> => {
    const got = new Map<string, string>()
    const left = [...rows]
    const work = async (): Promise<void> => {
      for (let row = left.shift(); row !== undefined; row = left.shift())
        got.set(row.id, await ask(running.url, { ...row, id: row.id + suffix }))
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work))
    return got
  }
  // Once unmeasured: what a first request of any kind loads stays loaded.
  await pass('-warm')
  const before = await settled(running, 0)
  const warm = total()
  const got = await pass('')
  const posts = total() - warm
  const peak = (await metric(running, 'process_resident_memory_bytes')) ?? 0
  const after = await settled(running, before + MEMORY_GROWTH_MAX)
  const open = await metric(running, 'model_gateway_holds_open')
  t.equal(running.process.pid, pid)
  t.equal(await running.stop(), 0, 'one process from the first to the last, and it ends well')
  t.equal(running.lines().filter(line => line.message?.startsWith('listening')).length, 1)
  t.strictSame(
    running.lines().filter(line => line.level === 'error'),
    [],
    'no fault of a provider is a fault of the gateway',
  )
  const records = await running.records()
  const state = new Map(records.map(record => [record.client_request_id, record.state]))
  const table = rows.map(({ id, name, expected }) => ({ name, expected, found: `${got.get(id)} ${state.get(id)}` }))
  for (const { name, expected, found } of table) t.ok(expected.split(' or ').includes(found), `${name}: ${found}, expected ${expected}`)
  t.equal(open, 0, 'holds that are open')
  t.equal(records.filter(record => record.state === 'held').length, 0)
  t.strictSame(await inspect(running.folder, ledger => ledger.verify()), [], 'the figures of the ledger agree')
  t.equal(decoys.seen, 0, 'a redirect is never followed')
  const sent = rows.filter(row => row.id.startsWith('f')).length
  t.equal(posts, sent, 'nothing is sent twice')
  const growth = Math.round((after - before) / 1024 / 1024)
  t.ok(after - before < MEMORY_GROWTH_MAX, `memory grew by ${growth} MB`)
  const ends = new Map<string, number>()
  for (const { found } of table) ends.set(found, (ends.get(found) ?? 0) + 1)
  t.comment(
    `${providers.length} faults, ${rows.length} rows, memory ${growth} MB more (${Math.round((peak - before) / 1024 / 1024)} at the end of the last row); ${[...ends].map(([found, count]) => `${count} × ${found}`).join(', ')}`,
  )
})

function config(providers: readonly [string, string][]): string {
  const settings = 'timeout: {connect: 1s, first_byte: 1s, idle: 1s, total: 3s}, health: off'
  return `
ledger: {path: data/ledger.db, durability: process}
providers:
${providers.map(([name, url]) => `  ${name}: {kind: openai, base_url: "${url}", api_key: sk-x, ${settings}}`).join('\n')}
models:
${providers.map(([name]) => `  ${name}/m: {price: {input: 1000000, output: 2000000}, max_output_tokens: 4096, default_max_tokens: 100, attempts: 1}`).join('\n')}
plans: {p: {}}
accounts: {acme: {opening_balance_rial: 1000000000}}
keys:
  a: {account: acme, plan: p, secret: ${KEY}}
`
}

/** Resident memory once what was used has been collected: below `enough`, or the least of some seconds. Bytes. */
async function settled(running: RunningGateway, enough: number): Promise<number> {
  let least = Number.POSITIVE_INFINITY
  for (let i = 0; i < 20 && least >= enough; i++) {
    least = Math.min(least, (await metric(running, 'process_resident_memory_bytes')) ?? least)
    await new Promise(resolve => setTimeout(resolve, 100))
  }
  return least
}

/** Status and code of one answer; of a stream, the code of its error event. */
async function ask(url: string, { id, path, body }: Row): Promise<string> {
  const response = await fetch(url + path, {
    method: 'POST',
    headers: { ...AUTH, 'content-type': 'application/json', 'x-request-id': id },
    body: JSON.stringify(body),
  })
  const text = await response.text()
  const streamed = response.headers.get('content-type')?.startsWith('text/event-stream') === true
  const lines = text.split('\n').filter(line => line.startsWith('data: '))
  const last = streamed ? (lines.at(-1) ?? '').slice('data: '.length) : text
  if (streamed && last === '[DONE]') return `${response.status} -`
  const parsed = JSON.parse(last) as { readonly error?: { readonly code: string } }
  return `${response.status} ${parsed.error?.code ?? (streamed ? 'no [DONE]' : '-')}`
}

async function closedPort(t: { teardown(fn: () => unknown): unknown }): Promise<number> {
  const undo: (() => unknown)[] = []
  const port = await tcp({ teardown: fn => undo.push(fn) }, socket => socket.destroy())
  for (const step of undo) await step()
  t.teardown(() => {})
  return port
}

async function tls(t: { teardown(fn: () => unknown): unknown }): Promise<number> {
  const pem = (name: string): Buffer => readFileSync(`${FIXTURES}tls/localhost.${name}`)
  const server = createTls({ cert: pem('crt'), key: pem('key') }, (_request, response) => response.end('{}'))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port
}
