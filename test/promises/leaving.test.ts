import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { UsageRecord } from '../../src/ledger/ledger.js'
import { type Talk, talk } from '../support/client.js'
import { gateway, inspect, metric, type RunningGateway, yaml } from '../support/gateway.js'
import { json, type OpenStream, openStream, provider, type ScriptedProvider, type Seen } from '../support/provider.js'

/*
 * A client that leaves: its provider is told within 50 ms, what was received is charged, and nothing stays held. A client that stops reading is
 * made to leave.
 */

const CHAT = '/v1/chat/completions'
const WORDS = ['Once ', 'upon ', 'a ', 'time']
const TRIES = 5
const body = (stream: boolean) => ({ model: 'up/m', stream, max_tokens: 1000, messages: [{ role: 'user', content: 'Tell me a story' }] })

/** Which request of the provider is this? The next one, once it has come. */
async function arrived(up: ScriptedProvider, count: number): Promise<Seen> {
  while (up.seen.length < count) await sleep(2)
  return up.seen[count - 1] as Seen
}

/** Nothing is open any more, and what has ended is in the records. */
async function settled(t: Test, running: RunningGateway): Promise<UsageRecord[]> {
  for (let i = 0; (await metric(running, 'model_gateway_holds_open')) !== 0 && i < 200; i++) await sleep(10)
  const { usage, wallet } = (await running.get('/v1/key')).json
  t.match({ usage, wallet }, { usage: { held_tokens_today: 0, held_spend_today_rial: 0 }, wallet: { held_rial: 0 } })
  t.equal(await running.stop(), 0)
  return inspect(running.folder, async ledger => {
    t.same(await ledger.verify(), [])
    t.same(await ledger.open(), [])
    return ledger.records({})
  })
}

const median = (times: readonly number[]): number => [...times].sort((a, b) => a - b)[times.length >> 1] as number

t.test('left while waiting: the provider’s connection is closed within 50 ms, and the input is charged', async t => {
  const up = await provider(t, () => {})
  const running = await gateway(t, yaml(up.url))
  const times: number[] = []
  for (let i = 0; i < TRIES; i++) {
    const talking = talk(running.url + CHAT, { body: body(i % 2 === 0) })
    const seen = await arrived(up, i + 1)
    await sleep(20)
    const left = talking.abort()
    await seen.closed
    times.push(performance.now() - left)
  }
  t.ok(median(times) < 50, `closed after ${times.map(Math.round).join(', ')} ms`)
  const records = await settled(t, running)
  t.equal(records.length, TRIES)
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
  const times: number[] = []
  for (let i = 0; i < TRIES; i++) {
    const talking = talk(running.url + CHAT, { body: body(true) })
    const seen = await arrived(up, i + 1)
    await talking.until('"time"')
    const left = talking.abort()
    await seen.closed
    times.push(performance.now() - left)
  }
  t.ok(median(times) < 50, `closed after ${times.map(Math.round).join(', ')} ms`)
  const records = await settled(t, running)
  t.equal(records.length, TRIES)
  for (const { state, ended_by, status, usage_source, output_tokens, input_tokens, cost_rial } of records) {
    t.same({ state, ended_by, status, usage_source }, { state: 'partial', ended_by: 'client', status: 499, usage_source: 'counted' })
    const received = output_tokens ?? 0
    t.ok(received >= WORDS.length && received <= WORDS.join('').length, `${received} tokens for «${WORDS.join('')}»`)
    t.equal(cost_rial, BigInt((input_tokens ?? 0) + 2 * received))
  }
})

const USAGE = { prompt_tokens: 77, completion_tokens: 33, total_tokens: 110 }
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
  // Sockets fill first, which takes a busy machine a while; then the count stands still.
  let then = -1
  for (const until = started + 2500; then !== written && performance.now() < until; await sleep(200)) then = written
  t.equal(written, then, 'the provider waits')
  t.ok(written < 48 * 1024 * 1024, `${written} bytes are on their way: what sockets hold`)
  await seen.closed
  const tookMs = performance.now() - started
  t.ok(tookMs >= 2900 && tookMs < 10_000, `cut after ${Math.round(tookMs)} ms`)
  t.match(await settled(t, running), [{ state: 'partial', ended_by: 'client', status: 499 }])
  const head = await talking.head
  head.resume()
  t.equal(await talking.ended, 'cut')
})
