import { request, type ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { UsageRecord } from '../../src/ledger/ledger.js'
import { tcp } from '../support/bad-server.js'
import { type Talk, talk } from '../support/client.js'
import { AUTH, gateway, inspect, metric, type RunningGateway, yaml } from '../support/gateway.js'
import { json, type OpenStream, openStream, provider, type ScriptedProvider, type Seen } from '../support/provider.js'

/*
 * A client that leaves: that is noticed within 50 ms whatever is under way for it, its provider is told, what was received is charged, and
 * nothing stays held. A client that stops reading is made to leave.
 */

const CHAT = '/v1/chat/completions'
const WORDS = ['Once ', 'upon ', 'a ', 'time']
/** A machine that is busy adds to most of them. */
const TRIES = { least: 3, most: 30 }
const SOON_MS = 50
const USAGE = { prompt_tokens: 77, completion_tokens: 33, total_tokens: 110 }
const CHOICES = [{ index: 0, message: { role: 'assistant', content: 'Once upon a time' }, finish_reason: 'stop' }]
const body = (stream: boolean) => ({ model: 'up/m', stream, max_tokens: 1000, messages: [{ role: 'user', content: 'Tell me a story' }] })

/** Which request of the provider is this? The next one, once it has come. */
async function arrived(up: ScriptedProvider, count: number): Promise<Seen> {
  while (up.seen.length < count) await sleep(2)
  return up.seen[count - 1] as Seen
}

/** Nothing is open any more, and what has ended is in the records. */
async function settled(t: Test, running: RunningGateway): Promise<UsageRecord[]> {
  for (let i = 0; (await metric(running, 'model_gateway_holds_open')) !== 0 && i < 2000; i++) await sleep(10)
  const { usage, wallet } = (await running.get('/v1/key')).json
  t.match({ usage, wallet }, { usage: { held_tokens_today: 0, held_spend_today_rial: 0 }, wallet: { held_rial: 0 } })
  t.equal(await running.stop(), 0)
  return inspect(running.folder, async ledger => {
    t.same(await ledger.verify(), [])
    t.same(await ledger.open(), [])
    return ledger.records({})
  })
}

/** The moment at which the request was over for the gateway, its hold ended: by its line of the log. On the clock of `Date.now()`. */
async function overAt(running: RunningGateway, id: string): Promise<number> {
  for (;;) {
    const line = running.lines().find(one => one.client_request_id === id)
    if (line !== undefined) return Date.parse(line.time) + line.duration_ms
    await sleep(5)
  }
}

/** What each of several tries took, in milliseconds: until one was soon, since all the rest is what a busy machine adds. */
async function tried(once: (i: number) => Promise<number>): Promise<number[]> {
  const times: number[] = []
  while (times.length < TRIES.least || (Math.min(...times) >= SOON_MS && times.length < TRIES.most)) times.push(await once(times.length))
  return times
}
const soon = (times: readonly number[]): boolean => Math.min(...times) < SOON_MS

t.jobs = 3
t.test('left in any phase before the provider has its request: noticed within 50 ms, and nothing is charged or sent', async t => {
  const held: ServerResponse[] = []
  const up = await provider(t, (_seen, response) => void held.push(response))
  const limited = await provider(t, (_seen, response) => json(response, 429, { error: { message: 'No.' } }, { 'retry-after': '4' }))
  const heard: Buffer[] = []
  // Takes connections, and never says hello: nothing is sent before it does.
  const silent = await tcp(t, socket => socket.on('data', chunk => heard.push(chunk)))
  const config = `${yaml(up.url, { provider: 'max_connections: 1', model: 'attempts: 3' })}
`
  const more = `  silent: {kind: openai, base_url: "https://127.0.0.1:${silent}/v1", api_key: sk-upstream-secret, timeout: {connect: 20s}}
  limited: {kind: openai, base_url: "${limited.url}", health: off}
models:
  silent/m: {price: {input: 1000000, output: 2000000}, max_output_tokens: 4096}
  limited/m: {price: {input: 1000000, output: 2000000}, max_output_tokens: 4096}`
  const running = await gateway(t, config.replace('models:', more))
  void talk(running.url + CHAT, { body: body(false) })
  await arrived(up, 1)
  const count = async (name: string) => (await metric(running, `model_gateway_${name}`)) ?? 0
  /** Each: the model that is asked, and what shows that the phase has been reached. */
  const phases: readonly [phase: string, model: string, reached: (before: { heard: number; limited: number }) => boolean][] = [
    ['in the queue', 'up/m', () => true],
    ['while it is connected', 'silent/m', before => heard.length > before.heard],
    ['in the pause between two tries', 'limited/m', before => limited.seen.length > before.limited],
  ]
  let voided = 0
  for (const [phase, model, reached] of phases) {
    const times = await tried(async i => {
      const before = { heard: heard.length, limited: limited.seen.length }
      const id = `${model}-${i}`
      const talking = talk(running.url + CHAT, { body: { ...body(i % 2 === 0), model }, headers: { ...AUTH, 'x-request-id': id } })
      while ((await count('holds_open')) < 2 || !reached(before)) await sleep(5)
      await sleep(20)
      const left = Date.now()
      talking.abort()
      return Math.round((await overAt(running, id)) - left)
    })
    voided += times.length
    t.ok(soon(times), `${phase}: over after ${times.join(', ')} ms`)
    t.comment(`left ${phase}: its hold had ended after ${times.join(', ')} ms`)
  }
  // One more, whose body has not come whole: it was never held.
  const half = request(running.url + CHAT, {
    method: 'POST',
    agent: false,
    headers: { ...AUTH, 'x-request-id': 'half', 'content-length': 100 },
  })
  half.on('error', () => {})
  half.write('{"model"')
  while ((await count('requests_in_flight{surface="chat"}')) < 2) await sleep(5)
  const left = Date.now()
  half.destroy()
  const took = (await overAt(running, 'half')) - left
  t.ok(took < 20_000, `while it is sent: over after ${took} ms`)

  json(held[0] as ServerResponse, 200, { id: 'chatcmpl-1', object: 'chat.completion', choices: CHOICES, usage: USAGE })
  const records = await settled(t, running)
  t.equal(up.seen.length, 1, 'who waited in line was never sent')
  const [first, ...rest] = records
  t.match(first, { state: 'settled' })
  t.equal(rest.length, voided)
  for (const { state, ended_by, status, code, cost_rial } of rest)
    t.same(
      { state, ended_by, status, code, cost_rial },
      { state: 'voided', ended_by: 'client', status: 499, code: 'client_closed', cost_rial: 0n },
    )
})

t.test('left while waiting: the provider’s connection is closed within 50 ms, and the input is charged', async t => {
  const up = await provider(t, () => {})
  const running = await gateway(t, yaml(up.url))
  const times = await tried(async i => {
    const talking = talk(running.url + CHAT, { body: body(i % 2 === 0) })
    const seen = await arrived(up, i + 1)
    await sleep(20)
    const left = talking.abort()
    await seen.closed
    return performance.now() - left
  })
  t.ok(soon(times), `closed after ${times.map(Math.round).join(', ')} ms`)
  const records = await settled(t, running)
  t.equal(records.length, times.length)
  for (const record of records) {
    const { state, ended_by, status, usage_source, output_tokens, input_tokens, cost_rial, code } = record
    t.same(
      { state, ended_by, status, usage_source, output_tokens, code },
      {
        state: 'partial',
        ended_by: 'client',
        status: 499,
        usage_source: 'estimate',
        output_tokens: 0,
        code: 'client_closed',
      },
    )
    t.ok((input_tokens ?? 0) > 0)
    t.equal(cost_rial, BigInt(input_tokens ?? 0))
  }
})

t.test('left while streaming: closed within 50 ms, and charged for what was received', async t => {
  const up = await provider(t, (seen, response) => {
    const stream = openStream(seen, response)
    for (const word of WORDS) stream.say(word)
  })
  const running = await gateway(t, yaml(up.url))
  const times = await tried(async i => {
    const talking = talk(running.url + CHAT, { body: body(true) })
    const seen = await arrived(up, i + 1)
    await talking.until('"time"')
    const left = talking.abort()
    await seen.closed
    return performance.now() - left
  })
  t.ok(soon(times), `closed after ${times.map(Math.round).join(', ')} ms`)
  const records = await settled(t, running)
  t.equal(records.length, times.length)
  for (const { state, ended_by, status, usage_source, output_tokens, input_tokens, cost_rial } of records) {
    t.same({ state, ended_by, status, usage_source }, { state: 'partial', ended_by: 'client', status: 499, usage_source: 'counted' })
    const received = output_tokens ?? 0
    t.ok(received >= WORDS.length && received <= WORDS.join('').length, `${received} tokens for «${WORDS.join('')}»`)
    t.equal(cost_rial, BigInt((input_tokens ?? 0) + 2 * received))
  }
})

t.test('the bill of a stream that was left is that of one which ended where it was left', async t => {
  const story = 'There was a house on a hill, and nobody had ever seen who lived in it. '.repeat(20).split(/(?<= )/)
  let said = 0
  // No usage is reported: both are counted from what came.
  const up = await provider(t, (seen, response) => {
    const stream = openStream(seen, response)
    for (const word of story.slice(0, said)) stream.say(word)
    if (seen.body.user === 'stays') stream.finish()
  })
  const running = await gateway(t, yaml(up.url))
  const told = ({ text }: Talk) => [...text().matchAll(/"content":"([^"]*)"/g)].map(match => match[1]).join('')
  const words = [1, 7, 40, 200]
  for (said of words) {
    const ask = (user: string) =>
      talk(running.url + CHAT, { body: { ...body(true), user }, headers: { ...AUTH, 'x-request-id': `${user}-${said}` } })
    const leaving = ask('leaves')
    while (told(leaving) !== story.slice(0, said).join('')) await sleep(5)
    leaving.abort()
    await overAt(running, `leaves-${said}`)
    t.equal(await ask('stays').ended, 'whole')
  }
  const records = await settled(t, running)
  const bill = (id: string) => {
    const { input_tokens, output_tokens, cost_rial, usage_source } = records.find(record => record.client_request_id === id) as UsageRecord
    return { input_tokens, output_tokens, cost_rial, usage_source }
  }
  for (const most of words) t.same(bill(`leaves-${most}`), bill(`stays-${most}`), `${most} words`)
  const tokens = words.map(most => bill(`leaves-${most}`).output_tokens ?? 0)
  t.ok(
    tokens.every((count, i) => count > (tokens[i - 1] ?? 0)),
    `${tokens.join(', ')} tokens for ${words.join(', ')} words`,
  )
})

t.test('on_disconnect: drain reads the answer to its end, and charges what the provider reports', async t => {
  let go!: () => void
  const up = await provider(t, (seen, response) => {
    let stream: OpenStream | undefined
    if (seen.body.stream === true) {
      stream = openStream(seen, response)
      stream.say('Once ')
    }
    go = () => {
      stream?.say('upon a time')
      stream?.finish(USAGE)
      const choices = [{ index: 0, message: { role: 'assistant', content: 'Once upon a time' }, finish_reason: 'stop' }]
      if (stream === undefined) json(response, 200, { id: 'chatcmpl-1', object: 'chat.completion', choices, usage: USAGE })
    }
  })
  const running = await gateway(t, yaml(up.url, { provider: 'on_disconnect: drain' }))
  for (const [i, stream] of [true, false].entries()) {
    const talking = talk(running.url + CHAT, { body: body(stream) })
    const seen = await arrived(up, i + 1)
    if (stream) await talking.until('Once ')
    let cut = false
    void seen.closed.then(() => {
      cut = true
    })
    talking.abort()
    await sleep(150)
    t.notOk(cut, 'the provider may go on')
    go()
  }
  const records = await settled(t, running)
  t.equal(records.length, 2)
  for (const record of records) {
    t.match(record, { state: 'settled', ended_by: 'client', status: 499, usage_source: 'provider', input_tokens: 77, output_tokens: 33 })
    t.equal(record.cost_rial, 77n + 2n * 33n)
  }
})

const STALLED = 24

t.test('clients that stop reading cost little memory each, and are all cut', async t => {
  // More than what sockets hold.
  let bytes = 10
  const up = await provider(t, (seen, response) => {
    if (seen.body.stream === true) return flood(response, openStream(seen, response), () => {})
    const choices = [{ ...CHOICES[0], message: { role: 'assistant', content: 'x'.repeat(bytes) } }]
    json(response, 200, { id: 'chatcmpl-1', object: 'chat.completion', choices, usage: USAGE })
  })
  const running = await gateway(t, yaml(up.url, { more: 'timeout: {write: 2s}' }))
  t.equal((await running.post(CHAT, body(false))).status, 200)
  bytes = 32 * 1024 * 1024
  const rss = async () => ((await metric(running, 'process_resident_memory_bytes')) ?? 0) / 1024 / 1024
  const before = await rss()
  const streams = Array.from({ length: STALLED }, () => talk(running.url + CHAT, { body: body(true), read: false }))
  await Promise.all(streams.map(({ head }) => head))
  let most = 0
  for (let i = 0; i < 10; i++) {
    most = Math.max(most, (await rss()) - before)
    await sleep(150)
  }
  t.ok(most < 64, `${STALLED} floods that nobody reads take ${Math.round(most)} MB`)
  t.comment(`${STALLED} clients that do not read: ${Math.round(most)} MB more`)
  // A whole answer waits for its client just as long.
  const whole = talk(running.url + CHAT, { body: body(false), read: false })
  await whole.head
  while ((await metric(running, 'model_gateway_requests_in_flight{surface="chat"}')) !== 0) await sleep(20)
  await sleep(4000)
  for (const talking of [...streams, whole]) {
    ;(await talking.head).resume()
    t.equal(await talking.ended, 'cut')
  }
  const records = await settled(t, running)
  t.equal(records.filter(({ state, status }) => state === 'partial' && status === 499).length, STALLED)
  t.equal(records.filter(({ state }) => state === 'settled').length, 2, 'a whole answer is paid for before it is sent')
})

const FLOOD_BYTES = 256 * 1024 * 1024

/** Writes chunks as fast as they are taken, up to the bytes above. */
function flood(response: ServerResponse, stream: OpenStream, count: (bytes: number) => void): void {
  const piece = 'x'.repeat(16_384)
  let left = FLOOD_BYTES
  const more = (): void => {
    while (!response.destroyed && left > 0) {
      left -= piece.length
      stream.say(piece)
      count(piece.length)
      if (response.writableNeedDrain) {
        response.once('drain', more)
        return
      }
    }
  }
  more()
}

t.test('a client that stops reading holds the provider back, and is cut after timeout.write', async t => {
  let written = 0
  const up = await provider(t, (seen, response) => {
    flood(response, openStream(seen, response), bytes => {
      written += bytes
    })
  })
  const running = await gateway(t, yaml(up.url, { more: 'timeout: {write: 3s}' }))
  const talking: Talk = talk(running.url + CHAT, { body: body(true), read: false })
  const started = performance.now()
  await talking.head
  const seen = await arrived(up, 1)
  await seen.closed
  t.ok(written < 48 * 1024 * 1024, `of ${FLOOD_BYTES} bytes ${written} were on their way: what sockets hold`)
  const tookMs = performance.now() - started
  t.ok(tookMs >= 2900 && tookMs < 30_000, `cut after ${Math.round(tookMs)} ms`)
  t.match(await settled(t, running), [{ state: 'partial', ended_by: 'client', status: 499 }])
  const head = await talking.head
  head.resume()
  t.equal(await talking.ended, 'cut')
})
