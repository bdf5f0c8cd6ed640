import assert from 'node:assert/strict'
import { test } from 'node:test'
import { generateText } from 'ai'
import { gateway } from './support/gateway.mjs'
import { aiSdk, cohereV2, langchain, OPENAI, openai } from './support/libraries.mjs'

const PRICE = { input: 1_000_000, output: 1_000_000 }
const HELLO = [{ role: 'user', content: 'Hello' }]
const DOCUMENTS = { model: 'sandbox/echo', query: 'Hello', documents: ['Hello', 'Bye'] }

/** One key for each library and ceiling, so that none uses up another's. */
const LIBRARIES = {
  'openai-6': (apiKey, model, maxRetries) => chat(OPENAI[0].module, apiKey, model, maxRetries),
  'openai-7': (apiKey, model, maxRetries) => chat(OPENAI[1].module, apiKey, model, maxRetries),
  ai: (apiKey, model, maxRetries) => generateText({ model: aiSdk(running, { apiKey })(model), prompt: 'Hello', maxRetries }),
  langchain: (apiKey, model, maxRetries) => langchain(running, { apiKey, model, maxRetries }).invoke('Hello'),
  'cohere-ai': (apiKey, model, maxRetries) => cohereV2(running, { apiKey }).rerank({ ...DOCUMENTS, model }, { maxRetries }),
}
const names = Object.keys(LIBRARIES)
const each = (ceiling, settings) =>
  names.map(name => [`${ceiling}-${name}`, { secret: `mgk_${ceiling}_${name}`, plan: 'open', account: 'rich', ...settings }])

const running = await gateway(
  {
    models: Object.fromEntries(
      names.map(name => [`sandbox/fails-once-${name}`, { price: PRICE, options: { fail: { status: 503, times: 1 } } }]),
    ),
    plans: { rpm: { requests_per_minute: 1 } },
    accounts: { poor: { opening_balance_rial: 1 } },
    keys: Object.fromEntries([
      ...each('rpm', { plan: 'rpm' }),
      ...each('daily', { budget: { daily_tokens: 1 } }),
      ...each('rial', { budget: { daily_rial: 1 } }),
      ...each('poor', { account: 'poor' }),
      ...each('capped', { budget: { monthly_rial: 1 } }),
      ...each('fails', {}),
    ]),
  },
  { env: { NODE_OPTIONS: `--import ${new URL('support/clock.mjs', import.meta.url)}` } },
)

test('429 rpm: every library waits as long as retry-after says, and succeeds in the next window', { timeout: 30_000 }, async t => {
  running.process.kill('SIGUSR2')
  const first = await Promise.all(names.map(name => LIBRARIES[name](`mgk_rpm_${name}`, 'sandbox/echo', 2)))
  assert.equal(first.length, names.length)
  for (const [i, waited] of (
    await Promise.all(names.map(name => timed(LIBRARIES[name](`mgk_rpm_${name}`, 'sandbox/echo', 2))))
  ).entries()) {
    await t.test(`${names[i]}: succeeds on its second try`, async () => {
      assert.equal(waited.error, undefined)
      assert.deepEqual(await statuses(`rpm-${names[i]}`), [200, 429, 200])
      assert.ok(waited.ms >= 1000 && waited.ms < 10_000, `${Math.round(waited.ms)} ms`)
    })
  }
})

// The ai SDK and cohere-ai do not look at x-should-retry.
for (const name of ['openai-6', 'openai-7', 'langchain']) {
  for (const [key, code] of [
    ['daily', 'key_daily_token_budget_reached'],
    ['rial', 'key_daily_budget_reached'],
  ]) {
    test(`429 ${code}: ${name} does not try again`, async () => {
      const { error, ms } = await timed(LIBRARIES[name](`mgk_${key}_${name}`, 'sandbox/echo', 2))
      assert.equal(error.status, 429)
      assert.equal(error.code, code)
      assert.deepEqual(await statuses(`${key}-${name}`), [429])
      assert.ok(ms < 1000, `${Math.round(ms)} ms`)
    })
  }
}

for (const name of names) {
  for (const key of ['poor', 'capped']) {
    test(`402 ${key === 'poor' ? 'insufficient_balance' : 'monthly_cap_reached'}: ${name} does not try again`, async () => {
      const { error } = await timed(LIBRARIES[name](`mgk_${key}_${name}`, 'sandbox/echo', 2))
      assert.equal(error.status ?? error.statusCode, 402)
      assert.deepEqual(await statuses(`${key}-${name}`), [402])
    })
  }

  test(`502: ${name} tries again, and succeeds when the provider is back`, async () => {
    const { error } = await timed(LIBRARIES[name](`mgk_fails_${name}`, `sandbox/fails-once-${name}`, 2))
    assert.equal(error, undefined)
    assert.deepEqual(await statuses(`fails-${name}`), [502, 200])
  })
}

test('only what was answered is charged', async () => {
  const records = [...(await running.bills()).values()]
  for (const name of names) {
    assert.deepEqual(
      records.filter(record => record.key === `fails-${name}`).map(({ state, cost_rial }) => [state, cost_rial > 0n]),
      [
        ['voided', false],
        ['settled', true],
      ],
    )
    assert.equal(records.filter(record => record.key === `rpm-${name}`).length, 2)
    assert.equal(records.filter(record => /^(daily|rial|poor|capped)-/.test(record.key)).length, 0)
  }
})

function chat(module, apiKey, model, maxRetries) {
  return openai(running, { module, apiKey, maxRetries }).chat.completions.create({ model, messages: HELLO })
}

const statuses = async key => (await running.requestsOf(key)).map(line => line.status)

async function timed(pending) {
  const from = performance.now()
  const error = await pending.then(
    () => undefined,
    reason => reason,
  )
  return { error, ms: performance.now() - from }
}
