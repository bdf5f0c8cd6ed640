import t from 'tap'
import { load, problems } from './loading.js'

const PROVIDERS = `providers:
  openai: {kind: openai, base_url: "https://x.example"}
  s: {kind: sandbox}
`
const CATALOG = `${PROVIDERS}catalog: [openai]\n`
const files = (prices: string) => ({ files: { '/etc/gw/prices.yaml': prices } })

t.test('a model of the catalog is served at its price, with all that is known of it', async t => {
  const { config, warnings, unpriced } = load(
    `${CATALOG}prices: {openai/gpt-4o: {input: 5, output: 9}, openai/o1: free, openai/omni-moderation-latest: {request: 1}}\n`,
  )
  t.strictSame([...config.models.keys()], ['openai/gpt-4o', 'openai/omni-moderation-latest', 'openai/o1'])
  const { provider, ...model } = config.models.get('openai/gpt-4o') ?? { provider: undefined }
  t.equal(provider, config.providers.get('openai'))
  t.strictSame(model, {
    id: 'openai/gpt-4o',
    attempts: 3,
    upstream: 'gpt-4o',
    price: { input: 5n, cached_input: 5n, output: 9n, request: 0n },
    max_output_tokens: 16384,
    default_max_tokens: 2048,
    context: 128000,
    tokenizer: null,
    estimate: 'calibrated',
    parameters: null,
    surfaces: ['chat'],
    fallback: [],
    created: Date.UTC(2025, 0, 1) / 1000,
    options: {},
  })
  t.match(config.models.get('openai/o1'), { price: null, cap: 'max_completion_tokens' })
  t.strictSame(warnings, [])
  t.match(unpriced.slice(0, 2), [
    { id: 'openai/gpt-4o-mini', missing: ['input', 'output'] },
    { id: 'openai/gpt-4.1', missing: ['input', 'output'] },
  ])
  t.match(
    unpriced.find(({ id }) => id === 'openai/text-embedding-3-small'),
    { missing: ['input'] },
    'what generates nothing needs no price of output',
  )
})

t.test('half a price is none: the model is not served, and what is missing is known', async t => {
  const { config, unpriced } = load(`${CATALOG}prices: {openai/gpt-4o: {input: 5}, openai/o1: {output: 5}, openai/o3: {cached_input: 1}}\n`)
  t.strictSame([...config.models.keys()], [])
  t.strictSame(
    unpriced.filter(({ id }) => /gpt-4o$|o[13]$/.test(id)),
    [
      { id: 'openai/gpt-4o', missing: ['output'] },
      { id: 'openai/o1', missing: ['input'] },
      { id: 'openai/o3', missing: ['input', 'output'] },
    ],
  )
})

t.test('what stands in models wins, and may have its price in prices', async t => {
  const { config } = load(`${CATALOG}models:
  openai/gpt-4o: {max_output_tokens: 9, price: {input: 1, output: 2}}
  openai/o1: {context: 7}
  s/m: {}
prices: {openai/gpt-4o: free, openai/o1: {input: 3, output: 4}, s/m: {request: 8}}
`)
  const price = (id: string) => config.models.get(id)?.price
  t.match(config.models.get('openai/gpt-4o'), { max_output_tokens: 9, context: 128000, price: { input: 1n, output: 2n } })
  t.match(config.models.get('openai/o1'), { context: 7, price: { input: 3n, output: 4n } })
  t.strictSame(price('s/m'), { input: 0n, cached_input: 0n, output: 0n, request: 8n })
})

t.test('prices in a file of their own: converted at the rates of gateway.yaml, and followed', async t => {
  const prices = 'openai/gpt-4o: {input: {usd: 2.50}, output: {usd: 10}, markup: 2}\nopenai/o1: {input: {usd: 0.1}, output: 7}\n'
  const { config, files: followed } = load(`${CATALOG}rates: {usd: 1000}\nmarkup: 1.5\nprices: "\${WHERE:-./prices.yaml}"\n`, files(prices))
  t.strictSame(config.models.get('openai/gpt-4o')?.price, { input: 5000n, cached_input: 5000n, output: 20000n, request: 0n })
  t.strictSame(config.models.get('openai/o1')?.price, { input: 150n, cached_input: 150n, output: 7n, request: 0n })
  t.strictSame(followed, ['/etc/gw/prices.yaml'])
})

