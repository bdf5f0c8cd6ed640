import t from 'tap'
import { Catalog } from '../src/config/catalog.js'
import type { Key } from '../src/config/config.js'
import chat from '../src/endpoints/chat-completions.js'
import type { JsonObject } from '../src/json.js'
import { checked, understand } from '../src/understand.js'
import { kindsOf, loadProviders } from '../src/upstream/kinds.js'
import { Wires } from '../src/upstream/upstream.js'
import { load } from './config/loading.js'

const providers = await loadProviders()
const { config } = load(
  `providers: {openai: {kind: openai}, anthropic: {kind: anthropic}}
models:
  openai/all: &m {price: {input: 1000000, output: 0}, surfaces: [chat], max_output_tokens: 100}
  openai/plain: {<<: *m, parameters: [temperature]}
  openai/falls: {<<: *m, parameters: [], fallback: [openai/all]}
  anthropic/m: {<<: *m}
plans: {p: {}}
keys: {k: {plan: p, secret: mgk_0123456789abcdef}}
`,
  { kinds: kindsOf(providers) },
)
const where = { catalog: new Catalog(config), upstreams: new Wires(config, providers) }
const tools = [{ type: 'function', function: { name: 'f', description: 'A long story about the weather. '.repeat(50), parameters: {} } }]
const asked = (model: string, more: JsonObject = {}) =>
  understand(checked({ model, messages: [{ role: 'user', content: 'Hi' }], ...more }, chat), chat, where, config.keys.get('k') as Key)

t.test('what a model does not take is dropped before the hold is computed', async t => {
  const bare = asked('openai/plain')
  const dropped = asked('openai/plain', { tools, response_format: { type: 'json_object' }, unheard_of: 'x'.repeat(9999), top_p: 0.5 })
  t.strictSame(dropped.targets[0]?.body, bare.targets[0]?.body, 'nothing of it is forwarded')
  t.strictSame([dropped.estimate, dropped.estimateRial], [bare.estimate, bare.estimateRial], 'and nothing of it is held for')
  const taken = asked('openai/all', { tools })
  t.ok(taken.estimateRial > bare.estimateRial + 200n, `${taken.estimateRial} Rial with the tools, ${bare.estimateRial} without`)
})

t.test('the hold is for the target that takes the most', async t => {
  const { targets, estimateRial } = asked('openai/falls', { tools })
  t.strictSame(
    targets.map(({ body }) => 'tools' in body),
    [false, true],
  )
  t.equal(estimateRial, asked('openai/all', { tools }).estimateRial)
})

t.test('n is no parameter of single models: it is always forwarded and held for', async t => {
  const { targets, estimate } = asked('openai/plain', { n: 3 })
  t.equal(targets[0]?.body.n, 3)
  t.equal(estimate.output, 300)
})
