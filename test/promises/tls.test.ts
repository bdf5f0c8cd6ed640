import { once } from 'node:events'
import { copyFileSync, mkdirSync, readFileSync, renameSync } from 'node:fs'
import { createServer as createHttp, type IncomingHttpHeaders } from 'node:http'
import { createServer, request } from 'node:https'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import t, { type Test } from 'tap'
import { AUTH, gateway, type RunningGateway, yaml } from '../support/gateway.js'
import { FIXTURES } from '../support/paths.js'
import { json } from '../support/provider.js'

/* What is encrypted, and who must show what: towards clients, towards providers, and through a proxy. The certificates are of fixtures/tls/make. */

const FREE = `
ledger: {path: data/ledger.db, durability: process}
providers: {sandbox: {kind: sandbox}}
models: {sandbox/echo: {price: free}}
plans: {p: {}}
keys: {a: {plan: p, secret: mgk_test_key_a}}
`
const CHAT = { model: 'up/m', messages: [{ role: 'user', content: 'Hello' }] }

const pem = (name: string): string => readFileSync(`${FIXTURES}tls/${name}`, 'utf8')
const shown = (name: string) => ({ cert: pem(`${name}.crt`), key: pem(`${name}.key`) })

/** A folder with these files of the fixtures in it, by what they are called there. */
function place(t: Test, files: Readonly<Record<string, string>>): string {
  const folder = t.testdir()
  mkdirSync(folder, { recursive: true })
  for (const [name, from] of Object.entries(files)) copyFileSync(`${FIXTURES}tls/${from}`, join(folder, name))
  return folder
}

const SERVER = { 'tls.crt': 'localhost.crt', 'tls.key': 'localhost.key' }

/** What a request over a connection of its own is answered with, or the server’s alert or the code of the error that it ends with. */
async function asked({ url }: RunningGateway, options: ConnectionOptions = {}): Promise<number | string> {
  const asked = request(`${url}/v1/models`, { agent: false, ca: pem('localhost.crt'), headers: AUTH, ...options }).end()
  return new Promise(resolve => {
    asked.on('response', response => resolve(response.resume().statusCode ?? 0))
    asked.on('error', (error: NodeJS.ErrnoException) =>
      resolve(/tlsv1 alert [a-z ]+/.exec(error.message)?.[0] ?? error.code ?? error.message),
    )
  })
}

t.test('TLS of the public listener: 1.2 and 1.3, nothing before them, and nothing unencrypted', async t => {
  const folder = place(t, SERVER)
  const running = await gateway(t, `${FREE}tls: {cert: tls.crt, key: tls.key}\n`, { folder })
  t.match(running.url, /^https:/)
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) t.equal(await asked(running, { minVersion: version, maxVersion: version }), 200)
  for (const version of ['TLSv1', 'TLSv1.1'] as const) {
    // The client's own library would refuse them too: it is told not to.
    const old = { minVersion: version, maxVersion: version, ciphers: 'DEFAULT@SECLEVEL=0' }
    t.equal(await asked(running, old), 'tlsv1 alert protocol version', version)
  }
  t.equal(await asked(running, { ca: pem('clients.crt') }), 'DEPTH_ZERO_SELF_SIGNED_CERT', 'it shows its own certificate')
  const plain = connect(Number(new URL(running.url).port), '127.0.0.1')
  plain.on('error', () => {})
  plain.write('GET /v1/models HTTP/1.1\r\nhost: a\r\nauthorization: Bearer mgk_test_key_a\r\n\r\n')
  let text = ''
  plain.on('data', chunk => (text += chunk))
  await once(plain, 'close')
  t.notMatch(text, /HTTP\/1.1 200|sandbox/)
})

