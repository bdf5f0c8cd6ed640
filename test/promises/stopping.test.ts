import { once } from 'node:events'
import { request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { talk } from '../support/client.js'
import { AUTH, gateway, inspect, KEY, metric, yaml } from '../support/gateway.js'
import { chat, json, type OpenStream, openStream, provider } from '../support/provider.js'
import { wallClock } from '../support/wall-clock.js'

/*
 * A stop and a reload, with requests under way.
 */

const CHAT = '/v1/chat/completions'
const BODY = { model: 'up/m', messages: [{ role: 'user', content: 'Hello' }] }
const STREAM = { ...BODY, stream: true }
const USAGE = { prompt_tokens: 77, completion_tokens: 33, total_tokens: 110 }

t.jobs = 2
t.test('SIGTERM: what is under way ends as it should, what comes is sent away, and the exit code is 0', async t => {
  let stream!: OpenStream
  const up = await provider(t, (seen, response) => {
    stream = openStream(seen, response)
    stream.say('Once ')
  })
  const running = await gateway(t, yaml(up.url, { more: 'drain_timeout: 10s' }))
  const talking = talk(running.url + CHAT, { body: STREAM })
  await talking.until('Once ')
  t.equal((await running.get(`${running.ops}/readyz`)).status, 200)
  const exit = running.stop()
  await running.line('stopping')
  const ready = await running.get(`${running.ops}/readyz`)
  t.equal(ready.status, 503)
  t.match(ready.text, /draining/)
  t.equal((await running.get(`${running.ops}/livez`)).status, 200)
  for (const answer of [await running.post(CHAT, BODY), await running.get('/v1/key')]) {
    const { status, headers, json } = answer
    t.match({ status, json }, { status: 503, json: { error: { code: 'draining', type: 'service_unavailable', param: null } } })
    t.equal(json.request_id, headers.get('x-request-id'))
    t.equal(headers.get('connection'), 'close')
    t.equal(headers.get('retry-after'), '1')
  }
  stream.say('upon a time')
  await talking.until('upon a time')
  stream.finish(USAGE)
  t.equal(await talking.ended, 'whole')
  t.match(talking.text(), /data: \[DONE\]\n\n$/)
  t.equal(await exit, 0)
  t.equal(up.seen.length, 1)
  t.match(await running.records(), [{ state: 'settled', ended_by: 'provider', input_tokens: 77, output_tokens: 33, cost_rial: 143n }])
})

t.test('SIGTERM: what is not over within drain_timeout is cut off and settled', async t => {
  const up = await provider(t, (seen, response) => {
    if (seen.body.stream === true) openStream(seen, response).say('Once ')
  })
  const running = await gateway(t, yaml(up.url, { more: 'drain_timeout: 500ms' }))
  const talking = talk(running.url + CHAT, { body: STREAM })
  await talking.until('Once ')
  const waiting = talk(running.url + CHAT, { body: BODY })
  while (up.seen.length < 2) await sleep(5)
  const sending = request(running.url + CHAT, {
    method: 'POST',
    agent: false,
    headers: { ...AUTH, 'content-type': 'application/json', 'content-length': 100 },
  })
  sending.on('error', () => {})
  sending.write('{"model"')
  await sleep(50)
  const started = performance.now()
  t.equal(await running.stop(), 0)
  const tookMs = performance.now() - started
  t.ok(tookMs >= 450 && tookMs < 20_000, `over after ${Math.round(tookMs)} ms`)
  t.equal(await talking.ended, 'cut')
  t.equal(await waiting.ended, 'cut')
  t.notMatch(talking.text(), /\[DONE\]/)
  await inspect(running.folder, async ledger => {
    t.same(await ledger.verify(), [])
    t.same(await ledger.open(), [])
    const records = await ledger.records({})
    t.same(
      records.map(({ state, ended_by }) => ({ state, ended_by })),
      [
        { state: 'partial', ended_by: 'drain' },
        { state: 'partial', ended_by: 'drain' },
      ],
    )
    const [streamed, waited] = records
    t.ok((streamed?.output_tokens ?? 0) > 0)
    t.equal(streamed?.cost_rial, BigInt((streamed?.input_tokens ?? 0) + 2 * (streamed?.output_tokens ?? 0)))
    t.equal(waited?.cost_rial, BigInt(waited?.input_tokens ?? -1))
  })
})

t.test('SIGTERM: an answer that its client is still reading arrives in full', async t => {
  const content = 'All work and no play. '.repeat(1_000_000)
  const up = await provider(t, (_, response) => {
    const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }]
    json(response, 200, { id: 'chatcmpl-1', object: 'chat.completion', choices, usage: USAGE })
  })
  const running = await gateway(t, yaml(up.url, { more: 'drain_timeout: 10s' }))
  const talking = talk(running.url + CHAT, { body: BODY, read: false })
  const head = await talking.head
  await sleep(200)
  const exit = running.stop()
  await running.line('stopping')
  await sleep(300)
  let bytes = 0
  head.on('data', (chunk: Buffer) => {
    bytes += chunk.length
  })
  t.equal(await talking.ended, 'whole', 'it was paid for')
  t.equal(bytes, Number(head.headers['content-length']))
  t.equal(await exit, 0)
  t.match(await running.records(), [{ state: 'settled', status: 200, cost_rial: 143n }])
})

