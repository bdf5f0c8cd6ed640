import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { tcp } from '../support/bad-server.js'
import { talk } from '../support/client.js'
import { AUTH, gateway, inspect, KEY, metric, type RunningGateway, yaml } from '../support/gateway.js'
import { bare } from '../support/program.js'
import { chat, type OpenStream, openStream, provider } from '../support/provider.js'

/*
 * The life of a sidecar in Kubernetes, as config/deploy/README.md tells it, with the kubelet's part played here: probes, signals, and a folder
 * that outlives the process as a volume outlives its containers.
 */

const CHAT = '/v1/chat/completions'
const BODY = { model: 'up/m', max_tokens: 100, messages: [{ role: 'user', content: 'Hello' }] }
const STREAM = { ...BODY, stream: true }

/** One that nothing listens on; below those that the system gives to whoever asks for any. */
async function freePort(): Promise<number> {
  for (;;) {
    const server = createServer()
    const port = randomInt(10_000, 32_000)
    const free = await new Promise<boolean>(resolve => {
      server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true))
    })
    if (!free) continue
    server.close()
    await once(server, 'close')
    return port
  }
}

/** The start probe: what it saw, once it has passed. */
async function startProbe(port: number): Promise<string[]> {
  const seen: string[] = []
  for (;;) {
    const found = await fetch(`http://127.0.0.1:${port}/readyz`).then(
      ({ status }) => String(status),
      () => 'refused',
    )
    seen.push(found)
    if (found === '200') return seen
    await sleep(20)
  }
}

/** The books of a gateway that has ended: nothing is open, and every figure agrees with the records. */
async function books(t: Test, running: RunningGateway) {
  return inspect(running.folder, async ledger => {
    t.same(await ledger.verify(), [])
    t.same(await ledger.open(), [])
    return ledger.records({})
  })
}

/** An app: asks once when it begins, goes on with a stream, and asks for the last time when it is told to stop. */
const APP = `
const ask = body => fetch(process.env.OPENAI_BASE_URL + '/chat/completions', {
  method: 'POST',
  headers: { authorization: 'Bearer ${KEY}', 'content-type': 'application/json' },
  body: JSON.stringify({ ...${JSON.stringify(BODY)}, ...body }),
}).then(async answer => answer.status + ' ' + (await answer.text()).endsWith('data: [DONE]\\n\\n'))
console.log('first', await ask({}))
const alive = setInterval(() => {}, 1000)
process.on('SIGTERM', async () => {
  console.log('last', await ask({ stream: true }))
  clearInterval(alive)
  // Its connections are kept alive, and idle, as those of most clients: it ends with them.
  process.exit(0)
})
console.log('runs')
`

