import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { gateway, KEY } from '../support/gateway.js'
import { provider } from '../support/provider.js'

t.test('a model of the catalog is served at the price of its file, and a change of that file counts at once', async t => {
  const { url } = await provider(t)
  const folder = t.testdir({ 'prices.yaml': 'openai/gpt-4o: {input: 1000000, output: 2000000}\n' })
  const running = await gateway(
    t,
    `
ledger: {path: data/ledger.db, durability: process}
providers: {openai: {kind: openai, base_url: "${url}", api_key: k}}
catalog: [openai]
prices: prices.yaml
plans: {p: {}}
keys: {a: {plan: p, secret: ${KEY}}}
`,
    { folder },
  )
  const prices = (text: string): void => writeFileSync(join(folder, 'prices.yaml'), text)
  const ask = (model: string) => running.post('/v1/chat/completions', { model, messages: [{ role: 'user', content: 'Hi' }] })
  const listed = async () => (await running.get('/v1/models')).json.data.map(({ id }: { id: string }) => id)

  t.strictSame(await listed(), ['openai/gpt-4o'])
  t.equal((await ask('openai/gpt-4o')).status, 200)
  t.match(await ask('openai/gpt-4o-mini'), { status: 404, json: { error: { code: 'model_not_found' } } })

  prices('openai/gpt-4o: {input: 1000000, output: 2000000, outputt: 1}\n')
  t.match(await running.line('the config was not reloaded'), {
    message: /prices\.yaml:1:50: openai\/gpt-4o\.outputt: unknown key \(did you mean "output"\?\)$/,
  })
  t.match((await running.get('/v1/models/openai%2Fgpt-4o')).json.price, { output: 2000000 }, 'what is right goes on')

  prices('openai/gpt-4o: {input: 3000000, output: 5000000}\nopenai/gpt-4o-mini: free\n')
  await running.line('the config was reloaded')
  t.strictSame(await listed(), ['openai/gpt-4o', 'openai/gpt-4o-mini'])
  t.equal((await ask('openai/gpt-4o')).status, 200)
  t.equal((await ask('openai/gpt-4o-mini')).status, 200)

  t.equal(await running.stop(), 0)
  const costs = (await running.records()).map(({ model, cost_rial }) => `${model} ${cost_rial}`).sort()
  t.strictSame(costs, ['openai/gpt-4o 13', 'openai/gpt-4o 37', 'openai/gpt-4o-mini 0'], '9 tokens in, 2 out')
})
