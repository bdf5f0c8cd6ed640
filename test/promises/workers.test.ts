import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { connectTo } from '../../src/control/client.js'
import { FRAME } from '../../src/workers/frames.js'
import { type Talk, talk } from '../support/client.js'
import { AUTH, gateway, inspect, KEY, metric, type RunningGateway, workersOf, yaml } from '../support/gateway.js'
import { program } from '../support/program.js'
import { chat, gate, type OpenStream, openStream, provider, type Script } from '../support/provider.js'

/* What is promised of one process holds of several: two workers on one address, over one ledger. */

const CHAT = '/v1/chat/completions'
const BODY = { model: 'up/m', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 20 }
const STREAM = { ...BODY, stream: true }
const USAGE = { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 }
const RELEASED = 'a hold that a worker left open was released'

const two = (url: string, more: Parameters<typeof yaml>[1] = {}): string => yaml(url, { ...more, more: `workers: 2\n${more.more ?? ''}` })

function lives(pid: number): boolean {
  try {
    // One that has ended and was not waited for yet is dead all the same.
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return false
  }
}

/** On a connection of its own: each goes to the worker whose turn it is. */
async function ask(running: RunningGateway, body: object = BODY, headers: Record<string, string> = AUTH): Promise<number> {
  const talking = talk(running.url + CHAT, { body, headers })
  const head = await talking.head
  await talking.ended
  return head.statusCode ?? 0
}

/** Says something in each stream and leaves it open; the streams in the order in which they came. */
function held(): { readonly script: Script; readonly streams: OpenStream[] } {
  const streams: OpenStream[] = []
  return {
    streams,
    script: (seen, response) => {
      const stream = openStream(seen, response)
      stream.say('Once ')
      streams.push(stream)
    },
  }
}

async function begin(running: RunningGateway, count: number): Promise<Talk[]> {
  const talks: Talk[] = []
  for (let i = 0; i < count; i++) {
    const talking = talk(running.url + CHAT, { body: STREAM })
    await talking.until('Once ')
    talks.push(talking)
  }
  return talks
}

/** One that nobody listens on for the moment. */
async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise(resolve => server.close(resolve))
  return port
}

const idOf = async ({ head }: Talk): Promise<string> => String((await head).headers['x-request-id'])

t.jobs = 2

