import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import t, { type Test } from 'tap'
import * as undici from 'undici'
import type { ProviderSettings } from '../../src/config/config.js'
import { httpTransport } from '../../src/upstream/http.js'
import type { Transport } from '../../src/upstream/providers/provider.js'
import { buildConnector, Client } from '../../src/upstream/undici.js'
import { settingsOf } from '../support/calls.js'
import { sampleCall } from '../support/sample-call.js'

const ANSWER = `const answer = text => 'HTTP/1.1 200 OK\\r\\ncontent-length: ' + text.length + '\\r\\n\\r\\n' + text`

/**
 * On a thread of its own: each connection gets the number of its requests for an answer, and 30 ms after the first, one that nobody asked for.
 * How many of those have been written is counted where the other thread sees it without a turn of its event loop.
 */
const LATE = `
const { createServer } = require('node:net')
const { parentPort, workerData } = require('node:worker_threads')
${ANSWER}
const server = createServer(socket => {
  let asked = 0
  socket.on('error', () => {})
  socket.on('data', () => {
    asked++
    socket.write(answer('asked ' + asked))
    if (asked !== 1) return
    setTimeout(() => socket.write(answer('unasked'), () => {
      Atomics.add(workerData, 0, 1)
      Atomics.notify(workerData, 0)
    }), 30)
  })
})
server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port))
parentPort.once('message', () => process.exit())
`

/** Answers as it should, and once more within 1.5 ms, to the microsecond: so that it meets the moment in which the next request is written. */
const AIMING = `
const { createServer } = require('node:net')
const { parentPort } = require('node:worker_threads')
${ANSWER}
const server = createServer(socket => {
  socket.setNoDelay(true)
  socket.on('error', () => {})
  socket.on('data', data => {
    const name = String(data).split('\\r\\n\\r\\n')[1]
    socket.write(answer(name))
    const at = performance.now() + Math.random() * 1.5
    const wait = () => performance.now() >= at ? socket.write(answer(name)) : setImmediate(wait)
    wait()
  })
})
server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port))
`

/** The text of an answer; rejects where the request failed. */
function ask(transport: Transport, key: string, body: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    const request = { key, path: '/', headers: { 'content-type': 'application/json' }, body, call: sampleCall('chat', {}) }
    transport.send(request, {
      head: () => {},
      data: chunk => {
        text += String(chunk)
      },
      end: () => resolve(text),
      failed: failure => reject(new Error(failure.message)),
    })
  })
}

t.test('what a provider has said unasked is not taken for the answer to the next request', async t => {
  const written = new Int32Array(new SharedArrayBuffer(4))
  const server = new Worker(LATE, { eval: true, workerData: written })
  t.teardown(() => server.terminate())
  const [port] = (await once(server, 'message')) as [number]
  // A clock that runs: it is trusted again at once.
  let now = 0
  let distrusted = 0
  const settings = settingsOf('openai', { base_url: `http://127.0.0.1:${port}`, max_connections: 1 })
  const transport = httpTransport(settings, {
    now: () => {
      now += 60_001
      return now
    },
    distrusted: () => distrusted++,
  })
  t.teardown(() => transport.close())
  for (let round = 0; round < 5; round++) {
    t.equal(await ask(transport, 'a', '{}'), 'asked 1')
    // The connection is free by then.
    await sleep(5)
    // As when much else is to be done: what comes meanwhile lies there unread when the next request is to go out.
    Atomics.wait(written, 0, round, 30_000)
    t.equal(written[0], round + 1)
  }
  t.ok(distrusted >= 4, `${distrusted}`)
})

/** Two keys ask in turn, several requests at a time, of a provider that answers twice. Who got whose? */
async function attacked(t: Test, keep: ProviderSettings['keep_connections'], enough: (counts: Counts) => boolean): Promise<Counts> {
  const server = new Worker(AIMING, { eval: true })
  t.teardown(() => server.terminate())
  const [port] = (await once(server, 'message')) as [number]
  let now = 0
  const settings = settingsOf('openai', { base_url: `http://127.0.0.1:${port}`, max_connections: 64, keep_connections: keep })
  const transport = httpTransport(settings, {
    // As if each request came a minute after the last: the provider is always trusted again.
    now: () => {
      now += 60_001
      return now
    },
    distrusted: () => {},
  })
  t.teardown(() => transport.close())
  const counts: Counts = { asked: 0, right: 0, within: 0, across: 0 }
  const client = async (key: string): Promise<void> => {
    while (!enough(counts)) {
      const name = `${key}${counts.asked++}`
      const text = await ask(transport, key, name)
      if (text === name) counts.right++
      else counts[text.startsWith(key) ? 'within' : 'across']++
      const busy = performance.now() + Math.random()
      while (performance.now() < busy);
      await sleep(Math.random() * 2)
    }
  }
  await Promise.all(['a', 'b', 'a', 'b'].map(client))
  return counts
}

interface Counts {
  asked: number
  right: number
  within: number
  across: number
}

t.test('an unasked answer in the very moment in which another key’s request is written is not taken for its answer', async t => {
  // Long enough that it would have been: that key's own requests do take it.
  const counts = await attacked(t, 'key', ({ asked, within }) => asked >= 20_000 || (asked >= 2_000 && within >= 3))
  t.comment(`${counts.asked} requests of two keys: ${counts.within} mixed up within a key, ${counts.across} between them`)
  t.ok(counts.within >= 3, 'the attack meets the moment')
  t.equal(counts.across, 0)
  t.equal(counts.right + counts.within, counts.asked)
})

t.test('keep_connections: off: not even another request of the same key', async t => {
  const { asked, right } = await attacked(t, 'off', ({ asked }) => asked >= 1_000)
  t.equal(right, asked)
})

t.test('what is read of undici by its own file is what its entry gives', async t => {
  t.equal(Client, undici.Client)
  t.equal(buildConnector, undici.buildConnector)
})
