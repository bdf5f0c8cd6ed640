import fc from 'fast-check'
import t from 'tap'
import { GatewayError } from '../../src/errors.js'
import { Gate } from '../../src/upstream/gate.js'
import type { Delivery, Receiver, Transport } from '../../src/upstream/providers/provider.js'
import { sampleCall } from '../support/sample-call.js'
import { fakeTimers } from '../support/timers.js'

const REQUEST = { key: 'app-a', path: '/x', headers: {}, body: '{}', call: sampleCall('chat', {}) }
const GONE = new GatewayError('client_closed', 'Gone.')
const NOBODY: Receiver = { head: () => {}, data: () => {}, end: () => {}, failed: () => {} }

/** A transport that does what it is told. */
function far() {
  const sent: { receiver: Receiver; aborted: boolean }[] = []
  const transport: Transport = {
    send: (_request, receiver): Delivery => {
      const one = { receiver, aborted: false }
      sent.push(one)
      return {
        sent: true,
        pause: () => {},
        resume: () => {},
        abort: () => {
          one.aborted = true
        },
      }
    },
    close: async () => {},
  }
  return { sent, transport }
}

const turn = () => new Promise<void>(resolve => setImmediate(resolve))

t.test('so many at one time; the others wait in the order in which they came', async t => {
  const { sent, transport } = far()
  fakeTimers(t)
  const gate = new Gate(transport, { connections: 2, queue: 10, timeoutMs: 1000 })
  const entered: number[] = []
  for (let i = 0; i < 5; i++) {
    void gate.enter().entered.then(way => {
      entered.push(i)
      way.send(REQUEST, NOBODY)
    })
  }
  await turn()
  t.strictSame([entered, gate.inside, gate.waiting], [[0, 1], 2, 3])
  sent[1]?.receiver.end()
  sent[1]?.receiver.end()
  await turn()
  t.strictSame([entered, gate.inside, gate.waiting], [[0, 1, 2], 2, 2], 'a place is given back once')
  sent[0]?.receiver.failed({ kind: 'broken', sent: true, message: 'x' })
  await turn()
  t.strictSame([entered, gate.inside, gate.waiting], [[0, 1, 2, 3], 2, 1])
})

t.test('an abort gives the place back, and reaches the provider', async t => {
  const { sent, transport } = far()
  const gate = new Gate(transport, { connections: 1, queue: 1, timeoutMs: 1000 })
  const delivery = (await gate.enter().entered).send(REQUEST, NOBODY)
  const next = gate.enter().entered
  delivery.abort()
  await next
  t.ok(sent[0]?.aborted)
  t.equal(gate.inside, 1)
})

t.test('what a receiver throws ends its own request, is told to it alone, and gives the place back', async t => {
  const fault = new RangeError('Maximum call stack size exceeded')
  const calls: Record<string, (receiver: Receiver) => void> = {
    started: receiver => receiver.started?.(),
    head: receiver => receiver.head(200, {}),
    data: receiver => receiver.data(Buffer.from('x')),
    end: receiver => receiver.end(),
    failed: receiver => receiver.failed({ kind: 'broken', sent: true, message: 'x' }),
  }
  for (const [name, call] of Object.entries(calls)) {
    const { sent, transport } = far()
    const gate = new Gate(transport, { connections: 1, queue: 1, timeoutMs: 1000 })
    const told: unknown[] = []
    const throws = () => {
      throw fault
    }
    const failed: Receiver['failed'] = ({ kind, cause }) => (kind === 'fault' ? told.push(cause) : throws())
    gate.free()?.send(REQUEST, { ...NOBODY, started: throws, head: throws, data: throws, end: throws, failed })
    call(sent[0]?.receiver as Receiver)
    t.strictSame([told, sent[0]?.aborted, gate.inside], [[fault], true, 0], name)
  }
})

t.test('beyond the queue, and beyond its time, a request is refused', async t => {
  const timers = fakeTimers(t)
  const { transport } = far()
  const gate = new Gate(transport, { connections: 1, queue: 1, timeoutMs: 1000 })
  await gate.enter().entered
  const waiting = gate.enter().entered
  await t.rejects(gate.enter().entered, {
    code: 'overloaded',
    status: 503,
    retryAfter: 1,
    retryable: true,
    message: /1 requests are under way and 1 wait/,
  })
  timers.advance(1000)
  await t.rejects(waiting, { code: 'overloaded', retryable: true, message: /within 1 s/ })
  t.equal(gate.waiting, 0)
  const none = new Gate(transport, { connections: 1, queue: 0, timeoutMs: 1000 })
  await none.enter().entered
  await t.rejects(none.enter().entered, { code: 'overloaded' })
  t.equal(timers.set, 0, 'no timer is left')
})

t.test('who leaves the queue is never sent', async t => {
  const { sent, transport } = far()
  const gate = new Gate(transport, { connections: 1, queue: 5, timeoutMs: 1000 })
  const first = await gate.enter().entered
  const leaving = gate.enter()
  leaving.leave(GONE)
  await t.rejects(leaving.entered, GONE)
  first.send(REQUEST, NOBODY).abort()
  await turn()
  t.strictSame([sent.length, gate.inside, gate.waiting], [1, 0, 0])
})

t.test('never more inside than may be, never one that is forgotten', async t => {
  const step = fc.constantFrom('enter', 'end', 'leave')
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), fc.integer({ min: 1, max: 4 }), async (steps, connections) => {
      const { transport } = far()
      const gate = new Gate(transport, { connections, queue: 5, timeoutMs: 60_000 })
      const inside: Delivery[] = []
      const entries: ReturnType<Gate['enter']>[] = []
      let count = 0
      for (const what of steps) {
        if (what === 'enter') {
          const entry = gate.enter()
          entries.push(entry)
          entry.entered.then(
            way => {
              count++
              inside.push(way.send(REQUEST, NOBODY))
            },
            () => {},
          )
        } else if (what === 'end') {
          if (inside.length > 0) count--
          inside.shift()?.abort()
        } else entries.shift()?.leave(GONE)
        await Promise.resolve()
        await Promise.resolve()
        if (gate.inside > connections || count !== gate.inside || (gate.waiting > 0 && gate.inside < connections)) return false
      }
      for (const entry of entries) entry.leave(GONE)
      while (inside.length > 0) inside.shift()?.abort()
      return gate.inside === 0 && gate.waiting === 0
    }),
  )
  t.pass('for any order of coming and going')
})