t.test('it is ready before its app begins, serves it to its last word, and stops after it, at once', async t => {
  const up = await provider(t)
  const opsPort = await freePort()
  const probing = startProbe(opsPort)
  const running = await gateway(t, yaml(up.url), { folder: t.testdir({ 'app.mjs': APP }), opsPort })
  const seen = await probing
  t.match(seen[0], 'refused', 'the probe began before it')
  t.match(seen.join(), /^(refused,)+(503,)*200$/, 'it is asked while it starts, and says so')

  const app = spawn('env', bare([process.execPath, join(running.folder, 'app.mjs')]).slice(1), {
    env: { ...process.env, OPENAI_BASE_URL: `${running.url}/v1` },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => app.kill('SIGKILL'))
  let said = ''
  app.stdout.on('data', chunk => {
    said += chunk
  })
  while (!said.includes('runs')) await sleep(10)
  t.match(said, /^first 200/)

  // The pod is deleted: the kubelet stops the app, and its sidecars when it has ended.
  app.kill('SIGTERM')
  t.strictSame(await once(app, 'exit'), [0, null])
  t.match(said, /last 200 true\n$/)
  const from = performance.now()
  t.equal(await running.stop(), 0)
  const tookMs = performance.now() - from
  t.ok(tookMs < 20_000, `nobody is left to wait for: over after ${Math.round(tookMs)} ms of a drain_timeout of 25 s`)
  const records = await books(t, running)
  t.strictSame(
    records.map(({ state }) => state),
    ['settled', 'settled'],
  )
})

t.test('SIGTERM with everything open that can be: each has drain_timeout, is settled, and the exit is in time', async t => {
  const streams: OpenStream[] = []
  // Streams begin and stay open; whole answers never come.
  const up = await provider(t, (seen, response) => {
    if (seen.body.stream !== true) return
    const stream = openStream(seen, response)
    stream.say('Once ')
    streams.push(stream)
  })
  // A provider that takes connections and never says hello: nothing was sent there.
  const silent = await tcp(t, socket => socket.pause())
  const config = yaml(up.url, { more: 'drain_timeout: 1500ms' })
    .replace('models:', `  silent: {kind: openai, base_url: "https://127.0.0.1:${silent}/v1", timeout: {connect: 30s}}\nmodels:`)
    .replace('aliases:', '  silent/m: {price: {input: 1000000, output: 2000000}, max_output_tokens: 100}\naliases:')
  const running = await gateway(t, config)
  const id = (name: string) => ({ ...AUTH, 'x-request-id': name })
  const ending = talk(running.url + CHAT, { body: STREAM, headers: id('ends-in-time') })
  await ending.until('Once ')
  const cut = talk(running.url + CHAT, { body: STREAM, headers: id('does-not') })
  await cut.until('Once ')
  const hanging = talk(running.url + CHAT, { body: BODY, headers: id('hangs') })
  const connecting = talk(running.url + CHAT, { body: { ...BODY, model: 'silent/m' }, headers: id('connects') })
  const { port } = new URL(running.url)
  const opened = async (text: string) => {
    const socket = connect(Number(port), '127.0.0.1')
    const got = { text: '', closed: once(socket, 'close') }
    socket.on('error', () => {})
    socket.on('data', chunk => {
      got.text += chunk
    })
    await once(socket, 'connect')
    socket.write(text)
    return { socket, got }
  }
  const head = `POST ${CHAT} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${KEY}\r\ncontent-type: application/json\r\n`
  const json = JSON.stringify(STREAM)
  const halfHeader = await opened(head)
  const halfBody = await opened(`${head}x-request-id: half\r\ncontent-length: 500\r\n\r\n{"model"`)
  const late = await opened(`${head}x-request-id: sent-late\r\ncontent-length: ${json.length}\r\n\r\n${json.slice(0, 20)}`)
  const idle = await opened(`GET /v1/models HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${KEY}\r\n\r\n`)
  while (!idle.got.text.includes('up/m') || up.seen.length < 3) await sleep(5)
  while ((await metric(running, 'model_gateway_requests_in_flight{surface="chat"}')) !== 6) await sleep(5)
  t.equal(await metric(running, 'model_gateway_holds_open'), 4)

  const from = performance.now()
  const exit = running.stop()
  await running.line('stopping')
  t.equal((await running.get(`${running.ops}/readyz`)).status, 503, 'nothing new is sent here')
  t.equal((await running.get(`${running.ops}/livez`)).status, 200, 'and the kubelet does not kill it for that')
  // Who had begun to send before may go on; who comes on a connection that was idle is sent away, and it ends.
  late.socket.write(json.slice(20))
  while (streams.length < 3) await sleep(5)
  streams[2]?.finish()
  streams[0]?.finish()
  idle.socket.write('GET /v1/models HTTP/1.1\r\nhost: a\r\n\r\n')
  await idle.got.closed
  t.match(idle.got.text, /HTTP\/1\.1 503[\s\S]*connection: close[\s\S]*"code":"draining"/i)
  t.equal(await ending.ended, 'whole')
  t.equal(await exit, 0)
  const tookMs = performance.now() - from
  t.ok(tookMs >= 1450 && tookMs < 25_000, `over after ${Math.round(tookMs)} ms`)
  for (const talking of [cut, hanging, connecting]) t.equal(await talking.ended, 'cut')
  await Promise.all([halfHeader, halfBody, late].map(({ got }) => got.closed))
  t.match(late.got.text, /data: \[DONE\]/)
  t.equal(halfHeader.got.text, '', 'it was no request')

  const found = Object.fromEntries(
    (await books(t, running)).map(one => [one.client_request_id, `${one.state} ${one.ended_by} ${one.cost_rial === 0n}`]),
  )
  t.strictSame(found, {
    'ends-in-time': 'settled provider false',
    'sent-late': 'settled provider false',
    'does-not': 'partial drain false',
    hangs: 'partial drain false',
    connects: 'voided drain true',
  })
})

for (const [how, signals] of [
  ['SIGKILL after its grace', ['SIGTERM', 'SIGKILL']],
  ['SIGKILL at once, as when memory runs out', ['SIGKILL']],
] as const) {
  t.test(`${how}, and the container begins again on the same volume: nothing is lost, nothing stays pending`, async t => {
    const up = await provider(t, (seen, response, request) => {
      if (seen.body.stream === true) openStream(seen, response).say('Once ')
      else return chat()(seen, response, request)
    })
    // A drain that is longer than the grace, as in a config that nobody thought about.
    const config = yaml(up.url, { plan: '{requests_per_day: 100}', more: 'drain_timeout: 60s' })
    const opsPort = await freePort()
    const folder = t.testdir()
    let settled = 0
    let open = 0
    for (let life = 0; life < 3; life++) {
      const probing = startProbe(opsPort)
      const running = await gateway(t, config, { folder, opsPort })
      await probing
      const { usage, wallet } = (await running.get('/v1/key')).json
      t.match(
        { usage, wallet },
        { usage: { requests_today: settled + open, held_tokens_today: 0 }, wallet: { held_rial: 0 } },
        `life ${life}`,
      )
      t.equal(wallet.balance_rial, 1_000_000_000 - 13 * settled, 'what was answered is paid, what was not is not')
      t.equal(await metric(running, 'model_gateway_holds_open'), 0)
      const told = running.lines().filter(({ message }) => message === 'a hold that the last run left open was released')
      t.equal(told.length, life === 0 ? 0 : 2)
      t.equal((await running.post(CHAT, BODY)).status, 200)
      settled++
      const talking = [talk(running.url + CHAT, { body: STREAM }), talk(running.url + CHAT, { body: STREAM })]
      await Promise.all(talking.map(one => one.until('Once ')))
      open += talking.length
      for (const signal of signals) {
        running.process.kill(signal)
        if (signal === 'SIGTERM') {
          await running.line('stopping')
          await sleep(300)
        }
      }
      if (running.process.signalCode === null) await once(running.process, 'exit')
      t.equal(running.process.signalCode, 'SIGKILL')
      for (const one of talking) t.equal(await one.ended, 'cut')
    }
    const last = await gateway(t, config, { folder, opsPort })
    t.equal(await last.stop(), 0)
    const records = await books(t, last)
    t.equal(records.filter(({ state }) => state === 'settled').length, settled)
    t.equal(
      records.filter(({ state, ended_by, cost_rial }) => state === 'recovered' && ended_by === 'recovery' && cost_rial === 0n).length,
      open,
    )
    t.equal(records.length, settled + open)
  })
}

t.test('a gateway that nobody asks sleeps', async t => {
  const up = await provider(t, chat())
  const running = await gateway(t, yaml(up.url))
  const { pid } = running.process
  const wakes = (): number =>
    Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/task/${pid}/status`, 'utf8'))?.[1])
  t.equal((await running.post(CHAT, BODY)).status, 200)
  // What follows a request is over.
  await sleep(3_000)
  const before = wakes()
  await sleep(3_000)
  t.ok(wakes() - before < 30, `it woke up ${wakes() - before} times in three seconds`)
})
