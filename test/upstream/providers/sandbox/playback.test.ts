import t from 'tap'
import { asked, Heard, opened, request, says } from './driving.js'

const later = (ms = 0) => new Promise(resolve => setTimeout(resolve, ms))

t.test('nothing comes within send, and a short answer in the same turn of the event loop', async t => {
  const heard = new Heard()
  const delivery = opened().send(request('chat', { ...says('Hi'), stream: true }), heard)
  t.ok(delivery.sent)
  t.same(heard.calls, [])
  await Promise.resolve()
  t.same(heard.calls, ['head', ...Array.from({ length: 6 }, () => 'data'), 'end'])
})

t.test('a long answer lets others have their turn', async t => {
  const heard = new Heard()
  opened().send(request('chat', { ...says('Hi'), stream: true }, { tokens: 5000 }), heard)
  let turns = 0
  const turn = () => {
    turns++
    if (!heard.calls.includes('end')) setImmediate(turn)
  }
  setImmediate(turn)
  await heard.over
  t.ok(turns > 20, `${turns} turns`)
  t.equal(heard.chunks.length, 5003)
})

t.test('nothing comes while paused', async t => {
  const heard = new Heard()
  const delivery = opened().send(request('chat', { ...says('one two'), stream: true }), heard)
  delivery.pause()
  await later(5)
  t.same(heard.calls, [], 'not even the head')
  delivery.resume()
  t.same(heard.calls, [], 'nor within resume')
  heard.onData = () => delivery.pause()
  for (let given = 1; given <= 7; given++) {
    await later()
    t.equal(heard.chunks.length, given, 'one piece, then paused again')
    delivery.resume()
    delivery.resume()
  }
  await heard.over
  t.equal(heard.calls.at(-1), 'end')
})

t.test('a pause outlasts a pace', async t => {
  const heard = new Heard()
  const delivery = opened().send(request('chat', { ...says('one two'), stream: true }, { first_byte: 2, pace: 2 }), heard)
  delivery.pause()
  await later(20)
  t.same(heard.calls, [])
  delivery.resume()
  await later()
  const before = heard.calls.length
  delivery.pause()
  await later(20)
  t.equal(heard.calls.length, before)
  delivery.resume()
  await heard.over
  t.equal(heard.chunks.length, 7)
})

t.test('nothing comes after an abort', async t => {
  for (const options of [{}, { first_byte: 3 }, { pace: 3 }, { hang: true }, { refuse: true }]) {
    const heard = new Heard()
    const delivery = opened().send(request('chat', { ...says('one two'), stream: true }, options), heard)
    delivery.abort()
    delivery.abort()
    delivery.resume()
    await later(10)
    t.same(heard.calls, [], JSON.stringify(options))
  }
  const heard = new Heard()
  const delivery = opened().send(request('chat', { ...says('one two'), stream: true }), heard)
  heard.onData = () => delivery.abort()
  await later(5)
  t.same(heard.calls, ['head', 'data'], 'from within a call')
})

t.test('keeps its first silence and its pace', async t => {
  const heard = new Heard()
  const began = performance.now()
  let first = 0
  heard.onData = () => {
    first ||= performance.now()
  }
  opened().send(request('chat', { ...says('one two'), stream: true }, { first_byte: 30, pace: 20 }), heard)
  await heard.over
  // A timer of Node may fire up to a millisecond early.
  t.ok(first - began >= 30 - 1)
  t.ok(performance.now() - began >= 30 + 3 * 20 - 4, 'four pieces have three silences between them')
  t.equal(heard.chunks.length, 7)

  const again = performance.now()
  await asked('chat', says('one two'), { first_byte: 10, pace: 10 })
  t.ok(performance.now() - again >= 10 + 3 * 10 - 1, 'an answer that is no stream comes after all its pieces')
})

t.test('a silence that is too long is a timeout', async t => {
  const stream = { ...says('one two'), stream: true }
  const table = [
    ['first_byte', { first_byte: 5 }, { hang: true }, []],
    ['first_byte', { first_byte: 5 }, { first_byte: 60_000 }, []],
    ['idle', { idle: 5 }, { pace: 60_000 }, ['head', 'data', 'data']],
    ['total', { total: 12 }, { pace: 5 }, ['head', 'data', 'data', 'data', 'data']],
    ['total', { total: 5 }, { hang: true }, []],
  ] as const
  for (const [name, timeout, options, calls] of table) {
    const heard = await asked('chat', stream, options, opened(timeout))
    t.same(heard.calls, [...calls, 'failed'])
    t.match(heard.failure, { kind: 'timeout', sent: true, message: new RegExp(`^${name}: `) })
  }
})

t.test('close waits for the answers under way, and takes no more', async t => {
  const transport = opened()
  const heard = new Heard()
  transport.send(request('chat', { ...says('one two'), stream: true }, { pace: 3 }), heard)
  const hung = new Heard()
  const delivery = transport.send(request('chat', says('Hi'), { hang: true }), hung)
  let closed = 0
  const closing = [transport.close(), transport.close()].map(one => one.then(() => closed++))
  const late = await asked('chat', says('Hi'), {}, transport)
  t.match(late.failure, { kind: 'refused', sent: false })
  t.notOk(late.delivery.sent)
  await heard.over
  t.equal(heard.calls.at(-1), 'end')
  await later()
  t.equal(closed, 0, 'one is still there')
  delivery.abort()
  await Promise.all(closing)
  t.equal(closed, 2)
  await transport.close()
})

t.test('leaves no timer behind', async t => {
  const timers = () => process.getActiveResourcesInfo().filter(name => name === 'Timeout').length
  const before = timers()
  const transport = opened()
  const options = [{ hang: true }, { first_byte: 50_000 }, { pace: 50_000 }]
  const deliveries = options.map(one => transport.send(request('chat', { ...says('one two'), stream: true }, one), new Heard()))
  await Promise.resolve()
  t.equal(timers(), before + 3)
  for (const delivery of deliveries) delivery.abort()
  t.equal(timers(), before)
  await transport.close()
})
