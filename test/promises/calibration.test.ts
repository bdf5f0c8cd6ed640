import t from 'tap'
import { familyOf, textTokens } from '../../src/metering/estimate.js'
import { imageTokens } from '../../src/metering/image.js'
import { AUTH, gateway, inspect, metric, yaml } from '../support/gateway.js'
import { program } from '../support/program.js'
import { chat, provider } from '../support/provider.js'
import { sampleModel } from '../support/sample-call.js'

const ask = (content: unknown, over: object = {}) => ({ model: 'up/m', messages: [{ role: 'user', content }], max_tokens: 10, ...over })
const SERIES = 'model_gateway_estimate_correction{model="up/m"}'
const WORDS = 'The lamp at the end of the pier goes out when the boats are in. '
const IMAGE = 'https://acme.example/lamp.png'
const MODEL = sampleModel({ upstream: 'm' })
const family = familyOf(MODEL)
/** With what OpenAI's frame is around a single message. */
const raw = (text: string) => textTokens(text, family) + 7

t.test('what a provider reports sizes the holds of its model, in this run and in the next', async t => {
  // Half as much again as the raw estimate says.
  const up = await provider(t, (seen, response, request) => {
    const text: unknown = seen.body.messages[0].content
    const input = typeof text === 'string' ? Math.round(1.5 * raw(text)) : 2000
    const usage = seen.body.user === 'silent' ? null : { prompt_tokens: input, completion_tokens: 2, total_tokens: input + 2 }
    return chat({ usage })(seen, response, request)
  })
  const config = yaml(up.url)
  const folder = t.testdir()
  const first = await gateway(t, config, { folder })
  t.equal(await metric(first, SERIES), 1)
  const post = async (body: object): Promise<void> => {
    const answer = await first.post('/v1/chat/completions', body, AUTH)
    t.equal(answer.status, 200)
  }
  for (let i = 0; i < 40; i++) await post(ask(WORDS.repeat(1 + (i % 5)), { stream: i % 2 === 0 }))
  const factor = (await metric(first, SERIES)) ?? 0
  t.ok(factor >= 1.5 && factor < 1.65, `factor ${factor}`)
  await post(ask(WORDS.repeat(10)))
  await post(ask(WORDS.repeat(4000)))
  await post(
    ask([
      { type: 'text', text: WORDS },
      { type: 'image_url', image_url: { url: IMAGE } },
    ]),
  )
  await post(ask(WORDS.repeat(10), { user: 'silent' }))
  t.equal(await metric(first, SERIES), factor, 'like samples, and an image, change nothing')
  await first.stop()

  const records = (await first.records()).slice(40)
  const expected = (text: string) => Math.round(raw(text) * factor) + 10
  t.equal(records[0]?.held_tokens, expected(WORDS.repeat(10)))
  t.equal(records[1]?.held_tokens, expected(WORDS.repeat(4000)), 'a large body, on its own thread, is held for by the same factor')
  t.equal(records[2]?.held_tokens, expected(WORDS) + imageTokens(IMAGE, undefined, MODEL), 'an image is not scaled')
  const silent = records[3]
  t.equal(silent?.usage_source, 'counted')
  const charged = (silent?.input_tokens ?? 0) / raw(WORDS.repeat(10))
  t.ok(Math.abs(charged - 1.5) < 0.03, `without usage the likeliest is charged, not what was held: ${charged}`)

  t.match(await inspect(folder, ledger => ledger.calibrations()), [{ model: 'up/m', basis: `2 ${family} m` }])
  const shown = new RegExp(`up/m +4\\d requests, likely × 1\\.\\d\\d, held × ${factor.toFixed(2)}\\n`)
  t.match(await program(['check'], { cwd: folder }), { code: 0, stderr: shown }, 'check reads the file of a gateway that is down')
  const second = await gateway(t, config, { folder })
  t.match(await program(['check'], { cwd: folder }), { code: 0, stderr: shown }, 'and asks one that runs')
  const { stdout } = await program(['check', '--json'], { cwd: folder })
  t.match(JSON.parse(stdout), { learned: [{ model: 'up/m', upper: factor }] })
  t.equal(await metric(second, SERIES), factor, 'kept across restarts')
})

t.test('what can not be true, or is far from all else, moves a hold by little and never beyond its bounds', async t => {
  const lies = [1_000_000_000, 1e15, -5, 1.5, 0, 1, 900_000]
  let asked = 0
  const up = await provider(t, (seen, response, request) => {
    const honest = Math.round(1.2 * raw(seen.body.messages[0].content))
    const input = asked < 100 ? honest : (lies[asked - 100] ?? 1_000_000)
    asked++
    return chat({ usage: { prompt_tokens: input, completion_tokens: 2, total_tokens: input + 2 } })(seen, response, request)
  })
  const running = await gateway(t, yaml(up.url))
  const post = async (times: number): Promise<number> => {
    for (let i = 0; i < times; i++) await running.post('/v1/chat/completions', ask(WORDS), AUTH)
    return (await metric(running, SERIES)) ?? 0
  }
  const honest = await post(100)
  t.ok(honest > 1.2 && honest < 1.35, `${honest}`)
  const lied = await post(lies.length)
  t.ok(lied >= honest * 0.95 && lied < honest * 1.1, `${lies.length} lies among a hundred: ${lied}`)
  const only = await post(300)
  t.ok(only <= 3, `where nothing but lies comes: ${only}`)
})

t.test('a model may be held for by its bytes, which nothing that is reported changes', async t => {
  const up = await provider(t, chat({ usage: { prompt_tokens: 20, completion_tokens: 2, total_tokens: 22 } }))
  const running = await gateway(t, yaml(up.url, { model: 'estimate: bound' }))
  for (let i = 0; i < 34; i++) await running.post('/v1/chat/completions', ask(WORDS), AUTH)
  await running.post('/v1/chat/completions', ask(WORDS.repeat(4000)), AUTH)
  await running.stop()
  const records = await running.records()
  const bytes = (text: string) => Buffer.byteLength(text) + 10
  for (const held of [records[0], records[33]].map(record => record?.held_tokens ?? 0))
    t.ok(held >= bytes(WORDS) && held < bytes(WORDS) + 20)
  t.ok((records[34]?.held_tokens ?? 0) >= bytes(WORDS.repeat(4000)), 'a large body, too')
})
