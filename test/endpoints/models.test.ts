import t from 'tap'
import { Catalog } from '../../src/config/catalog.js'
import type { Key } from '../../src/config/config.js'
import { modelPage, modelsPage } from '../../src/endpoints/models.js'
import type { Exchange } from '../../src/exchange.js'
import type { Runtime, Services } from '../../src/runtime.js'
import { kindsOf, loadProviders } from '../../src/upstream/kinds.js'
import { Wires } from '../../src/upstream/upstream.js'
import { load } from '../config/loading.js'

const providers = await loadProviders()
const { config } = load(
  `providers:
  openai: {kind: openai}
  acme-eu: {kind: sandbox}
models:
  openai/gpt-4o: {price: {input: 7, output: 9}, parameters: [temperature, tools, suffix], fallback: [acme-eu/secret-name]}
  openai/both: {price: free, surfaces: [completions, chat], parameters: [temperature, tools, suffix, dimensions]}
  openai/ranks: {price: {request: 5}, surfaces: [rerank], upstream: secret-upstream}
  acme-eu/secret-name: {price: free}
aliases: {fast: openai/gpt-4o}
plans: {p: {models: ["openai/*", fast]}}
keys: {k: {plan: p, secret: mgk_0123456789abcdef}}
`,
  { kinds: kindsOf(providers) },
)
const exchange = { key: config.keys.get('k') as Key } as unknown as Exchange
const runtime = { catalog: new Catalog(config), upstreams: new Wires(config, providers) } as unknown as Runtime
/** The pages need none of them. */
const services = {} as Services
const card = (id: string) => modelPage.answer(exchange, id, runtime, services)

t.test('the card of a model: surfaces, what each takes, caps and prices', async t => {
  t.strictSame(await card('openai/gpt-4o'), {
    id: 'openai/gpt-4o',
    object: 'model',
    created: Date.UTC(2025, 0, 1) / 1000,
    owned_by: 'openai',
    model: 'openai/gpt-4o',
    surfaces: ['chat'],
    parameters: ['temperature', 'tools'],
    parameters_by_surface: { chat: ['temperature', 'tools'] },
    context: 128000,
    max_output_tokens: 16384,
    default_max_tokens: 2048,
    price: { input: 7, cached_input: 7, output: 9, request: 0 },
  })
})

t.test('what one surface takes is not said of another', async t => {
  t.match(await card('openai/both'), {
    parameters: ['suffix', 'temperature', 'tools'],
    parameters_by_surface: { chat: ['temperature', 'tools'], completions: ['suffix', 'temperature'] },
    price: null,
    context: null,
    max_output_tokens: null,
  })
  t.match(await card('openai/ranks'), { surfaces: ['rerank'], parameters: ['max_tokens_per_doc'], price: { request: 5 } })
})

t.test('an alias has the card of its model, under its own name', async t => {
  t.match(await card('fast'), { id: 'fast', model: 'openai/gpt-4o', owned_by: 'openai' })
})

t.test('who answers for a model is not shown, nor that there are models of others', async t => {
  for (const id of ['openai/gpt-4o', 'openai/ranks', 'fast']) t.notMatch(JSON.stringify(await card(id)), /secret-|acme-eu/, id)
  t.notMatch(JSON.stringify(await modelsPage.answer(exchange, '', runtime, services)), /secret-|acme-eu/)
  for (const id of ['acme-eu/secret-name', 'openai/none', 'constructor']) {
    await t.rejects(card(id), {
      code: 'model_not_found',
      message: 'There is no such model for this key. GET /v1/models lists those there are.',
    })
  }
})