t.test('a second signal ends it at once, and the next start recovers what was open', async t => {
  const up = await provider(t, (seen, response) => openStream(seen, response).say('Once '))
  const config = yaml(up.url, { more: 'drain_timeout: 60s' })
  const running = await gateway(t, config)
  const talking = talk(running.url + CHAT, { body: STREAM })
  await talking.until('Once ')
  const exit = running.stop()
  await running.line('stopping')
  const started = performance.now()
  running.process.kill('SIGTERM')
  t.equal(await exit, 143)
  t.ok(performance.now() - started < 30_000, 'of a minute that it would wait')
  t.equal(await talking.ended, 'cut')
  const next = await gateway(t, config, { folder: running.folder })
  const { request_id } = await next.line('a hold that the last run left open was released')
  t.equal(request_id, (await talking.head).headers['x-request-id'])
  t.match((await next.get('/v1/key')).json, { usage: { held_tokens_today: 0, spend_today_rial: 0 }, wallet: { held_rial: 0 } })
  await next.stop()
  t.match(await next.records(), [{ id: request_id, state: 'recovered', ended_by: 'recovery', cost_rial: 0n }])
})

const READY = 'model_gateway_config_last_reload_successful'

t.test('a reload: a new key works, a key that is gone does not, what is under way goes on, a bad file changes nothing', async t => {
  let stream!: OpenStream
  const up = await provider(t, chat())
  const before = yaml(up.url)
  const running = await gateway(t, before)
  const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` })
  up.script = (seen, response) => {
    stream = openStream(seen, response)
    stream.say('Once ')
  }
  const talking = talk(running.url + CHAT, { body: STREAM })
  await talking.until('Once ')
  up.script = chat()

  t.equal((await running.get('/v1/key', bearer('mgk_new'))).status, 401)
  await running.reload(before.replace(KEY, 'mgk_new'))
  t.equal((await running.post(CHAT, BODY, bearer('mgk_new'))).status, 200)
  t.equal((await running.post(CHAT, BODY)).status, 401)
  t.equal(await metric(running, READY), 1)

  stream.say('upon a time')
  stream.finish(USAGE)
  t.equal(await talking.ended, 'whole')
  t.match(talking.text(), /upon a time.*data: \[DONE\]\n\n$/s)

  await running.reload(before.replace('plan: p,', 'plan: q, plann: p,'))
  t.equal((await running.post(CHAT, BODY, bearer('mgk_new'))).status, 200, 'the last good config runs')
  t.equal(await metric(running, READY), 0)
  const ready = await running.get(`${running.ops}/readyz?verbose`)
  t.equal(ready.status, 200, 'it serves, and so it is ready')
  t.match(ready.text, /config.*plann/, 'but says what is wrong with the file')
  const problems = running.lines().filter(line => line.level === 'error' && line.message.startsWith('the config was not reloaded'))
  t.ok(problems.length >= 2, 'every problem is told')
  for (const { message } of problems) t.match(message, /gateway\.yaml:\d+:\d+: /)

  // Nobody sends a signal now: the file is watched.
  running.rewrite(before.replace(KEY, 'mgk_watched'))
  while ((await running.get('/v1/key', bearer('mgk_watched'))).status !== 200) await sleep(20)
  t.equal(await metric(running, READY), 1)
  t.notMatch((await running.get(`${running.ops}/readyz?verbose`)).text, /plann/)
  t.equal(running.process.exitCode, null)

  await running.reload(`ledger: {path: elsewhere.db}\n${before.replace(/ledger: .*\n/, '')}`)
  t.match(await running.line('a change of ledger takes a restart; the old value stays'), { level: 'warn' })
})

t.test('a ceiling that is raised takes effect at once, and what was counted stays', async t => {
  const up = await provider(t)
  const plan = (most: number) => yaml(up.url, { plan: `{requests_per_day: ${most}}` })
  const running = await gateway(t, plan(2), { env: wallClock(t, '2026-11-21T08:00:00Z').env })
  const statuses = async (count: number): Promise<number[]> => {
    const found: number[] = []
    for (let i = 0; i < count; i++) found.push((await running.post(CHAT, BODY)).status)
    return found
  }
  t.same(await statuses(3), [200, 200, 429])
  await running.reload(plan(3))
  t.same(await statuses(2), [200, 429])
  t.match((await running.get('/v1/key')).json, {
    limits: { requests_per_day: 3 },
    usage: { requests_today: 3 },
    remaining: { requests_today: 0 },
  })
  await running.reload(plan(1))
  t.same(await statuses(1), [429])
  t.match((await running.get('/v1/key')).json, {
    limits: { requests_per_day: 1 },
    usage: { requests_today: 3 },
    remaining: { requests_today: 0 },
  })
})

t.test('another zone or calendar takes a restart: a reload opens no fresh windows', async t => {
  const up = await provider(t)
  const before = yaml(up.url, { plan: '{requests_per_day: 1}', budget: '{monthly_rial: 1000}' })
  const running = await gateway(t, before, { env: wallClock(t, '2026-11-21T08:00:00Z').env })
  t.equal((await running.post(CHAT, BODY)).status, 200)
  const status = (await running.get('/v1/key')).json
  await running.reload(`${before}timezone: Asia/Dubai\nmonth: persian\n`)
  t.equal((await running.post(CHAT, BODY)).status, 429)
  t.match((await running.get('/v1/key')).json, { usage: status.usage, resets: { day: status.resets.day, month: status.resets.month } })
  for (const setting of ['timezone', 'month']) await running.line(`a change of ${setting} takes a restart; the old value stays`)
  t.match((await running.get(`${running.ops}/readyz?verbose`)).text, /takes a restart: timezone, month$/m)
})

/** From its second making on: stops the gateway, and is made once the stop has begun, or never. */
const STOPS = `let made = 0
export const options = { properties: { ever: { type: 'boolean' } } }
export default async ({ ever }, host) => {
  const number = ++made
  if (number > 1) {
    const begun = new Promise(resolve => process.once('SIGTERM', () => setImmediate(resolve)))
    process.kill(process.pid, 'SIGTERM')
    await (ever ? begun : new Promise(() => {}))
  }
  return { name: 'stops', close() { host.log('closed', { number, pid: process.pid }) } }
}
`
const stops = (url: string, ever: boolean, more = ''): string =>
  yaml(url, { more: `policies: [auth, rate, budget, hold, {use: ./stops.mjs, with: {ever: ${ever}}}]\n${more}` })

t.test('a stop in the midst of a reload: the reload comes to nothing, and all that was made is closed, once', async t => {
  const before = stops((await provider(t)).url, true)
  const running = await gateway(t, before, { folder: t.testdir({ 'stops.mjs': STOPS }) })
  const ended = once(running.process, 'close')
  running.rewrite(before.replace('accounts: {', 'accounts: {late: {opening_balance_rial: 5}, '))
  t.strictSame(await ended, [0, null])
  t.strictSame(
    running.lines().flatMap(({ message, fields }) => (message === 'closed' && fields.pid === running.process.pid ? [fields.number] : [])),
    [2, 1],
  )
  t.strictSame(
    running.lines().filter(line => line.message.startsWith('the config was') || line.level === 'error'),
    [],
  )
})

t.test('a stop waits for a reload that does not end no longer than for requests', async t => {
  const before = stops((await provider(t)).url, false, 'drain_timeout: 300ms')
  const running = await gateway(t, before, { folder: t.testdir({ 'stops.mjs': STOPS }) })
  const ended = once(running.process, 'close')
  running.process.kill('SIGHUP')
  t.strictSame(await ended, [0, null])
})
