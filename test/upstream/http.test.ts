import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import { httpTransport } from '../../src/upstream/http.js'
import { settingsOf } from '../support/calls.js'
import { sampleCall } from '../support/sample-call.js'

/**
 * On a thread of its own: each connection gets the number of its requests for an answer, and 30 ms after the first, one that nobody asked for.
 * How many of those have been written is counted where the other thread sees it without a turn of its event loop.
 */
const SERVER = `
const { createServer } = require('node:net')
const { parentPort, workerData } = require('node:worker_threads')
const answer = text => 'HTTP/1.1 200 OK\\r\\ncontent-length: ' + text.length + '\\r\\n\\r\\n' + text
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

t.test('what a provider has said unasked is not taken for the answer to the next request', async t => {
  const written = new Int32Array(new SharedArrayBuffer(4))
  const server = new Worker(SERVER, { eval: true, workerData: written })
  t.teardown(() => server.terminate())
  const [port] = (await once(server, 'message')) as [number]
  const transport = httpTransport(settingsOf('openai', { base_url: `http://127.0.0.1:${port}`, max_connections: 1 }))
  t.teardown(() => transport.close())
  const ask = (): Promise<string> =>
    new Promise((resolve, reject) => {
      let text = ''
      const request = { path: '/', headers: { 'content-type': 'application/json' }, body: '{}', call: sampleCall('chat', {}) }
      transport.send(request, {
        head: () => {},
        data: chunk => {
          text += String(chunk)
        },
        end: () => resolve(text),
        failed: failure => reject(new Error(failure.message)),
      })
    })
  for (let round = 0; round < 5; round++) {
    t.equal(await ask(), 'asked 1')
    // The connection is free by then.
    await sleep(5)
    // As when much else is to be done: what comes meanwhile lies there unread when the next request is to go out.
    Atomics.wait(written, 0, round, 30_000)
    t.equal(written[0], round + 1)
  }
})