t.test('a certificate that is swapped is shown from then on, without a restart; what is open stays', async t => {
  const folder = place(t, SERVER)
  const running = await gateway(t, `${FREE}tls: {cert: tls.crt, key: tls.key}\n`, { folder })
  const port = Number(new URL(running.url).port)
  const serial = async (): Promise<{ serial: string; socket: Socket }> => {
    const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
    await once(socket, 'secureConnect')
    t.teardown(() => socket.destroy())
    return { serial: socket.getPeerCertificate().serialNumber, socket }
  }
  const before = await serial()
  // One after the other, as tools do it: in between they do not belong together, and the old pair is shown.
  for (const [name, from] of [
    ['tls.crt', 'stranger.crt'],
    ['tls.key', 'stranger.key'],
  ] as const) {
    t.equal((await serial()).serial, before.serial)
    copyFileSync(`${FIXTURES}tls/${from}`, join(folder, `${name}.new`))
    renameSync(join(folder, `${name}.new`), join(folder, name))
    await running.line(name === 'tls.crt' ? 'the config was not reloaded' : 'the config was reloaded')
  }
  t.not((await serial()).serial, before.serial)
  before.socket.write('GET /v1/models HTTP/1.1\r\nhost: a\r\nauthorization: Bearer mgk_test_key_a\r\n\r\n')
  const [first] = await once(before.socket, 'data')
  t.match(String(first), /^HTTP\/1.1 200/)
})

t.test('tls.client_ca: who shows no certificate of these authorities gets no connection', async t => {
  const folder = place(t, { ...SERVER, 'clients.crt': 'clients.crt' })
  const mutual = 'tls: {cert: tls.crt, key: tls.key, client_ca: clients.crt}\n'
  const running = await gateway(t, FREE + mutual, { folder })
  const versions = ['TLSv1.2', 'TLSv1.3'] as const
  const of = async (options: ConnectionOptions) => {
    const answers = await Promise.all(versions.map(version => asked(running, { ...options, minVersion: version, maxVersion: version })))
    return answers.map(answer => answer === 200)
  }
  t.strictSame(await of(shown('client')), [true, true], 'of these authorities')
  const refused: Record<string, ConnectionOptions> = {
    none: {},
    'of other authorities': shown('stranger'),
    expired: shown('expired'),
    'signed by itself': shown('localhost'),
  }
  for (const [name, options] of Object.entries(refused)) t.strictSame(await of(options), [false, false], name)

  await t.test('other authorities count for connections from then on', async t => {
    copyFileSync(`${FIXTURES}tls/strangers.crt`, join(folder, 'clients.crt'))
    await running.line('the config was reloaded')
    t.strictSame(await of(shown('stranger')), [true, true])
    t.strictSame(await of(shown('client')), [false, false])
  })

  await t.test('taken out of the file, it holds until the restart', async t => {
    await running.reload(`${FREE}tls: {cert: tls.crt, key: tls.key}\n`)
    await running.line('a change of tls.client_ca takes a restart')
    t.strictSame(await of({}), [false, false])
    t.strictSame(await of(shown('stranger')), [true, true])
  })
  t.equal(await running.stop(), 0)
})

interface SecureProvider {
  readonly url: string
  readonly port: number
  readonly seen: IncomingHttpHeaders[]
}