t.test('what is wrong with the prices is said where it stands, after what is wrong with gateway.yaml', async t => {
  const lines = (yaml: string, prices: string) => problems(`${CATALOG}prices: prices.yaml\n${yaml}`, files(prices))
  const rows: [string, string, string, string[]][] = [
    [
      'values',
      'drain_timeout: 7\n',
      'openai/gpt-4o: {input: -1, output: 2}\nopenai/o1:\n  input: {usd: 2}\n  output: 3\ngpt-5: free\n',
      [
        'gateway.yaml:6:16: drain_timeout: must be a duration with its unit, such as 250ms, 5s, 10m, 1h or 1h30m, not a number',
        'prices.yaml:1:24: openai/gpt-4o.input: must be at least 0',
        'prices.yaml:3:11: openai/o1.input.usd: there is no rate for "usd": rates: {usd: 1050000} would be one for usd',
        'prices.yaml:5:1: gpt-5: the name must be an identifier of the form <provider>/<model>, without spaces',
      ],
    ],
    ['a name twice', '', 'openai/o1: free\nopenai/o1: free\n', ['prices.yaml:2:1: openai/o1: stands here twice: which one counts?']],
    ['syntax', '', 'a: b: c\n', ['prices.yaml:1:4: YAML: nested mappings are not allowed in compact mappings']],
    ['no map', '', '- a\n', ['gateway.yaml:5:9: prices: /etc/gw/prices.yaml must hold a map of models and their prices']],
    [
      'half a price of a model that is listed',
      'models: {s/m: {}}\n',
      's/m: {input: 1}\n',
      ['prices.yaml:1:6: s/m: "output" is missing (0 where it costs nothing; or give `surfaces` that generate no text)'],
    ],
    ['no price of a model that is listed', 'models: {s/m: {}}\n', '', ['gateway.yaml:6:15: models.s/m: "price" is missing']],
  ]
  for (const [name, yaml, prices, expected] of rows) t.strictSame(lines(yaml, prices), expected, name)
  t.strictSame(
    problems(`${CATALOG}prices: gone.yaml\nmodels: {s/m: {}}\naliases: {a: openai/o1}\n`),
    ['gateway.yaml:5:9: prices: cannot read /etc/gw/gone.yaml: there is no such file'],
    'nothing is said of prices that nobody could read',
  )
})

t.test('a catalog that means nobody, and names that lead to what is not served', async t => {
  t.match(problems(`${PROVIDERS}catalog: [opnai]\n`), [
    /^gateway\.yaml:4:11: catalog\[0\]: there is no file .* "opnai" \(there are .*openai/,
  ])
  t.strictSame(problems(`${PROVIDERS}catalog: [mistral]\n`), [
    'gateway.yaml:4:11: catalog[0]: no provider has this name, or is of this kind at its own address',
  ])
  t.strictSame(problems(`${CATALOG}prices: {openai/o1: free}\naliases: {a: openai/o3, b: openai/o1}\n`), [
    'gateway.yaml:6:14: aliases.a: "openai/o3" is in the catalog, but prices has no whole price for it: it is not served',
  ])
  t.strictSame(problems(PROVIDERS), ['gateway.yaml:1:1: "models" is missing'], 'without a catalog there must be models')
})

t.test('a kind means its own models at its own address only', async t => {
  const kinds = new Map([
    ['gemini-compat', { baseUrl: 'https://own.example', surfaces: ['chat'] }],
    ['voyage', { baseUrl: 'https://voyage.example', surfaces: ['rerank'] }],
  ])
  const ids = (provider: string, name: string) =>
    load(
      `providers: {${provider}}\ncatalog: [${name}]\nprices: {a/gemini-2.5-pro: free, voyage/rerank-1: free, voyage/voyage-code-3: free}\n`,
      { kinds },
    )
  t.strictSame([...ids('a: {kind: gemini-compat}', 'gemini').config.models.keys()], ['a/gemini-2.5-pro'])
  t.throws(() => ids('a: {kind: gemini-compat, base_url: "https://other.example"}', 'gemini'), { name: 'ConfigError' })
  const { config, unpriced } = ids('voyage: {kind: voyage, base_url: "https://other.example"}', 'voyage')
  t.strictSame([...config.models.keys()], ['voyage/rerank-1'], 'by its name; what its kind can not be asked for is left out')
  t.notMatch(
    unpriced.map(({ id }) => id),
    ['voyage/voyage-code-3'],
  )
})

t.test('what an operator should know', async t => {
  t.strictSame(load(CATALOG).warnings, [
    'gateway.yaml:4:11: none of these models has a price in prices, so that none is served; `model-gateway check` lists them',
  ])
  t.strictSame(
    load(`${CATALOG}prices: prices.yaml\n`, files('openai/o1: free\nopenai/o33: free\nelsewhere/m: free\n')).warnings,
    ['prices.yaml:2:13: prices no model of this gateway (did you mean "openai/o3"?)'],
    'prices of providers that are not here may be meant for another gateway',
  )
})
