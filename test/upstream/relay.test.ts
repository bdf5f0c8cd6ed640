import { EventEmitter, once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { GatewayError } from '../../src/errors.js'
import { endWithin, sendStreamHead } from '../../src/http/respond.js'
import type { Attempt } from '../../src/upstream/attempt.js'
import { Drains } from '../../src/upstream/drains.js'
import { type Relayed, type RelayFacts, StreamRelay } from '../../src/upstream/relay.js'
import { framed, telling } from '../support/answer-stream.js'
import { attempts } from '../support/attempts.js'
import { provider, type Script } from '../support/provider.js'
import { fakeTimers } from '../support/timers.js'

const START =
  '{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"acme/model-1","choices":[{"index":0,"delta":{"role":"assistant"}}]}'
const STOP = START.replace('{"role":"assistant"}', '{},"finish_reason":"stop"')
const LONG = START.replace('{"role":"assistant"}', `{"content":"${'x'.repeat(60_000)}"}`)

/** A client's side and a provider's side that only take notes. */
class FakeResponse extends EventEmitter {
  readonly written: string[] = []
  room = true
  destroyed = false
  write(text: string): boolean {
    this.written.push(text)
    return this.room
  }
  destroy(): void {
    this.destroyed = true
    this.emit('close')
  }
}

function relaying(watch: RelayFacts['watch'] = null, first = framed([START], false)) {
  const response = new FakeResponse()
  const calls: string[] = []
  const { stream } = telling({ attached: false })
  stream.push(Buffer.from(first))
  let begun = 0
  const attempt = {
    pause: () => calls.push('pause'),
    resume: () => calls.push('resume'),
    drain: () => calls.push('drain'),
    abort: (why: GatewayError) => {
      calls.push(`abort ${why.code}`)
      stream.fail(why)
    },
    interrupted: (error: unknown) => (error instanceof GatewayError ? error : new GatewayError('upstream_error', 'broke')),
  }
  const relay = new StreamRelay({
    response: response as unknown as ServerResponse,
    attempt: attempt as unknown as Attempt,
    stream,
    writeTimeoutMs: 60_000,
    watch,
    begun: () => begun++,
  })
  const comment = (text: string) => stream.push(Buffer.from(`: ${text}\n\n`))
  const push = (...data: string[]) => stream.push(Buffer.from(framed(data, false)))
  return { response, calls, stream, relay, push, comment, begun: () => begun }
}

const FIRST = framed([START], false)

/** What came is sent at the end of the turn. */
const turn = (): Promise<void> => new Promise(resolve => process.nextTick(resolve))

t.test('each event is written as it comes, and the last bytes are left to the caller', async t => {
  const { response, relay, push, stream, begun } = relaying()
  t.equal(begun(), 1)
  await turn()
  t.strictSame(response.written, [FIRST], 'what was there already comes first')
  push(LONG)
  push(LONG)
  await turn()
  t.strictSame(response.written, [FIRST, framed([LONG, LONG], false)], 'what comes in one turn is one piece')
  push(STOP, '[DONE]')
  stream.end()
  t.strictSame(await relay.ended, { error: null })
  t.strictSame(response.written, [FIRST, framed([LONG, LONG], false), framed([STOP], false)])
  t.equal(begun(), 1)
})

t.test('a comment is passed on at once, and is no beginning', async t => {
  const { response, push, comment, begun, relay } = relaying(null, '')
  comment('PROCESSING')
  await turn()
  t.strictSame(response.written, [': ping\n\n', ': PROCESSING\n\n'])
  t.equal(begun(), 0)
  push(START)
  t.equal(begun(), 1)
  push(STOP, '[DONE]')
  t.strictSame(await relay.ended, { error: null })
})

t.test('a silent stream is kept alive every 15 s, and a lively one is left alone', async t => {
  const timers = fakeTimers(t)
  const { response, relay, push } = relaying()
  await turn()
  response.written.length = 0
  timers.advance(14_999)
  t.strictSame(response.written, [])
  timers.advance(1)
  t.strictSame(response.written, [': ping\n\n'])
  timers.advance(30_000)
  t.strictSame(response.written, [': ping\n\n', ': ping\n\n', ': ping\n\n'])
  timers.advance(14_000)
  push(LONG)
  await turn()
  timers.advance(14_999)
  t.equal(response.written.length, 4, 'an event counts as life')
  timers.advance(1)
  t.equal(response.written.length, 5)
  push(STOP, '[DONE]')
  await relay.ended
  timers.advance(100_000)
  t.equal(response.written.length, 6, 'nothing follows the end')
  t.equal(timers.set, 0)
})

t.test('a stream that begins with silence sends a comment, and its head with it', async t => {
  const timers = fakeTimers(t)
  const response = new FakeResponse()
  const { stream } = telling({ attached: false })
  const facts = {
    response: response as unknown as ServerResponse,
    attempt: {} as Attempt,
    stream,
    writeTimeoutMs: 1,
    watch: null,
    begun: () => {},
  }
  const relay = new StreamRelay(facts)
  t.strictSame(response.written, [': ping\n\n'])
  timers.advance(15_000)
  t.equal(response.written.length, 2)
  stream.push(Buffer.from(framed([START, STOP])))
  t.strictSame(await relay.ended, { error: null })
})

t.test('a client that is slow stops the provider, until it has read; but not for ever', async t => {
  const timers = fakeTimers(t)
  const { response, calls, push, relay, stream } = relaying()
  await turn()
  response.room = false
  push(LONG)
  await turn()
  push(LONG)
  await turn()
  t.strictSame(calls, ['pause'], 'once')
  timers.advance(59_999)
  t.equal(response.written.length, 3, 'no ping is put on the heap')
  response.emit('drain')
  t.strictSame(calls, ['pause', 'resume'])
  timers.advance(1)
  t.equal(response.destroyed, false, 'it was in time')
  push(LONG)
  await turn()
  timers.advance(60_000)
  t.equal(response.destroyed, true)
  stream.fail(new GatewayError('client_closed', 'gone'))
  t.match(await relay.ended, { error: { code: 'client_closed' } })
  t.equal(timers.set, 0, 'no timer is left behind')
})

t.test('the end of the provider ends the wait for the client, too: the time for the rest is that of the end', async t => {
  const timers = fakeTimers(t)
  const { response, calls, push, relay } = relaying()
  response.room = false
  push(LONG)
  await turn()
  push(STOP, '[DONE]')
  await relay.ended
  t.strictSame(calls, ['pause'])
  t.equal(timers.set, 0)
  t.equal(response.listenerCount('drain'), 0)
})

t.test('a client that has left hears nothing more, and holds up nobody', async t => {
  const { response, calls, push, relay } = relaying()
  await turn()
  response.room = false
  push(LONG)
  await turn()
  push(LONG)
  relay.deafen()
  t.strictSame(calls, ['pause', 'drain'])
  push(LONG)
  push(STOP, '[DONE]')
  t.strictSame(await relay.ended, { error: null }, 'the provider is read to its end')
  t.equal(response.written.length, 2)
  t.equal(response.listenerCount('drain'), 0)
})

t.test('a policy that throws cuts the answer off: nothing more is written, and the provider is left', async t => {
  const seen: unknown[] = []
  const fault = new Error('a word that must not be')
  const event = (chunk: object): void => {
    seen.push(chunk)
    if (seen.length === 3) throw fault
  }
  const { calls, push, relay, response } = relaying({ head: () => seen.push('head'), event })
  push(LONG, LONG)
  const { error } = (await relay.ended) as Relayed
  t.match(error, { code: 'internal_error', message: 'A policy cut the answer off.', cause: fault })
  t.strictSame(calls, ['abort internal_error'])
  t.strictSame(seen, ['head', JSON.parse(START), JSON.parse(LONG)], 'it is not asked again')
  t.strictSame(response.written, [FIRST])
})

t.test("a policy's own refusal is what the client is told, at the head too", async t => {
  const refusal = new GatewayError('not_today', 'No.', { status: 403 })
  const { calls, relay, response } = relaying({
    head: () => {
      throw refusal
    },
    event: () => t.fail('nothing is asked behind it'),
  })
  t.equal((await relay.ended).error, refusal)
  t.strictSame([calls, response.written], [['abort not_today'], []])
})

t.test('what was ready before the relay is told and observed first', async t => {
  const seen: unknown[] = []
  const response = new FakeResponse()
  const { stream } = telling({ attached: false })
  stream.push(Buffer.from(framed([START, STOP])))
  const relay = new StreamRelay({
    response: response as unknown as ServerResponse,
    attempt: {} as Attempt,
    stream,
    writeTimeoutMs: 1,
    watch: { head: () => seen.push('head'), event: chunk => seen.push(chunk) },
    begun: () => {},
  })
  t.strictSame(await relay.ended, { error: null })
  t.strictSame(response.written, [framed([START, STOP], false)])
  t.strictSame(seen, ['head', JSON.parse(START), JSON.parse(STOP)])
})

/** A gateway of one route and no policies between a client and a provider. */
async function between(t: Test, script: Script, writeTimeoutMs: number) {
  const far = await provider(t, script)
  const attempt = attempts(t, far.url, { stream: true, timeout: { connect: 60_000, first_byte: 60_000, idle: 60_000, total: 60_000 } })
  const server = createServer(async (_request, response) => {
    const running = attempt()
    const answered = await running.answered
    if (answered.kind !== 'stream') throw new Error('not streamed')
    sendStreamHead(response, 'req_1', {})
    const relay = new StreamRelay({ response, attempt: running, stream: answered.stream, writeTimeoutMs, watch: null, begun: () => {} })
    response.on('close', () => {
      if (response.writableFinished) return
      relay.deafen()
      running.abort(new GatewayError('client_closed', 'The client left.'))
    })
    const { error } = await relay.ended
    endWithin(response, error === null ? 'data: [DONE]\n\n' : `data: ${error.code}\n\n`, writeTimeoutMs)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close() && server.closeAllConnections())
  const { port } = server.address() as AddressInfo
  const client = request({ port, method: 'POST', agent: false })
  client.on('error', () => {})
  client.end()
  const [answer] = (await once(client, 'response')) as [IncomingMessage]
  answer.on('error', () => {})
  return { far, answer }
}

/** Sends 200 MB as fast as they are taken. */
function flood(sent: { bytes: number }): Script {
  return async (_seen, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(framed([START], false))
    const piece = framed([LONG], false)
    let wake = () => {}
    response.on('drain', () => wake()).on('close', () => wake())
    while (sent.bytes < 200_000_000 && !response.destroyed) {
      sent.bytes += piece.length
      if (!response.write(piece)) await new Promise<void>(resolve => (wake = resolve))
    }
    response.end(framed([STOP]))
  }
}

t.test('a client that does not read stops the provider, in little memory; when it reads, all of it arrives', async t => {
  const sent = { bytes: 0 }
  const before = process.memoryUsage().rss
  const { answer } = await between(t, flood(sent), 30_000)
  // What the sockets hold fills up first, and takes its time where the machine is busy.
  let stopped = -1
  for (let round = 0; round < 50 && stopped !== sent.bytes; round++) {
    stopped = sent.bytes
    await new Promise(resolve => setTimeout(resolve, 400))
  }
  t.equal(sent.bytes, stopped, 'the provider waits')
  t.ok(stopped < 30_000_000, `${stopped} bytes on their way`)
  t.ok(process.memoryUsage().rss - before < 100_000_000)
  let [size, end] = [0, '']
  answer.on('data', (chunk: Buffer) => {
    size += chunk.length
    end = chunk.toString().slice(-20)
  })
  await once(answer, 'end')
  t.ok(size > 200_000_000)
  t.match(end, /data: \[DONE\]\n\n$/)
})

t.test('a client that never reads is cut off after the time for writing, and the provider with it', async t => {
  const sent = { bytes: 0 }
  const started = performance.now()
  const { far, answer } = await between(t, flood(sent), 400)
  await far.seen[0]?.closed
  const ms = performance.now() - started
  t.ok(ms > 350 && ms < 30_000, `${ms} ms`)
  await new Promise(resolve => answer.resume().once('close', resolve))
  t.notOk(answer.complete, 'it can tell that this is not the whole')
})

t.test('at most 64 answers are read for their usage alone', async t => {
  const drains = new Drains()
  const ends: (() => void)[] = []
  const wait = () => new Promise<void>(resolve => ends.push(resolve))
  for (let i = 0; i < 64; i++) t.ok(drains.take(wait()))
  t.notOk(drains.take(wait()))
  ends[0]?.()
  await new Promise(resolve => setImmediate(resolve))
  t.ok(drains.take(Promise.reject(new Error('broke'))), 'there is room again when one is over')
  await new Promise(resolve => setImmediate(resolve))
  t.ok(drains.take(wait()), 'however it ended')
  t.notOk(drains.take(wait()))
})