t.test('100 requests at once under a ceiling of 31, in two workers: 31 reach the provider, and nothing stays pending', async t => {
  const doors = gate()
  const up = await provider(t, doors.script)
  const running = await gateway(t, two(up.url, { plan: '{requests_per_day: 31}' }))
  const statuses: number[] = []
  const all = Array.from({ length: 100 }, async () => {
    const status = await ask(running)
    statuses.push(status)
    return status
  })
  while (statuses.length < 69 || up.seen.length < 31) await sleep(10)
  t.equal(up.seen.length, 31, 'while all are waiting')
  t.match((await running.get('/v1/key')).json, { usage: { held_requests_today: 31, requests_today: 0 } })
  doors.open()
  const answered = await Promise.all(all)
  t.equal(answered.filter(status => status === 200).length, 31)
  t.equal(answered.filter(status => status === 429).length, 69)
  t.match((await running.get('/v1/key')).json, { usage: { held_requests_today: 0, requests_today: 31 }, wallet: { held_rial: 0 } })

  t.equal(await metric(running, 'model_gateway_requests_total{surface="chat",model="up/m",status="200"}'), 31, 'counters add up')
  t.equal(await metric(running, 'model_gateway_requests_total{surface="chat",model="up/m",status="429"}'), 69)
  t.equal(await metric(running, 'model_gateway_request_duration_seconds_count{surface="chat",model="up/m",provider="up"}'), 31)
  t.equal(await metric(running, 'model_gateway_requests_in_flight{surface="chat"}'), 0)
  const openMetrics = await running.get(`${running.ops}/metrics`, { accept: 'application/openmetrics-text; version=1.0.0' })
  t.match(openMetrics.text, /^# TYPE model_gateway_requests counter$/m)
  t.match(openMetrics.text, /\n# EOF\n$/)
  t.equal(await metric(running, 'model_gateway_requests_total{surface="chat",model="up/m",status="200"}'), 31, 'and stay as they are')

  const broken = running
    .output()
    .split('\n')
    .filter(line => line !== '' && !line.startsWith('warning: ') && !line.endsWith('}'))
  t.same(broken, [], 'every line of the log is whole')
  t.equal(running.lines().filter(line => line.request_id !== undefined && line.surface === 'chat').length, 100)
  t.equal(running.lines().filter(line => line.message === 'listening').length, 1, 'said once')
  t.match((await running.get(`${running.ops}/readyz?verbose`)).text, /^\[\+\] workers$/m)
  const served = await Promise.all([1, 2].map(worker => metric(running, `model_gateway_worker_cpu_seconds_total{worker="${worker}"}`)))
  t.ok(
    served.every(seconds => (seconds ?? 0) > 0),
    'both have worked',
  )
  t.equal(await running.stop(), 0)
  await inspect(running.folder, async ledger => {
    t.same(await ledger.verify(), [])
    t.equal((await ledger.records({})).length, 31)
  })
})

t.test('kill -9 of a worker: its streams are cut and its holds released, the other goes on, and another takes its place', async t => {
  const streams = held()
  const up = await provider(t, streams.script)
  const running = await gateway(t, two(up.url))
  const talks = await begin(running, 4)
  const doors = gate()
  up.script = doors.script
  // Held, and without a byte of an answer yet.
  const waiting = Array.from({ length: 4 }, () => talk(running.url + CHAT, { body: BODY }))
  while (up.seen.length < 8) await sleep(5)
  const [first, second] = workersOf(running)
  process.kill(first as number, 'SIGKILL')
  await running.line('a worker has taken the place of one that had ended')
  t.match(await running.line('a worker has ended'), { level: 'error', reason: 'signal SIGKILL' })

  const lines = running.lines().filter(line => line.message === RELEASED)
  const lost = lines.length
  t.ok(lost > 0 && lost < 8, `${lost} of 8, streams and what had no answer yet`)
  t.equal(await metric(running, 'model_gateway_holds_recovered_total{model="up/m"}'), lost)
  t.equal(await metric(running, 'model_gateway_holds_open'), 8 - lost, 'of the other worker')
  up.script = chat()
  for (let i = 0; i < 4; i++) t.equal(await ask(running), 200, 'both answer')
  for (const [i, stream] of streams.streams.entries()) {
    stream.say(`upon a time ${i}`)
    stream.finish(USAGE)
  }
  doors.open()
  const ends = await Promise.all([...talks, ...waiting].map(({ ended }) => ended))
  t.equal(ends.filter(end => end === 'cut').length, lost)
  const whole = talks.filter((_, i) => ends[i] === 'whole')
  for (const talking of whole) t.match(talking.text(), /upon a time.*data: \[DONE\]\n\n$/s)
  const released = new Set(lines.map(line => line.request_id))
  for (const [i, talking] of talks.entries()) t.equal(released.has(await idOf(talking)), ends[i] === 'cut', 'those that were cut')

  const workers = workersOf(running)
  t.equal(workers.length, 2)
  t.ok(workers.includes(second as number) && !workers.includes(first as number))
  t.equal(
    await metric(running, `model_gateway_requests_total{surface="chat",model="up/m",status="200"}`),
    12 - lost,
    'what the other counted, too',
  )
  t.match((await running.get('/v1/key')).json, { usage: { requests_today: 12, held_requests_today: 0 }, wallet: { held_rial: 0 } })
  t.equal(await running.stop(), 0)
  await inspect(running.folder, async ledger => {
    t.same(await ledger.verify(), [])
    t.same(await ledger.open(), [])
    const recovered = await ledger.records({ state: 'recovered' })
    t.same(new Set(recovered.map(({ id }) => id)), released)
    t.ok(recovered.every(({ cost_rial }) => cost_rial === 0n))
  })
})

t.test('a worker that hangs is ended, what it has open is cut and released, and another takes its place', async t => {
  const streams = held()
  const up = await provider(t, streams.script)
  const running = await gateway(t, two(up.url))
  const talks = await begin(running, 2)
  const [first, second] = workersOf(running)
  process.kill(first as number, 'SIGSTOP')
  t.match(await running.line('a worker does not answer, and is ended'), { level: 'error', ms: 20_000 })
  await running.line('a worker has taken the place of one that had ended')
  const { request_id } = await running.line(RELEASED)
  const ids = await Promise.all(talks.map(idOf))
  t.equal(await talks[ids.indexOf(request_id)]?.ended, 'cut')
  const workers = workersOf(running)
  t.ok(workers.length === 2 && workers.includes(second as number) && !lives(first as number))
  for (const stream of streams.streams) stream.finish(USAGE)
  t.equal(await talks[1 - ids.indexOf(request_id)]?.ended, 'whole')
  t.equal(await running.stop(), 0)
})

t.test('kill -9 of the owner: its workers end with it, and the next start has file and port', async t => {
  const streams = held()
  const up = await provider(t, streams.script)
  const config = two(up.url)
  const running = await gateway(t, config)
  const talks = await begin(running, 4)
  const ids = await Promise.all(talks.map(idOf))
  const workers = workersOf(running)
  const { port } = new URL(running.url)
  await running.kill()
  const killed = performance.now()
  t.same(await Promise.all(talks.map(({ ended }) => ended)), ['cut', 'cut', 'cut', 'cut'])
  while (workers.some(lives)) await sleep(2)
  t.ok(performance.now() - killed < 5_000, 'at once')
  up.script = chat()
  const next = await gateway(t, config, { folder: running.folder, listenPort: Number(port) })
  t.equal(new URL(next.url).port, port)
  const told = next.lines().filter(line => line.message === 'a hold that the last run left open was released')
  t.same(new Set(told.map(line => line.request_id)), new Set(ids))
  t.equal(await ask(next), 200)
  t.match((await next.get('/v1/key')).json, { usage: { requests_today: 5, held_requests_today: 0, spend_today_rial: 13 } })
  t.equal(await next.stop(), 0)
  await inspect(running.folder, async ledger => t.same(await ledger.verify(), []))
})

t.test('a reload changes all workers or none; what is under way ends under the config that it began with', async t => {
  const streams = held()
  const up = await provider(t, streams.script)
  const before = two(up.url)
  const running = await gateway(t, before)
  const talks = await begin(running, 2)
  up.script = chat()
  const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` })
  const four = async (secret: string): Promise<number[]> => {
    const statuses: number[] = []
    for (let i = 0; i < 4; i++) statuses.push(await ask(running, BODY, bearer(secret)))
    return statuses
  }
  t.same(await four('mgk_new'), [401, 401, 401, 401])
  await running.reload(before.replace(KEY, 'mgk_new'))
  t.same(await four('mgk_new'), [200, 200, 200, 200])
  t.same(await four(KEY), [401, 401, 401, 401])
  for (const stream of streams.streams) stream.finish(USAGE)
  t.same(await Promise.all(talks.map(({ ended }) => ended)), ['whole', 'whole'])

  await running.reload(before.replace('plan: p,', 'plan: p, plann: p,'))
  t.same(await four('mgk_new'), [200, 200, 200, 200], 'a bad file changes nothing')
  t.match((await running.get(`${running.ops}/readyz?verbose`)).text, /config.*plann/)

  // Fine where the owner looks at it, and not in the second worker.
  const picky = `export default () => {
    if (process.argv[2] === '2') throw new Error('not here')
    return { name: 'picky', admit() { throw Object.assign(new Error('nobody')) } }
  }`
  writeFileSync(join(running.folder, 'picky.mjs'), picky)
  await running.reload(
    before.replace(KEY, 'mgk_newer').replace('providers:', 'policies: [auth, ./picky.mjs, rate, budget, hold]\nproviders:'),
  )
  t.match(running.lines().filter(line => /not reloaded.*not here/.test(line.message ?? '')).length, 1)
  t.same(await four('mgk_new'), [200, 200, 200, 200], 'none of them changed')
  t.equal(await metric(running, 'model_gateway_config_last_reload_successful'), 0)

  await running.reload(before.replace('workers: 2', 'workers: 3'))
  t.match(await running.line('a change of workers takes a restart; the old value stays'), { level: 'warn' })
  t.same(await four(KEY), [200, 200, 200, 200])
  t.equal(await metric(running, 'model_gateway_config_last_reload_successful'), 1)

  // One that begins now begins with what runs, not with what lies there.
  await running.reload('nothing: good')
  process.kill(workersOf(running)[0] as number, 'SIGKILL')
  await running.line('a worker has taken the place of one that had ended')
  t.same(await four(KEY), [200, 200, 200, 200])
})

t.test('a config that one of them can not run has credited nothing', async t => {
  const running = await gateway(t, two((await provider(t)).url))
  writeFileSync(
    join(running.folder, 'picky.mjs'),
    `export default () => { if (process.argv[2] === '2') throw new Error('not here'); return { name: 'picky', close() {} } }`,
  )
  const config = two('http://127.0.0.1:9', { balance: 5000 }).replaceAll('acme', 'newbie')
  await running.reload(
    config.replace('5000}', '50000000}').replace('providers:', 'policies: [auth, ./picky.mjs, rate, budget, hold]\nproviders:'),
  )
  t.ok(running.lines().some(line => /not reloaded.*not here/.test(line.message ?? '')))
  await running.reload(config)
  t.match((await running.get('/v1/key')).json, { wallet: { balance_rial: 5000 } })
})

t.test('not ready while it starts; who comes to the first worker before the last has begun finds what his account opens with', async t => {
  const folder = t.testdir()
  // The second worker begins when there is a file.
  const waits = `import { existsSync } from 'node:fs'
export default async () => {
  while (process.argv[2] === '2' && !existsSync(new URL('go', import.meta.url))) await new Promise(resolve => setTimeout(resolve, 10))
  return { name: 'waits', close() {} }
}
`
  writeFileSync(join(folder, 'waits.mjs'), waits)
  const up = await provider(t, chat())
  const config = two(up.url).replace('providers:', 'policies: [auth, ./waits.mjs, rate, budget, hold]\nproviders:')
  const [listenPort, opsPort] = [await freePort(), await freePort()]
  const starting = gateway(t, config, { folder, listenPort, opsPort })
  const body = JSON.stringify(BODY)
  const headers = { ...AUTH, 'content-type': 'application/json' }
  let status: number | undefined
  while (status === undefined) {
    const asked = fetch(`http://127.0.0.1:${listenPort}${CHAT}`, { method: 'POST', headers, body })
    status = await asked.then(
      response => response.status,
      () => sleep(20).then(() => undefined),
    )
  }
  t.equal(status, 200)
  const ready = await fetch(`http://127.0.0.1:${opsPort}/readyz`)
  t.same([ready.status, await ready.text()], [503, '[-] start: the gateway is starting\nnot ready\n'])
  writeFileSync(join(folder, 'go'), '')
  const running = await starting
  t.equal((await running.get(`${running.ops}/readyz`)).status, 200)
  t.equal(await running.stop(), 0)
})

t.test('a worker that begins while the others make ready for a config changes with them, and cuts nothing that it has begun', async t => {
  const streams = held()
  const up = await provider(t, streams.script)
  const before = two(up.url)
  const running = await gateway(t, before)
  // The second worker is not ready before the test says so.
  const slow = `import { existsSync, writeFileSync } from 'node:fs'
  import { setTimeout as sleep } from 'node:timers/promises'
  const at = name => new URL(name, import.meta.url)
  export default async () => {
    if (process.argv[2] === '2') {
      writeFileSync(at('asked'), '')
      while (!existsSync(at('go'))) await sleep(10)
    }
    return { name: 'slow', close() {} }
  }`
  writeFileSync(join(running.folder, 'slow.mjs'), slow)
  const reloaded = running.reload(
    before.replace(KEY, 'mgk_new').replace('providers:', 'policies: [auth, ./slow.mjs, rate, budget, hold]\nproviders:'),
  )
  while (!existsSync(join(running.folder, 'asked'))) await sleep(10)
  process.kill(workersOf(running)[0] as number, 'SIGKILL')
  t.match(await running.line('a worker has taken the place of one that had ended'), { worker: 1 })
  const talks = await begin(running, 4)
  writeFileSync(join(running.folder, 'go'), '')
  await reloaded
  t.equal(running.lines().filter(line => line.message === 'the config was reloaded').length, 1)
  up.script = chat()
  for (let i = 0; i < 4; i++) t.equal(await ask(running, BODY, { authorization: 'Bearer mgk_new' }), 200)
  for (const stream of streams.streams) stream.finish(USAGE)
  t.same(await Promise.all(talks.map(({ ended }) => ended)), ['whole', 'whole', 'whole', 'whole'])
  t.equal(running.lines().filter(line => line.message === 'a worker has ended').length, 1)
  t.equal(await running.stop(), 0)
  t.ok((await running.records()).every(({ state }) => state === 'settled'))
})

t.test('a worker that does not run the new config ends its requests under the old one, and begins anew with the new one', async t => {
  const streams = held()
  const up = await provider(t, streams.script)
  const before = two(up.url)
  const running = await gateway(t, before)
  const talks = await begin(running, 4)
  up.script = chat()
  // The second worker says that it has made ready, and can not.
  const liar = `import { existsSync, writeFileSync, writeSync } from 'node:fs'
  import { serialize } from 'node:v8'
  const told = new URL('told', import.meta.url)
  export default () => {
    if (process.argv[2] === '2' && !existsSync(told)) {
      writeFileSync(told, '')
      const word = serialize({ kind: 'prepared', change: 1, problem: null })
      const head = Buffer.alloc(5)
      head.writeUInt32LE(word.length)
      head[4] = ${FRAME.word}
      writeSync(4, Buffer.concat([head, word]))
      throw new Error('not here')
    }
    return { name: 'liar', close() {} }
  }`
  writeFileSync(join(running.folder, 'liar.mjs'), liar)
  await running.reload(before.replace(KEY, 'mgk_new').replace('providers:', 'policies: [auth, ./liar.mjs, rate, budget, hold]\nproviders:'))
  t.match(await running.line('a worker does not run the new config'), { level: 'error', worker: 2 })
  const statuses: number[] = []
  const answered = () => statuses.slice(-4).join() === '200,200,200,200'
  while (!answered() && statuses.length < 50) statuses.push(await ask(running, BODY, { authorization: 'Bearer mgk_new' }))
  t.ok(answered(), `${statuses}: what comes goes to the first`)
  t.notOk(running.lines().some(line => line.message === 'a worker has ended'))
  for (const stream of streams.streams) stream.finish(USAGE)
  t.same(await Promise.all(talks.map(({ ended }) => ended)), ['whole', 'whole', 'whole', 'whole'])
  t.match(await running.line('a worker has taken the place of one that had ended'), { worker: 2 })
  t.match(await running.line('a worker has ended'), { worker: 2, reason: 'exit code 0' })
  for (let i = 0; i < 4; i++) t.equal(await ask(running, BODY, { authorization: 'Bearer mgk_new' }), 200)
  t.equal(await running.stop(), 0)
  t.ok((await running.records()).every(({ state }) => state === 'settled'))
})

t.test('SIGTERM to the whole group: what is under way ends as it should, what comes is sent away, and the exit code is 0', async t => {
  const streams = held()
  const up = await provider(t, streams.script)
  const running = await gateway(t, two(up.url, { more: 'drain_timeout: 20s' }))
  const talks = await begin(running, 2)
  const workers = workersOf(running)
  for (const pid of workers) process.kill(pid, 'SIGTERM')
  const exit = running.stop()
  await running.line('stopping')
  await sleep(100)
  const ready = await running.get(`${running.ops}/readyz`)
  t.equal(ready.status, 503)
  t.match(ready.text, /draining/)
  t.same([await ask(running), await ask(running)], [503, 503])
  t.ok(workers.every(lives))
  for (const stream of streams.streams) {
    stream.say('upon a time')
    stream.finish(USAGE)
  }
  t.same(await Promise.all(talks.map(({ ended }) => ended)), ['whole', 'whole'])
  for (const talking of talks) t.match(talking.text(), /upon a time.*data: \[DONE\]\n\n$/s)
  t.equal(await exit, 0)
  t.notOk(workers.some(lives))
  t.same(
    running.lines().filter(line => line.level === 'error' && line.code !== 'draining'),
    [],
  )
  t.match(await running.records(), [{ state: 'settled' }, { state: 'settled' }])
})

t.test('SIGTERM: what is not over within drain_timeout is cut off and settled; a second signal ends all at once', async t => {
  const streams = held()
  const up = await provider(t, streams.script)
  const running = await gateway(t, two(up.url, { more: 'drain_timeout: 300ms' }))
  const talks = await begin(running, 2)
  t.equal(await running.stop(), 0)
  t.same(await Promise.all(talks.map(({ ended }) => ended)), ['cut', 'cut'])
  t.match(await running.records(), [
    { state: 'partial', ended_by: 'drain' },
    { state: 'partial', ended_by: 'drain' },
  ])
  const next = await gateway(t, two(up.url, { more: 'drain_timeout: 60s' }), { folder: running.folder })
  await begin(next, 2)
  const workers = workersOf(next)
  const exit = next.stop()
  await next.line('stopping')
  next.process.kill('SIGTERM')
  t.equal(await exit, 143)
  for (let i = 0; workers.some(lives) && i < 1000; i++) await sleep(5)
  t.notOk(workers.some(lives))
})

t.test('a worker that ends again and again is started anew, each time a little later', async t => {
  const up = await provider(t, chat())
  const dies = `export default () => ({ name: 'dies', admit({ headers }) { if (headers['x-die'] !== undefined) process.exit(3) } })`
  const folder = t.testdir({ 'dies.mjs': dies })
  const config = two(up.url).replace('providers:', 'policies: [auth, ./dies.mjs, rate, budget, hold]\nproviders:')
  const running = await gateway(t, config, { folder })
  const ended = () => running.lines().filter(line => line.message === 'a worker has ended')
  for (let i = 1; i <= 3; i++) {
    const before = workersOf(running)
    const talking = talk(running.url + CHAT, { body: BODY, headers: { ...AUTH, 'x-die': '1' } })
    t.equal(await talking.ended, 'cut')
    while (ended().length < i || running.lines().filter(line => /taken the place/.test(line.message ?? '')).length < i) await sleep(10)
    t.not(workersOf(running).join(), before.join())
  }
  t.ok(ended().every(line => line.reason === 'exit code 3' && line.ms >= 100))
  t.same([await ask(running), await ask(running)], [200, 200])
  const ends = await Promise.all([1, 2].map(worker => metric(running, `model_gateway_worker_ends_total{worker="${worker}"}`)))
  t.equal((ends[0] ?? 0) + (ends[1] ?? 0), 3)
})

t.test('a ledger that fails refuses in all workers, and /readyz says so', async t => {
  const up = await provider(t, chat())
  const running = await gateway(t, two(up.url))
  t.equal(await ask(running), 200)
  rmSync(join(running.folder, 'data', 'ledger.db'))
  while ((await running.get(`${running.ops}/readyz`)).status !== 503) await sleep(20)
  const seen = up.seen.length
  t.same([await ask(running), await ask(running), await ask(running)], [503, 503, 503])
  t.equal(up.seen.length, seen)
})

t.test('the command line and the page see the requests of all workers', async t => {
  const streams = held()
  const up = await provider(t, streams.script)
  const running = await gateway(t, two(up.url, { more: 'admin: 127.0.0.1:0\nadmin_token: a-token-of-the-test' }))
  const page = (await running.line('listening')).admin
  const remote = await connectTo(join(running.folder, 'data', 'ledger.db.sock'))
  const leaving = new AbortController()
  const ended: string[] = []
  const most = { in_flight: 0 }
  const watching = (async () => {
    for await (const event of remote?.watch(leaving.signal) ?? []) {
      if (event.kind === 'ended') ended.push(event.line.request_id)
      if (event.kind === 'state') most.in_flight = Math.max(most.in_flight, event.state.in_flight)
    }
  })().catch(() => {})
  const talks = await begin(running, 4)
  const ids = await Promise.all(talks.map(idOf))
  t.same(new Set((await remote?.ask('holds', {}))?.map(({ id }) => id)), new Set(ids))
  while (most.in_flight < 4) await sleep(20)
  const live = async () => {
    const response = await fetch(`${page}/api/live`, { headers: { authorization: 'Bearer a-token-of-the-test' } })
    return response.json() as Promise<{ running: { count: number; oldest: { id: string }[] }; rows: { id: string }[] }>
  }
  const now = await live()
  t.equal(now.running.count, 4)
  t.same(new Set(now.running.oldest.map(({ id }) => id)), new Set(ids))
  for (const stream of streams.streams) stream.finish(USAGE)
  await Promise.all(talks.map(({ ended }) => ended))
  while (ended.length < 4) await sleep(20)
  t.same(new Set(ended), new Set(ids), 'tail')
  t.same(new Set((await live()).rows.map(({ id }) => id)), new Set(ids), 'the page')
  leaving.abort()
  await watching
})

t.test('what one worker learns of a provider is told of all', async t => {
  const up = await provider(t, (_, response) => void response.writeHead(500).end())
  const running = await gateway(t, two(up.url, { model: 'attempts: 1', provider: 'health: {failures: 2, ejection: 60s}' }))
  const first = talk(running.url + CHAT, { body: BODY })
  t.equal((await first.head).statusCode, 502)
  await first.ended
  for (let i = 0; i < 3; i++) await ask(running)
  while (!/in 2 of 2 workers/.test((await running.get(`${running.ops}/readyz?verbose`)).text)) await sleep(50)
  t.match((await running.get(`${running.ops}/readyz?verbose`)).text, /^\[\+\] target up\/m: in 2 of 2 workers: 2 failures in a row/m)
  t.equal(await metric(running, 'model_gateway_upstream_up{provider="up"}'), 0)
})

t.test('limits.connections is shared out: beyond it a connection is closed at once, and there is room again when another ends', async t => {
  const up = await provider(t, chat())
  const running = await gateway(t, two(up.url, { more: 'limits: {connections: 4}' }))
  const { port } = new URL(running.url)
  const sockets: Socket[] = []
  const closed = new Set<Socket>()
  const open = async (): Promise<void> => {
    const socket = connect(Number(port), '127.0.0.1')
    socket.on('error', () => {})
    socket.once('close', () => closed.add(socket))
    sockets.push(socket)
    await sleep(30)
  }
  for (let i = 0; i < 8; i++) await open()
  while (closed.size < 4) await sleep(10)
  await sleep(200)
  t.equal(closed.size, 4)
  for (const socket of sockets) socket.destroy()
  while (closed.size < 8) await sleep(10)
  while ((await ask(running).catch(() => 0)) !== 200) await sleep(20)
  t.equal(await running.stop(), 0)
})

t.test('an address that is taken, and a ledger in memory', async t => {
  const taken = createServer()
  await new Promise<void>(resolve => taken.listen(0, '127.0.0.1', resolve))
  t.teardown(() => taken.close())
  const address = taken.address() as { port: number }
  const folder = t.testdir()
  const config = `workers: 2\npolicies: [rate]\nops: null\nledger: {path: ':memory:'}\nproviders: {sandbox: {kind: sandbox}}\nmodels: {sandbox/echo: {price: free}}\n`
  writeFileSync(join(folder, 'gateway.yaml'), `listen: 127.0.0.1:${address.port}\n${config}`)
  const { code, stderr } = await program(['serve', '-c', join(folder, 'gateway.yaml')])
  t.equal(code, 1)
  t.match(stderr, `127.0.0.1:${address.port} is taken by another program`)
  const running = await gateway(t, config.replace('ops: null\n', ''), { folder })
  t.equal(await ask(running, { ...BODY, model: 'sandbox/echo' }, {}), 200)
  t.equal(await running.stop(), 0)
})
