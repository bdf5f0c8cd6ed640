import { lstatSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { type Talk, talk } from '../support/client.js'
import { type Answer, gateway, inspect, KEY, metric, type RunningGateway, yaml } from '../support/gateway.js'
import { chat, gate, json, type OpenStream, openStream, provider, type Script } from '../support/provider.js'

/* Another config while requests are under way: each ends under its own, none fails, and nothing of the old ones stays. */

const CHAT = '/v1/chat/completions'
const ask = (model: string, stream = false) => ({ model, stream, messages: [{ role: 'user', content: 'Hello' }], max_tokens: 10 })
const USAGE = { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 }

/** A policy that tells, at a request with `x-probe`, what this process holds on to: by then, of all that can be collected nothing is left. */
const PROBE = `
import { channel } from 'node:diagnostics_channel'
import { readdirSync, readFileSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc')
const configs = new Set()
let open = 0
const watches = () => readdirSync('/proc/self/fdinfo').flatMap(fd => {
  try {
    return readFileSync('/proc/self/fdinfo/' + fd, 'utf8').match(/^inotify wd:/gm) ?? []
  } catch {
    return []
  }
}).length
const turn = () => new Promise(resolve => setTimeout(resolve, 20))
export default (_options, host) => {
  configs.add(new WeakRef(host.keys))
  open++
  return {
    name: 'probe',
    async admit({ headers }) {
      if (headers['x-probe'] === undefined) return
      for (let i = 0; i < 3; i++) {
        await turn()
        gc()
      }
      host.log('probe', {
        configs: [...configs].filter(config => config.deref() !== undefined).length,
        chains: open,
        made: configs.size,
        timers: process.getActiveResourcesInfo().filter(type => type === 'Timeout').length,
        watchers: watches(),
        listeners: channel('undici:client:sendHeaders')._subscribers?.length ?? 0,
        files: readdirSync('/proc/self/fd').length,
        heap: process.memoryUsage().heapUsed,
      })
    },
    close() {
      open--
    },
  }
}
`

interface Probed {
  readonly configs: number
  readonly chains: number
  readonly made: number
  readonly timers: number
  readonly watchers: number
  readonly listeners: number
  readonly files: number
  readonly heap: number
}

async function probe(running: RunningGateway): Promise<Probed> {
  const told = () => running.lines().filter(line => line.message === 'probe')
  const before = told().length
  await running.post(CHAT, ask('steady/m'), { authorization: `Bearer ${KEY}`, 'x-probe': '1' })
  while (told().length === before) await sleep(5)
  return told().at(-1).fields
}

/** The ways in which a file changes: each is asked to make it hold `text`. */
const MANNERS: Readonly<Record<string, (running: RunningGateway, text: string, turn: number) => void>> = {
  'a plain write': ({ folder }, text) => writeFileSync(join(folder, 'gateway.yaml'), text),
  'an editor, which renames': ({ folder }, text) => {
    writeFileSync(join(folder, '.gateway.yaml.swp'), text)
    renameSync(join(folder, '.gateway.yaml.swp'), join(folder, 'gateway.yaml'))
  },
  'Kubernetes, which swaps ..data': ({ folder }, text, turn) => {
    const of = (path: string) => join(folder, path)
    mkdirSync(of(`..turn_${turn}`))
    writeFileSync(of(`..turn_${turn}/gateway.yaml`), text)
    symlinkSync(`..turn_${turn}`, of('..data_tmp'))
    renameSync(of('..data_tmp'), of('..data'))
    if (!lstatSync(of('gateway.yaml')).isSymbolicLink()) {
      symlinkSync('..data/gateway.yaml', of('gateway.yaml.link'))
      renameSync(of('gateway.yaml.link'), of('gateway.yaml'))
    }
    rmSync(of(`..turn_${turn - 1}`), { recursive: true, force: true })
  },
  'a write and SIGHUP': (running, text) => {
    writeFileSync(join(running.folder, 'gateway.yaml'), text)
    running.process.kill('SIGHUP')
  },
}
/** Twelve in a row of each, then in turns. */
const SWAPS = 100
const IN_A_ROW = 12
const ways = Object.entries(MANNERS)
const mannerOf = (swap: number) => ways[(swap <= ways.length * IN_A_ROW ? Math.floor((swap - 1) / IN_A_ROW) : swap) % ways.length]

t.test(`${SWAPS} configs under load: no request fails, each ends under its own, and nothing of the old ones stays`, async t => {
  const held: { readonly open: OpenStream; readonly finish: () => void }[] = []
  const answers = chat({ usage: USAGE })
  const script: Script = (seen, response, request) => {
    if (seen.body.user !== 'held') return answers(seen, response, request)
    const open = openStream(seen, response)
    open.say('Once ')
    held.push({ open, finish: () => open.finish(USAGE) })
  }
  const up = await provider(t, script)
  const sockets = new Map<string, Set<object>>()
  up.script = (seen, response, request) => {
    const name = seen.path.split('/')[1] as string
    sockets.set(name, (sockets.get(name) ?? new Set()).add(request.socket))
    return script(seen, response, request)
  }
  // `steady` is the same in all configs, `changing` another in each, `now-and-then` another in every seventh.
  const config = (turn: number): string => {
    const each = (name: string, most: number) =>
      `  ${name}: {kind: openai, base_url: "http://127.0.0.1:${up.port}/${name}", max_connections: ${most}}`
    const model = (name: string) => `  ${name}/m: {price: {input: ${turn + 1}000000, output: 1000000}, max_output_tokens: 100, attempts: 1}`
    return `listen: 127.0.0.1:0
ops: 127.0.0.1:0
ledger: {path: data/ledger.db, durability: process}
policies: [auth, rate, budget, hold, ./probe.mjs]
providers:
${each('steady', 100)}
${each('changing', 100 + turn)}
${each('now-and-then', 100 + Math.floor(turn / 7))}
models:
${['steady', 'changing', 'now-and-then'].map(model).join('\n')}
aliases: {turn-${turn}: steady/m}
plans: {p: {requests_per_minute: 1000000}}
accounts: {acme: {opening_balance_rial: 1000000000}}
keys: {a: {account: acme, plan: p, secret: ${KEY}}}
`
  }
  const folder = t.testdir({ 'probe.mjs': PROBE })
  const running = await gateway(t, config(0).replace(/^(listen|ops).*\n/gm, ''), { folder })

  let over = false
  let asked = 0
  const failed: string[] = []
  const load = async (worker: number): Promise<void> => {
    const models = ['steady/m', 'changing/m', 'now-and-then/m']
    for (let i = worker; !over; i++) {
      const stream = i % 2 === 0
      const answer: Answer = i % 7 === 0 ? await running.get('/v1/key') : await running.post(CHAT, ask(models[i % 3] as string, stream))
      asked++
      if (answer.status !== 200 || (i % 7 !== 0 && stream && !answer.text.endsWith('data: [DONE]\n\n'))) failed.push(answer.text)
      await sleep(15)
    }
  }
  const workers = Array.from({ length: 4 }, (_, worker) => load(worker))
  const streams: { readonly turn: number; readonly talk: Talk }[] = []
  let bad = 0
  let before: Probed | undefined
  for (let turn = 1; turn <= SWAPS; turn++) {
    const [, swap] = mannerOf(turn) as (typeof ways)[number]
    if (turn % 20 === 0) {
      bad++
      writeFileSync(join(running.folder, 'gateway.yaml'), config(turn).slice(0, -40))
      await running.line('the config was not reloaded')
      while ((await metric(running, 'model_gateway_config_last_reload_successful')) !== 0) await sleep(10)
    }
    swap(running, config(turn), turn)
    // The alias is there as soon as the config is in force, and gone with it.
    for (const from = performance.now(); ; await sleep(10)) {
      const { status } = await running.get(`/v1/models/turn-${turn}`)
      if (status === 200) break
      if (performance.now() - from > 20_000) throw new Error(`turn ${turn} did not come about\n${running.output().slice(-2000)}`)
    }
    if (turn % 10 === 5) {
      for (const model of ['steady/m', 'changing/m', 'now-and-then/m']) {
        const talking = talk(running.url + CHAT, { body: { ...ask(model, true), user: 'held' } })
        await talking.until('Once ')
        streams.push({ turn, talk: talking })
      }
    }
    // Each stays open for 30 turns, and ends long after the pool that it came over was replaced.
    if (turn > 35 && turn % 10 === 5) for (const { finish } of held.splice(0, 3)) finish()
    if (turn === 10) before = await probe(running)
  }
  for (const { finish } of held.splice(0)) finish()
  for (const { talk: talking } of streams) {
    t.equal(await talking.ended, 'whole')
    t.match(talking.text(), /Once [\s\S]*data: \[DONE\]\n\n$/)
  }
  over = true
  await Promise.all(workers)
  t.strictSame(failed, [], 'requests that failed')
  t.ok(asked > 500, `${asked} requests`)
  t.equal(streams.length, 30)

  // What is let go of is let go of soon.
  let after = await probe(running)
  for (let i = 0; i < 50 && (after.configs > 1 || after.chains > 1 || after.timers > (before?.timers ?? 0)); i++) {
    await sleep(100)
    after = await probe(running)
  }
  t.ok(after.made >= SWAPS, `${after.made} configs were built`)
  t.match(after, { configs: 1, chains: 1, listeners: 3 }, 'of configs and policies, the last; and one listener for each provider')
  t.ok(after.watchers <= 2, 'the folder is watched, and the one that its link leads to')
  t.ok(after.timers <= (before?.timers ?? 0) + 2, `timers: ${before?.timers} at the tenth, ${after.timers} at the end`)
  t.ok(after.files <= (before?.files ?? 0) + 4, `open files: ${before?.files} at the tenth, ${after.files} at the end`)
  const grown = (after.heap - (before?.heap ?? 0)) / 1024 / 1024
  t.ok(grown < 8, `the heap has ${grown.toFixed(1)} MB more than at the tenth`)
  const used = (name: string) => sockets.get(name)?.size ?? 0
  t.ok(used('steady') < SWAPS / 2, `${used('steady')} connections to the provider that stayed the same`)
  t.ok(used('changing') >= SWAPS / 2, `${used('changing')} to the one that did not`)
  t.ok(((await metric(running, 'model_gateway_config_reloads_total{result="failed"}')) ?? 0) >= bad, 'bad files in between')
  t.equal(await metric(running, 'model_gateway_holds_open'), 0)
  t.equal(await running.stop(), 0)
  t.strictSame(
    running.lines().filter(line => line.level === 'error' && !line.message.startsWith('the config was not reloaded')),
    [],
  )
  const records = await inspect(running.folder, async ledger => {
    t.strictSame(await ledger.verify(), [])
    return ledger.records({})
  })
  const wrong = records.filter(
    ({ state, price, cost_rial }) => state !== 'settled' || cost_rial !== 9n * (BigInt(JSON.parse(price).input) / 1_000_000n) + 2n,
  )
  t.strictSame(wrong, [], 'each is charged at the price of its own config')
  const inputs = async ({ turn, talk: talking }: (typeof streams)[number]) => {
    const id = (await talking.head).headers['x-request-id']
    return [turn, JSON.parse(records.find(record => record.id === id)?.price ?? '{}').input / 1_000_000 - 1]
  }
  for (const stream of streams) {
    const [began, priced] = await inputs(stream)
    t.equal(priced, began, 'a stream is charged at the price at which it began')
  }
  const { configs, timers, watchers, files } = after
  t.comment(
    `${SWAPS} swaps, ${asked} requests, ${failed.length} failed, ${streams.length} streams across 30 swaps; left alive: ${configs} config, ${timers} timers, ` +
      `${watchers} watches, ${files} files (${before?.files} at the tenth), ${grown.toFixed(1)} MB more of heap`,
  )
})

t.test('what takes a restart is said, until it is done or taken back', async t => {
  const up = await provider(t)
  const before = yaml(up.url)
  const running = await gateway(t, before)
  const certificate = (name: string) => readFileSync(new URL(`../../../test/fixtures/tls/localhost.${name}`, import.meta.url), 'utf8')
  writeFileSync(join(running.folder, 'cert.pem'), certificate('crt'))
  writeFileSync(join(running.folder, 'key.pem'), certificate('key'))
  const pending = async () =>
    /^\[\+\] config: .*takes a restart: (.*)$/m.exec((await running.get(`${running.ops}/readyz?verbose`)).text)?.[1]
  const said = () =>
    running.lines().flatMap(line => /^a change of (\S+) takes a restart; the old value stays$/.exec(line.message)?.[1] ?? [])
  t.equal(await pending(), undefined)
  const changed = `tls: {cert: cert.pem, key: key.pem}\nlog: {format: json}\n${before.replace('data/ledger.db', 'data/other.db')}`
  await running.reload(changed)
  t.strictSame(said(), ['ledger', 'tls', 'log.format'])
  t.equal(await pending(), 'ledger, tls, log.format')
  t.equal((await running.post(CHAT, ask('up/m'))).status, 200, 'and goes on as it was')
  await running.reload(`${changed}drain_timeout: 20s\n`)
  t.equal(await pending(), 'ledger, tls, log.format', 'still')
  await running.reload(before)
  t.equal(await pending(), undefined)
  writeFileSync(join(running.folder, 'gateway.yaml'), `listen: 127.0.0.1:1\nops: 127.0.0.1:2\n${before}`)
  while ((await pending()) === undefined) await sleep(10)
  t.equal(await pending(), 'listen, ops')
  while (said().at(-1) !== 'ops') await sleep(10)
  t.strictSame(said().slice(-2), ['listen', 'ops'])
  t.equal((await running.get(`${running.ops}/readyz`)).status, 200)
})

t.test('a signal reads the file again, though nothing of it has changed', async t => {
  const running = await gateway(t, yaml((await provider(t)).url))
  const reloads = () => running.lines().filter(line => line.message === 'the config was reloaded').length
  for (const times of [1, 2]) {
    running.process.kill('SIGHUP')
    while (reloads() < times) await sleep(5)
  }
  t.equal(await metric(running, 'model_gateway_config_reloads_total{result="ok"}'), 2)
})

t.test('a secret that is changed while the gateway starts, or reloads, is taken', async t => {
  // Made when the secret has been read, and before what it was read for is in force.
  const rotates = `import { existsSync, renameSync } from 'node:fs'
export default () => {
  const next = new URL('next.txt', import.meta.url)
  if (existsSync(next)) renameSync(next, new URL('secret.txt', import.meta.url))
  return { name: 'rotates', close() {} }
}
`
  const folder = t.testdir({ 'rotates.mjs': rotates, 'secret.txt': 'mgk_first', 'next.txt': 'mgk_second' })
  const config = yaml((await provider(t)).url, { more: 'policies: [auth, rate, budget, hold, ./rotates.mjs]' })
  const running = await gateway(t, config.replace(`secret: ${KEY}`, `secret: "\${file:secret.txt}"`), { folder })
  const status = async (secret: string) => (await running.get('/v1/key', { authorization: `Bearer ${secret}` })).status
  while ((await status('mgk_second')) !== 200) await sleep(20)
  t.equal(await status('mgk_first'), 401)
  writeFileSync(join(folder, 'next.txt'), 'mgk_third')
  running.process.kill('SIGHUP')
  while ((await status('mgk_third')) !== 200) await sleep(20)
  t.equal(await status('mgk_second'), 401)
})

t.test('the file of a policy is read again when it was edited; its own codes are told apart', async t => {
  const closed = (code: string) => `export default (_options, host) => ({
    name: 'hours', codes: ['closed', 'on_holiday'],
    admit() { throw host.error('${code}', 'Come back later.', { status: 503 }) },
  })\n`
  const folder = t.testdir({ 'hours.mjs': closed('closed') })
  const up = await provider(t)
  const config = yaml(up.url, { more: 'policies: [auth, rate, budget, hold, ./hours.mjs]' })
  const running = await gateway(t, config, { folder })
  const code = async () => (await running.post(CHAT, ask('up/m'))).json.error.code
  const counted = (name: string) => metric(running, `model_gateway_refusals_total{code="${name}",plan="p"}`)
  t.equal(await code(), 'closed')
  t.equal(await counted('closed'), 1)
  // Nobody sends a signal, and gateway.yaml stays as it is.
  writeFileSync(join(folder, 'hours.mjs'), closed('on_holiday'))
  while ((await code()) !== 'on_holiday') await sleep(20)
  t.ok(((await counted('on_holiday')) ?? 0) >= 1)
  writeFileSync(join(folder, 'hours.mjs'), 'export default (\n')
  t.match(await running.line('the config was not reloaded'), { message: /gateway\.yaml:\d+:\d+: .*hours\.mjs/ })
  t.equal(await code(), 'on_holiday', 'the last good one runs')
  writeFileSync(join(folder, 'hours.mjs'), closed('undeclared'))
  while ((await code()) !== 'undeclared') await sleep(20)
  t.ok(((await counted('other')) ?? 0) >= 1, 'a code that it does not name is one of the others')
  t.equal(await running.stop(), 0)
})

t.test('an opening balance is credited once, when its account is first seen, though it was 0 then', async t => {
  const before = yaml((await provider(t)).url, { balance: 0 })
  const running = await gateway(t, before)
  const wallet = async () => (await running.get('/v1/key')).json.wallet
  t.match(await wallet(), { balance_rial: 0 })
  const later = before.replace('acme: {opening_balance_rial: 0}', 'acme: {opening_balance_rial: 777}, other: {opening_balance_rial: 5}')
  await running.reload(later)
  t.match(await wallet(), { balance_rial: 0 })
  await running.reload(later.replace('account: acme', 'account: other').replace('5}', '6}'))
  t.match(await wallet(), { balance_rial: 5 })
})

t.test('a model that is taken away fails the next request, not the one under way', async t => {
  const held = gate(chat({ usage: USAGE }))
  const up = await provider(t, held.script)
  const before = yaml(up.url)
  const running = await gateway(t, before)
  const first = running.post(CHAT, ask('up/m'))
  while (up.seen.length === 0) await sleep(5)
  await running.reload(before.replaceAll('up/m', 'up/other'))
  t.match((await running.post(CHAT, ask('up/m'))).json.error, { code: 'model_not_found' })
  held.open()
  t.equal((await first).status, 200)
  t.equal((await running.post(CHAT, ask('up/other'))).status, 200)
  t.equal(await running.stop(), 0)
  t.match(await running.records(), [
    { model: 'up/m', state: 'settled' },
    { model: 'up/other', state: 'settled' },
  ])
})

t.test('a provider that was mended in the file is asked at once, though it was left alone', async t => {
  const down = await provider(t, (_seen, response) => json(response, 503, { error: { message: 'No.' } }))
  const up = await provider(t)
  const options = { provider: 'health: {failures: 2, ejection: 60s}', model: 'attempts: 1' }
  const running = await gateway(t, yaml(down.url, options))
  for (const status of [502, 502, 503]) t.equal((await running.post(CHAT, ask('up/m'))).status, status)
  await running.reload(yaml(down.url, { ...options, more: 'drain_timeout: 20s' }))
  t.equal((await running.post(CHAT, ask('up/m'))).status, 503, 'another reload changes nothing about it')
  await running.reload(yaml(up.url, options))
  t.equal(await metric(running, 'model_gateway_upstream_up{provider="up"}'), 1)
  t.equal((await running.post(CHAT, ask('up/m'))).status, 200)
})

t.test('what is told of windows is of the moment of the answer', async t => {
  let answered = 0
  const up = await provider(t, async (seen, response, request) => {
    await sleep(2500)
    answered = Date.now()
    await chat()(seen, response, request)
  })
  const running = await gateway(t, yaml(up.url, { plan: '{requests_per_day: 100}', more: 'timezone: UTC' }))
  const { headers } = await running.post(CHAT, ask('up/m'))
  const midnight = (at: number) => Math.ceil((86_400_000 - (at % 86_400_000)) / 1000)
  const told = Number(headers.get('x-ratelimit-reset-requests'))
  t.ok(told <= midnight(answered) && told >= midnight(Date.now()) - 1, `${told} s, ${midnight(answered)} when it was answered`)
})