/** A provider on https with a certificate that nobody knows but by fixtures/tls/localhost.crt. */
async function secureProvider(t: Test): Promise<SecureProvider> {
  const seen: IncomingHttpHeaders[] = []
  const server = createServer(shown('localhost'), (incoming, response) => {
    seen.push(incoming.headers)
    incoming.resume().on('end', () => {
      const choices = [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }]
      json(response, 200, { id: 'chatcmpl-1', object: 'chat.completion', created: 1, model: 'm', choices })
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  return { url: `https://127.0.0.1:${port}/v1`, port, seen }
}

t.test('a provider’s certificate is held against the well-known authorities, or against `ca` alone', async t => {
  const up = await secureProvider(t)
  const folder = place(t, { 'ca.crt': 'clients.crt' })
  const once = 'health: off'
  const running = await gateway(t, yaml(up.url, { provider: once, model: 'attempts: 1' }), { folder })
  const status = async () => {
    const { status, json } = await running.post('/v1/chat/completions', CHAT)
    return status === 200 ? 200 : json.error.code
  }
  t.equal(await status(), 'upstream_unavailable', 'signed by nobody that is known')
  await running.reload(yaml(up.url, { provider: `${once}, ca: ca.crt`, model: 'attempts: 1' }))
  t.equal(await status(), 'upstream_unavailable', 'other authorities')
  copyFileSync(`${FIXTURES}tls/localhost.crt`, join(folder, 'ca.crt'))
  await running.reload(yaml(up.url, { provider: `${once}, ca: ca.crt`, model: 'attempts: 1' }))
  // The two files that have changed may be seen one after the other, in two reloads.
  while ((await status()) !== 200) t.equal(up.seen.length, 0)
  t.equal(up.seen.length, 1, 'nothing was sent to whom nobody vouched for')
})

interface Proxy {
  readonly port: number
  readonly asked: { readonly target: string | undefined; readonly headers: IncomingHttpHeaders }[]
  /** Everything that went through it to the origin, as it saw it. */
  through(): string
}

/** A proxy that leads every name to `port` of this machine, to those who know its password. */
async function proxy(t: Test, port: number): Promise<Proxy> {
  const asked: { target: string | undefined; headers: IncomingHttpHeaders }[] = []
  let through = ''
  const server = createHttp((_request, response) => response.writeHead(400).end())
  server.on('connect', (incoming, client: Socket) => {
    asked.push({ target: incoming.url, headers: incoming.headers })
    client.on('error', () => {})
    if (incoming.headers['proxy-authorization'] !== `Basic ${Buffer.from('us er:pass').toString('base64')}`) {
      client.end('HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n')
      return
    }
    const origin = connect(port, '127.0.0.1', () => client.write('HTTP/1.1 200 OK\r\n\r\n'))
    origin.on('error', () => client.destroy())
    client.on('data', data => (through += data.toString('latin1')))
    client.pipe(origin).pipe(client)
    client.on('close', () => origin.destroy())
    t.teardown(() => client.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return { port: (server.address() as AddressInfo).port, asked, through: () => through }
}

t.test('the environment’s proxy: only where it is asked for, and it sees nothing of what is said', async t => {
  const up = await secureProvider(t)
  const way = await proxy(t, up.port)
  const folder = place(t, { 'ca.crt': 'localhost.crt' })
  const config = (more: string): string =>
    yaml('https://localhost.example/v1', { provider: `health: off, ca: ca.crt, timeout: {connect: 2s}${more}`, model: 'attempts: 1' })
  const address = (user: string): string => `http://${user}@127.0.0.1:${way.port}`
  const status = async (running: RunningGateway) => {
    const { status, json } = await running.post('/v1/chat/completions', CHAT)
    return status === 200 ? 200 : json.error.code
  }
  const env = { HTTPS_PROXY: address('us%20er:pass'), https_proxy: address('us%20er:pass'), NO_PROXY: '', no_proxy: '' }

  await t.test('unasked, it is never spoken to', async t => {
    const running = await gateway(t, config(''), { folder, env })
    t.equal(await status(running), 'upstream_unavailable')
    t.equal(way.asked.length, 0)
  })
  await t.test('asked for', async t => {
    const named = config(', proxy: environment').replace('localhost.example', 'localhost.test')
    const running = await gateway(t, named, { folder, env })
    t.equal(await status(running), 'upstream_unavailable', 'the name is held against the certificate, proxy or not')
    t.match(way.asked, [{ target: 'localhost.test:443', headers: { host: 'localhost.test:443' } }])
    t.equal(up.seen.length, 0)
    t.notMatch(running.output(), /pass/)
  })
  await t.test('refused by the proxy', async t => {
    const running = await gateway(t, config(', proxy: environment'), { folder, env: { ...env, https_proxy: address('us%20er:wrong') } })
    t.equal(await status(running), 'upstream_unavailable')
    t.equal(up.seen.length, 0)
  })
  await t.test('this machine, and what no_proxy names, are reached without it', async t => {
    const before = way.asked.length
    const here = config(', proxy: environment').replace('localhost.example', `localhost:${up.port}`)
    const running = await gateway(t, here, { folder, env })
    t.equal(await status(running), 200)
    const named = await gateway(t, config(', proxy: environment'), {
      folder: t.testdir({ 'ca.crt': pem('localhost.crt') }),
      env: { ...env, no_proxy: 'other, .example' },
    })
    t.equal(await status(named), 'upstream_unavailable')
    t.equal(way.asked.length, before)
  })
  t.notMatch(way.through(), /sk-upstream-secret|Hello/)
})
