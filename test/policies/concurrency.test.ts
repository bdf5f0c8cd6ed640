import t, { type Test } from 'tap'
import { gateway, KEY } from '../support/gateway.js'
import { chat, gate, provider } from '../support/provider.js'

const BODY = { model: 'up/m', messages: [{ role: 'user', content: 'Hello' }] }
const auth = (key: string) => ({ authorization: `Bearer ${key}` })

async function running(t: Test, settings: string) {
  const held = gate(chat())
  const up = await provider(t, held.script)
  const gw = await gateway(
    t,
    `
ledger: {path: data/ledger.db, durability: process}
policies: [auth, {use: concurrency, with: ${settings}}, budget, hold]
providers: {up: {kind: openai, base_url: "${up.url}", api_key: sk-x}}
models: {up/m: {price: {input: 1000000, output: 1000000}}}
plans: {small: {}, large: {}}
keys:
  a: {plan: small, secret: ${KEY}}
  b: {plan: small, secret: mgk_test_key_b}
  c: {plan: large, secret: mgk_test_key_c}
`,
  )
  const ask = (key: string) => gw.post('/v1/chat/completions', BODY, auth(key))
  /** So many are under way. */
  const reached = async (count: number) => {
    while (up.seen.length < count) await new Promise(resolve => setTimeout(resolve, 5))
  }
  return { held, gw, ask, reached }
}

t.test('of each key, at most so many at one time; whoever ends makes room', async t => {
  const { held, gw, ask, reached } = await running(t, '{per_key: 2}')
  const first = [ask(KEY), ask(KEY)]
  await reached(2)
  const refused = await ask(KEY)
  t.equal(refused.status, 429)
  t.strictSame(refused.json.error, {
    message:
      'Requests at one time of key a reached: ceiling 2, used 0, held 2, this request needs up to 1 requests at one time. Wait until one has ended, or raise the ceiling of the policy concurrency.',
    type: 'rate_limit_error',
    param: null,
    code: 'too_many_concurrent',
    details: { ceiling: 2, posted: 0, held: 2, asked: 1, resets_at: null, permanent: false },
  })
  t.equal(refused.headers.get('retry-after'), '1')
  const other = ask('mgk_test_key_b')
  await reached(3)
  held.open()
  for (const answer of await Promise.all([...first, other])) t.equal(answer.status, 200)
  t.equal((await ask(KEY)).status, 200)
  t.equal(await gw.stop(), 0)
  t.equal((await gw.records()).length, 4, 'who is refused is not on the record')
})

t.test('of all keys of a plan together', async t => {
  const { held, ask, reached } = await running(t, '{per_plan: {small: 2}}')
  const first = [ask(KEY), ask('mgk_test_key_b')]
  await reached(2)
  const refused = await ask(KEY)
  t.match(refused.json.error, { code: 'too_many_concurrent', message: /^Requests at one time of plan small reached: ceiling 2/ })
  const free = ['mgk_test_key_c', 'mgk_test_key_c', 'mgk_test_key_c'].map(ask)
  await reached(5)
  held.open()
  for (const answer of await Promise.all([...first, ...free])) t.equal(answer.status, 200)
})

t.test('500 at once against a ceiling of 7: never more than 7 are forwarded', async t => {
  const { held, ask, reached } = await running(t, '{per_key: 7}')
  const all = Array.from({ length: 500 }, () => ask(KEY))
  await reached(7)
  const answers = await Promise.race([Promise.all(all.map((one, i) => one.then(answer => [i, answer.status]))), settle(all, 493)])
  t.equal(answers.length, 493)
  held.open()
  t.equal((await Promise.all(all)).filter(({ status }) => status === 200).length, 7)
})

/** Resolves when so many have been answered. */
function settle(all: readonly Promise<unknown>[], count: number): Promise<unknown[]> {
  return new Promise(resolve => {
    const done: unknown[] = []
    for (const one of all) {
      void one.then(answer => {
        if (done.push(answer) === count) resolve(done)
      })
    }
  })
}

t.test('settings that are none stop the start', async t => {
  await t.rejects(running(t, '{per_key: 0}'), { message: /ended with 2[\s\S]*with\.per_key/ })
  await t.rejects(running(t, '{}'), { message: /ended with 2/ })
})
