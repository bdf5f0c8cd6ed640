import { once } from 'node:events'
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { type Check, type OpsOptions, startOps } from '../../src/http/ops.js'

const READY: readonly Check[] = [
  { name: 'config', ok: true },
  { name: 'ledger', ok: true },
]

async function ops(t: Test, over: Partial<OpsOptions> = {}) {
  const running = await startOps({
    address: { host: '127.0.0.1', port: 0 },
    metrics: { render: async accept => ({ contentType: 'text/plain; version=0.0.4', body: `# accept: ${accept}, ریال\n` }) },
    checks: () => READY,
    failed: error => t.fail(`${error}`),
    ...over,
  })
  t.teardown(() => running.close())
  return running
}

/** Sends bytes on a connection of their own and gives all that comes back until it ends. */
async function raw(port: number, sent: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  let received = ''
  socket.setEncoding('utf8').on('data', data => {
    received += data
  })
  socket.write(sent)
  await once(socket, 'close')
  return received
}

const request = (start: string, fields = '') => `${start} HTTP/1.1\r\nhost: ops\r\nconnection: close\r\n${fields}\r\n`

t.test('metrics are rendered for the Accept that came', async t => {
  const { port } = await ops(t)
  const response = await fetch(`http://127.0.0.1:${port}/metrics`, { headers: { accept: 'text/plain' } })
  t.equal(response.status, 200)
  t.equal(response.headers.get('content-type'), 'text/plain; version=0.0.4')
  t.equal(response.headers.get('cache-control'), 'no-store')
  const body = await response.text()
  t.equal(body, '# accept: text/plain, ریال\n')
  t.equal(response.headers.get('content-length'), String(Buffer.byteLength(body)))
})

t.test('paths and methods', async t => {
  const { port } = await ops(t)
  const rows: [string, string, number, string | null][] = [
    ['GET', '/livez', 200, 'ok\n'],
    ['GET', '/livez?verbose', 200, 'ok\n'],
    ['GET', '/readyz', 200, 'ok\n'],
    ['GET', '/readyz?verbose', 200, '[+] config\n[+] ledger\nok\n'],
    ['GET', '/readyz?a=b&verbose=1', 200, '[+] config\n[+] ledger\nok\n'],
    ['HEAD', '/metrics', 200, ''],
    ['HEAD', '/livez', 200, ''],
    ['POST', '/metrics', 405, 'method not allowed\n'],
    ['DELETE', '/readyz', 405, 'method not allowed\n'],
    ['OPTIONS', '/livez', 405, 'method not allowed\n'],
    ['GET', '/', 404, null],
    ['GET', '/v1/key', 404, null],
    ['GET', '/metrics/', 404, null],
    ['GET', '/Metrics', 404, null],
    ['POST', '/nowhere', 404, null],
  ]
  for (const [method, path, status, body] of rows) {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { method })
    t.equal(response.status, status, `${method} ${path}`)
    const received = await response.text()
    if (body !== null) t.equal(received, body, `${method} ${path}`)
    t.equal(response.headers.get('allow'), status === 405 ? 'GET, HEAD' : null)
    t.equal(response.headers.get('cache-control'), 'no-store')
    t.ok(Number(response.headers.get('content-length')) > 0, 'a HEAD tells the length too')
  }
  t.match(await raw(port, request('GET http://elsewhere/metrics')), /^HTTP\/1\.1 404 /)
})

t.test('not ready: 503 with the reasons, all of the checks when asked', async t => {
  const { port } = await ops(t, {
    checks: () => [
      { name: 'config', ok: true },
      { name: 'ledger', ok: false, reason: 'can not write:\ndisk full' },
      { name: 'drain', ok: false },
    ],
  })
  const short = await fetch(`http://127.0.0.1:${port}/readyz`)
  t.equal(short.status, 503)
  t.equal(await short.text(), '[-] ledger: can not write: disk full\n[-] drain: failed\nnot ready\n')
  const verbose = await fetch(`http://127.0.0.1:${port}/readyz?verbose`)
  t.equal(verbose.status, 503)
  t.equal(await verbose.text(), '[+] config\n[-] ledger: can not write: disk full\n[-] drain: failed\nnot ready\n')
  t.equal((await fetch(`http://127.0.0.1:${port}/livez`)).status, 200, 'alive all the same')
})

t.test('a failure is reported, and nothing of it is answered', async t => {
  const heard: unknown[] = []
  const { port } = await ops(t, {
    metrics: { render: () => Promise.reject(new Error('secret words')) },
    checks: () => {
      throw new Error('more secret words')
    },
    failed: error => heard.push(error),
  })
  for (const path of ['/metrics', '/readyz']) {
    const response = await fetch(`http://127.0.0.1:${port}${path}`)
    t.equal(response.status, 500)
    t.equal(await response.text(), 'internal error\n')
  }
  t.match(heard, [{ message: 'secret words' }, { message: 'more secret words' }])
})

t.test('a big header is refused, and a body is not waited for', async t => {
  const { port } = await ops(t)
  t.match(await raw(port, request('GET /livez', `x-big: ${'x'.repeat(9000)}\r\n`)), /^HTTP\/1\.1 431 /)
  t.match(
    await raw(port, 'POST /metrics HTTP/1.1\r\nhost: ops\r\ncontent-length: 1000000\r\n\r\nstart'),
    /^HTTP\/1\.1 405 [\s\S]*connection: close/i,
  )
})

t.test('an address that is taken is said by name', async t => {
  const { port } = await ops(t)
  await t.rejects(ops(t, { address: { host: '127.0.0.1', port } }), {
    message: new RegExp(`ops listener: .*127\\.0\\.0\\.1:${port}.*EADDRINUSE`),
  })
})

t.test('closing lets an answer under way end, and does not wait for idle connections', async t => {
  let release = (): void => {}
  const gate = new Promise<void>(resolve => {
    release = resolve
  })
  let arrive = (): void => {}
  const arrived = new Promise<void>(resolve => {
    arrive = resolve
  })
  const render = () => {
    arrive()
    return gate.then(() => ({ contentType: 'text/plain', body: 'late\n' }))
  }
  const running = await ops(t, { metrics: { render } })
  const idle = connect(running.port, '127.0.0.1')
  await once(idle, 'connect')
  const response = fetch(`http://127.0.0.1:${running.port}/metrics`)
  await arrived
  const closed = running.close()
  release()
  t.equal(await (await response).text(), 'late\n')
  await closed
  await t.rejects(fetch(`http://127.0.0.1:${running.port}/livez`))
})
