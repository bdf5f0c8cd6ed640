import { readFileSync, writeFileSync } from 'node:fs'
import { createServer as createTls } from 'node:https'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { badServer, tcp } from '../support/bad-server.js'
import { AUTH, gateway, inspect, KEY, metric } from '../support/gateway.js'
import { FIXTURES } from '../support/paths.js'
import { connections, faults } from './faults.js'

/*
 * Every fault of the table, whole and streamed, against one process: each is answered with its status and its code, no hold stays open, the
 * figures of the ledger agree, and nothing of it stays in memory.
 */

const MEMORY_GROWTH_MAX = 64 * 1024 * 1024
const AT_ONCE = 24
/** Longer than any answer takes that is not waited for. Milliseconds. */
const SLOW_MS = 1500
/** Nobody listens there, and no system gives it to whoever asks for any. */
const NOBODY = 1
const MESSAGES = [{ role: 'user', content: 'Hello' }]
const OTHERS: Readonly<Record<string, object>> = {
  '/v1/completions': { prompt: 'Hello' },
  '/v1/embeddings': { input: 'Hello' },
  '/v1/moderations': { input: 'Hello' },
  '/v1/rerank': { query: 'Hello', documents: ['Hello', 'Bye'] },
}

interface Row {
  readonly fault: string
  readonly provider: string
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
  const selfSigned = await tls(t)
  const providers: [name: string, url: string][] = [
    ['refused', `http://127.0.0.1:${NOBODY}/v1`],
    ['strange', `https://127.0.0.1:${selfSigned}/v1`],
  ]
  const rows: Row[] = []
  const add = (provider: string, name: string, mode: string, path: string, body: object, expected: string): void => {
    rows.push({
      fault: name,
      provider,
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
  // The next request may meet a connection that they have spoilt: it is sent once more, over a new one.
  const spoiling = new Set<string>()
  const alone = new Set<string>()
  for (const [index, { name, act, whole, stream, all, spoils, large }] of faults(
    `http://127.0.0.1:${decoy}/v1/chat/completions`,
  ).entries()) {
    if (spoils === true) spoiling.add(name)
    if (large === true) alone.add(name)
    const provider = `f${index}`
    providers.push([provider, `http://127.0.0.1:${server.port}/${provider}/v1`])
    server.on(`/${provider}/`, act)
    chats(provider, name, whole, stream)
    if (all === undefined) continue
    for (const [path, body] of Object.entries(OTHERS)) add(provider, name, path.slice(4), path, body, all)
  }
  const running = await gateway(t, config(providers))
  const pid = running.process.pid as number

  const got = new Map<string, string>()
  const took = new Map<string, number>()
  const askAll = async (asked: readonly Row[], atOnce: number, suffix = ''): Promise<void> => {
    const left = [...asked]
    const work = async (): Promise<void> => {
      for (let row = left.shift(); row !== undefined; row = left.shift()) {
        const from = performance.now()
        got.set(row.id, await ask(running.url, { ...row, id: row.id + suffix }))
        took.set(row.id, performance.now() - from)
      }
    }
    await Promise.all(Array.from({ length: atOnce }, work))
  }
  // Once unmeasured: what a first request of any kind loads stays loaded.
  await askAll(rows, AT_ONCE, '-warm')
  const named = grouped(rows)
  const posts = ([row]: readonly Row[]): number =>
    [...server.seen].filter(([path]) => path.startsWith(`/${row?.provider}/`)).reduce((sum, [, count]) => sum + count, 0)
  const warm = new Map([...named].map(([fault, own]) => [fault, posts(own)]))
  const isSlow = (own: readonly Row[]): boolean => own.some(({ id, fault }) => (took.get(id) ?? 0) > SLOW_MS && !alone.has(fault))
  const growths: Growth[] = []
  const measured = async (fault: string, own: readonly Row[], atOnce: number): Promise<void> => {
    const before = memory(pid)
    await askAll(own, atOnce)
    const { peak } = memory(pid)
    growths.push({ fault, peak: peak - before.now, kept: (await settled(pid, before.now + MEMORY_GROWTH_MAX)) - before.now })
  }
  const first = await settled(pid, 0)
  for (const [fault, own] of named) if (!isSlow(own)) await measured(fault, own, own.length)
  // Those in which nothing happens for a time are asked together; what they take together is more than any of them takes.
  const slow = [...named].filter(([, own]) => isSlow(own))
  await measured(
    `${slow.length} that take their time, together`,
    slow.flatMap(([, own]) => own),
    AT_ONCE,
  )
  const twice = [...named].filter(([fault, own]) => !spoiling.has(fault) && posts(own) - (warm.get(fault) ?? 0) > own.length)
  const last = await settled(pid, first + MEMORY_GROWTH_MAX)
  const open = await metric(running, 'model_gateway_holds_open')
  t.equal(running.process.exitCode, null)
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
  t.strictSame(
    twice.map(([fault]) => fault),
    [],
    'nothing is sent twice',
  )
  for (const { fault, kept } of growths) t.ok(kept < MEMORY_GROWTH_MAX, `${fault}: ${mb(kept)} MB more are kept`)
  t.ok(last - first < MEMORY_GROWTH_MAX, `all of it together: ${mb(last - first)} MB more are kept`)
  const ends = new Map<string, number>()
  for (const { found } of table) ends.set(found, (ends.get(found) ?? 0) + 1)
  const wrong = table.filter(({ expected, found }) => !expected.split(' or ').includes(found)).length
  const most = growths.reduce((a, b) => (b.kept > a.kept ? b : a))
  const high = growths.reduce((a, b) => (b.peak > a.peak ? b : a))
  t.comment(
    [
      `${providers.length} faults, ${rows.length} rows, ${wrong} wrong, ${open} holds left open, 1 process (${pid} from the first to the last)`,
      `memory: ${mb(most.kept)} MB kept after the worst fault (${most.fault}), ${mb(high.peak)} MB for a moment (${high.fault}), ${mb(last - first)} MB after all`,
      ...[...ends].map(([found, count]) => `${String(count).padStart(4)} × ${found}`),
    ].join('\n'),
  )
})

function config(providers: readonly [string, string][]): string {
  const settings = 'timeout: {connect: 2s, first_byte: 2s, idle: 2s, total: 5s}, health: off'
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

interface Growth {
  readonly fault: string
  /** Bytes: at the most, and once what was used has been collected. */
  readonly peak: number
  readonly kept: number
}

const mb = (bytes: number): number => Math.round(bytes / 1024 / 1024)

function grouped(rows: readonly Row[]): Map<string, Row[]> {
  const groups = new Map<string, Row[]>()
  for (const row of rows) groups.set(row.fault, [...(groups.get(row.fault) ?? []), row])
  return groups
}

/** Resident memory of a process now, and the most since this was last asked. Bytes. */
function memory(pid: number): { readonly now: number; readonly peak: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const of = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) * 1024
  // 5: the mark is set to what is there now.
  writeFileSync(`/proc/${pid}/clear_refs`, '5')
  return { now: of('VmRSS'), peak: of('VmHWM') }
}

/** Resident memory once what was used has been collected: below `enough`, or the least of some seconds. Bytes. */
async function settled(pid: number, enough: number): Promise<number> {
  let least = memory(pid).now
  for (let i = 0; i < 20 && least >= enough; i++) {
    await new Promise(resolve => setTimeout(resolve, 100))
    least = Math.min(least, memory(pid).now)
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

async function tls(t: { teardown(fn: () => unknown): unknown }): Promise<number> {
  const pem = (name: string): Buffer => readFileSync(`${FIXTURES}tls/localhost.${name}`)
  const server = createTls({ cert: pem('crt'), key: pem('key') }, (_request, response) => response.end('{}'))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port
}
