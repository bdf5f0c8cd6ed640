import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { talk } from '../support/client.js'
import { gateway, inspect, metric, yaml } from '../support/gateway.js'
import { openStream, provider } from '../support/provider.js'

/*
 * Policies of others that do what their contract forbids: a request ends all the same, and so does its hold.
 */

const CHAT = '/v1/chat/completions'
const BODY = { model: 'up/m', messages: [{ role: 'user', content: 'Hello' }] }

/** A gateway with one more policy in its chain, which logs `ended` for each exchange that is finished. */
async function withPolicy(t: Parameters<typeof gateway>[0], url: string, hooks: string, more = '') {
  const folder = t.testdir()
  writeFileSync(
    join(folder, 'faulty.mjs'),
    `export default (_options, host) => ({ name: 'faulty', ${hooks}, finish: (_exchange, { state }) => host.log('ended', { state }) })`,
  )
  const running = await gateway(t, yaml(url, { more: `policies: [auth, rate, budget, hold, ./faulty.mjs]\n${more}` }), { folder })
  const states = () => running.lines().flatMap(({ message, fields }) => (message === 'ended' ? [fields.state] : []))
  return { running, states }
}

t.jobs = 2
t.test('respond returns what can not be sent: the answer is there without it, whole or streamed', async t => {
  const up = await provider(t)
  const { running, states } = await withPolicy(t, up.url, `respond: ({ key }) => ({ 'x-team': 'تیم ' + key.name })`)
  const whole = await running.post(CHAT, BODY)
  t.equal(whole.status, 200)
  t.equal(whole.headers.get('x-team'), null)
  const streamed = await running.post(CHAT, { ...BODY, stream: true })
  t.match(streamed.text, /data: \[DONE\]\n\n$/)
  await running.line('hook respond of a policy failed')
  t.equal(await running.stop(), 0)
  t.strictSame(states(), ['settled', 'settled'])
  t.match(await running.records(), [{ state: 'settled' }, { state: 'settled' }])
})

t.test('respond answers by itself: nobody waits, nothing more is asked of the provider, and the hold ends', async t => {
  const up = await provider(t, (seen, response) => {
    if (seen.body.stream === true) openStream(seen, response).say('Once ')
    else
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ choices: [{ index: 0, message: { role: 'assistant', content: 'a' } }] }))
  })
  const { running, states } = await withPolicy(
    t,
    up.url,
    'respond: ({ response }) => void (response.headersSent || response.writeHead(200))',
  )
  await t.rejects(running.post(CHAT, BODY))
  const talking = talk(running.url + CHAT, { body: { ...BODY, stream: true } })
  t.equal(await talking.ended, 'cut')
  t.strictSame(
    up.seen.map(({ body }) => body.stream === true),
    [false, true],
    'each was forwarded once',
  )
  await up.seen[1]?.closed
  t.equal(await metric(running, 'model_gateway_holds_open'), 0)
  t.equal(await running.stop(), 0)
  t.equal(states().length, 2)
  t.notOk(states().includes('refused'))
  t.strictSame(await inspect(running.folder, ledger => ledger.open()), [])
})

t.test('an error that can not be written is a fault of the policy: 500, logged with what is wrong', async t => {
  const up = await provider(t)
  const { running, states } = await withPolicy(
    t,
    up.url,
    `admit({ body: { messages: [{ content }] } }) {
      const odd = { status: { status: 1000 }, details: { details: { ceiling: 5n } }, headers: { headers: { 'x-why': 'نه' } } }
      throw host.error('odd', 'no', odd[content])
    }`,
  )
  for (const [what, why] of [
    ['status', 'The status of the error odd has to be a whole number from 400 to 599, got 1000'],
    ['details', 'BigInt'],
    ['headers', 'x-why'],
  ] as const) {
    const before = running.lines().length
    const { status, json } = await running.post(CHAT, { ...BODY, messages: [{ role: 'user', content: what }] })
    t.match({ status, json }, { status: 500, json: { error: { code: 'internal_error' } } })
    const told = () =>
      running
        .lines()
        .slice(before)
        .find(({ message }) => message === 'a request met a fault of the gateway')
    while (told() === undefined) await new Promise(setImmediate)
    t.match(JSON.stringify(told()), why)
  }
  t.strictSame(states(), ['refused', 'refused', 'refused'])
  t.equal(up.seen.length, 0)
})

t.test('forward returns what can not be sent: 500, and the provider is not blamed for it', async t => {
  const up = await provider(t)
  const { running, states } = await withPolicy(t, up.url, `forward: () => ({ 'x-who': 'کاربر' })`)
  for (let i = 0; i < 8; i++) t.match(await running.post(CHAT, BODY), { status: 500, json: { error: { code: 'internal_error' } } })
  t.equal(up.seen.length, 0)
  t.match((await running.get(`${running.ops}/readyz?verbose`)).text, /^(?!.*left alone)/s)
  t.strictSame(new Set(states()), new Set(['voided']))
})

t.test('a hook that never answers holds up a stop for a few seconds only, which is told', async t => {
  const up = await provider(t)
  for (const hook of ['admit', 'respond']) {
    const { running } = await withPolicy(t, up.url, `${hook}: () => new Promise(() => {})`, 'drain_timeout: 100ms\n')
    const talking = talk(running.url + CHAT, { body: BODY })
    while (!/_in_flight\S* 1$/m.test((await running.get(`${running.ops}/metrics`)).text)) await new Promise(setImmediate)
    t.equal(await running.stop(), 0)
    t.ok(running.lines().some(({ message }) => message === 'a request did not end when it was cut off, and is left behind'))
    t.equal(await talking.ended, 'cut')
    await running.records()
  }
})
