import { EventEmitter } from 'node:events'
import t from 'tap'
import type { Client } from 'undici'
import { Connections, type ConnectionsOptions } from '../../src/upstream/connections.js'

class FakeClient extends EventEmitter {
  closed = false

  close(): void {
    this.closed = true
  }

  async destroy(): Promise<void> {
    this.closed = true
  }

  /** Its connection ends for this reason. */
  ends(message: string, code: string): void {
    this.emit('disconnect', null, [this], Object.assign(new Error(message), { code }))
  }
}

function opened(options: Partial<ConnectionsOptions> = {}) {
  const time = { now: 0 }
  const clients: FakeClient[] = []
  const told: number[] = []
  const open = (): Client => {
    const client = new FakeClient()
    clients.push(client)
    return client as unknown as Client
  }
  const connections = new Connections(open, {
    keep: 'key',
    max: 10,
    now: () => time.now,
    distrusted: () => told.push(time.now),
    ...options,
  })
  /** One request of a key; the number of the connection that carried it. */
  const carry = (key: string): number => {
    const connection = connections.take(key)
    connections.release(connection)
    return clients.indexOf(connection.client as unknown as FakeClient)
  }
  return { connections, clients, told, time, carry }
}

t.test('what has carried a request of one key carries further ones of this key, and never another’s', async t => {
  const { connections, carry } = opened()
  t.strictSame(['a', 'b', 'a', 'b', 'a'].map(carry), [0, 1, 0, 1, 0])
  const [first, second] = [connections.take('a'), connections.take('a')]
  connections.release(first)
  connections.release(second)
  t.equal(connections.take('a'), second, 'the last one used goes first, so that what is too many ends by itself')
  t.equal(connections.size, 3)
})

t.test('shared: one for all keys; off: nobody’s', async t => {
  t.strictSame(['a', 'b', 'a'].map(opened({ keep: 'shared' }).carry), [0, 0, 0])
  const off = opened({ keep: 'off' })
  t.strictSame(['a', 'a', 'b'].map(off.carry), [0, 1, 2])
  t.ok(off.clients.every(client => client.closed))
  t.equal(off.connections.size, 0)
})

t.test('no more than there may be: what has been idle for longest makes room, and what is in use never', async t => {
  const { connections, clients, carry } = opened({ max: 3 })
  const busy = connections.take('a')
  t.strictSame([carry('b'), carry('c'), carry('b')], [1, 2, 1])
  t.equal(carry('d'), 3)
  t.strictSame(
    clients.map(client => client.closed),
    [false, false, true, false],
  )
  t.equal(connections.size, 3)
  connections.release(busy)
  t.equal(carry('a'), 0)
})

t.test('what has ended, failed or was used for once is not taken again', async t => {
  const { connections, clients, carry } = opened()
  carry('a')
  clients[0]?.ends('other side closed', 'UND_ERR_SOCKET')
  t.equal(carry('a'), 1)
  connections.discard(connections.take('a'))
  t.equal(carry('a'), 2)
  const fresh = connections.takeFresh('a')
  t.notOk(fresh.lasting)
  connections.release(fresh)
  t.equal(carry('a'), 2)
  t.strictSame(
    clients.map(client => client.closed),
    [true, true, false, true],
  )
  await connections.close()
  t.ok(clients.every(client => client.closed))
  t.equal(connections.size, 0)
})

t.test('a provider that writes what nobody asked for: nothing is kept for a minute', async t => {
  const { connections, clients, told, time, carry } = opened()
  const busy = connections.take('b')
  t.strictSame([carry('a'), carry('c')], [1, 2])
  clients[1]?.ends('bad response', 'UND_ERR_SOCKET')
  t.strictSame(told, [0])
  t.ok(clients[2]?.closed, 'nor is what another key has')
  connections.release(busy)
  t.ok(clients[0]?.closed, 'nor what was in use just then')
  t.strictSame(['a', 'a'].map(carry), [3, 4])
  time.now = 60_000
  t.strictSame(['a', 'a'].map(carry), [5, 5])
  clients[5]?.ends('Response does not match the HTTP/1.1 protocol', 'HPE_INVALID_CONSTANT')
  t.strictSame(told, [0, 60_000])
})

t.test('so does one that writes before the next request does, but not one whose answer is wrong', async t => {
  const { connections, clients, told, carry } = opened()
  carry('a')
  const next = connections.take('a')
  clients[0]?.ends('bad response', 'UND_ERR_SOCKET')
  t.strictSame(told, [0])
  t.notOk(clients[0]?.closed, 'its request goes out over another connection')
  connections.discard(next)
  const wrong = opened()
  wrong.connections.take('a').asked = true
  wrong.clients[0]?.ends('Response does not match the HTTP/1.1 protocol', 'HPE_INVALID_CONSTANT')
  t.strictSame(wrong.told, [])
})

t.test('a goodbye is nothing to distrust', async t => {
  const { clients, told, carry } = opened()
  const goodbyes = [
    ['other side closed', 'UND_ERR_SOCKET'],
    ['socket idle timeout', 'UND_ERR_INFO'],
    ['reset', 'UND_ERR_INFO'],
    ['read ECONNRESET', 'ECONNRESET'],
  ] as const
  for (const [i, [message, code]] of goodbyes.entries()) {
    t.equal(carry('a'), i)
    clients[i]?.ends(message, code)
  }
  t.strictSame(told, [])
})
