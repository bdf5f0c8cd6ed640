import fc from 'fast-check'
import t from 'tap'
import { Catalog } from '../../src/config/catalog.js'
import type { Key, Model } from '../../src/config/config.js'
import { loadConfig } from '../../src/config/load.js'

const YAML = `
providers: {a: {kind: sandbox}, b: {kind: sandbox}}
models:
  a/one: {price: free, fallback: [two, b/one]}
  a/two: {price: free}
  b/one: {price: free}
  b/nested/name: {price: free}
aliases: {default: a/one, two: a/two, second: two}
plans:
  all: {}
  only-a: {models: [a/*]}
keys:
  free: {plan: all, secret: 0123456789abcdef-1}
  star: {plan: all, secret: 0123456789abcdef-2, models: ["*"]}
  ids: {plan: all, secret: 0123456789abcdef-3, models: [b/one]}
  by-alias: {plan: all, secret: 0123456789abcdef-4, models: [second]}
  both: {plan: only-a, secret: 0123456789abcdef-5, models: [a/one, b/*]}
  none: {plan: only-a, secret: 0123456789abcdef-6, models: [b/*]}
`

const kinds = new Map([['sandbox', { baseUrl: '', surfaces: ['chat'] }]])
const { config } = loadConfig('gateway.yaml', { env: {}, kinds, readFile: () => YAML })
const catalog = new Catalog(config)
const key = (name: string) => config.keys.get(name) as Key
const model = (id: string) => config.models.get(id) as Model

t.test('finds models by identifier and by alias, exactly', async t => {
  t.equal(catalog.find('a/one'), model('a/one'))
  t.equal(catalog.find('b/nested/name')?.upstream, 'nested/name')
  t.equal(catalog.find('default'), model('a/one'))
  t.equal(catalog.find('second'), model('a/two'), 'an alias of an alias')
  for (const name of ['A/one', 'one', 'a/', '', '__proto__', 'constructor', 'toString']) t.equal(catalog.find(name), undefined, name)
})

t.test('lists what a key may use: plan and key must both allow it', async t => {
  const rows: [string, string[]][] = [
    ['free', ['a/one', 'a/two', 'b/one', 'b/nested/name', 'default', 'two', 'second']],
    ['star', ['a/one', 'a/two', 'b/one', 'b/nested/name', 'default', 'two', 'second']],
    ['ids', ['b/one']],
    ['by-alias', ['a/two', 'two', 'second']],
    ['both', ['a/one', 'default']],
    ['none', []],
  ]
  for (const [name, expected] of rows) {
    t.strictSame(
      catalog.list(key(name)).map(({ id }) => id),
      expected,
      name,
    )
    for (const { id, model } of catalog.list(key(name))) t.equal(catalog.find(id), model)
    for (const one of config.models.values()) t.equal(catalog.allowed(key(name), one), expected.includes(one.id), `${name} ${one.id}`)
  }
})

t.test('the targets of a model are itself, then its fallbacks in order', async t => {
  t.strictSame(
    catalog.targets(model('a/one')).map(({ name, rank }) => [name, rank]),
    [
      ['a/one', 0],
      ['a/two', 1],
      ['b/one', 2],
    ],
  )
  t.strictSame(catalog.targets(model('b/one')), [{ name: 'b/one', model: model('b/one'), weight: 1, rank: 0 }])
})

t.test('a list allows exactly what its entries name', async t => {
  const ids = [...config.models.keys()]
  const entry = fc.constantFrom(...ids, ...config.aliases.keys(), 'a/*', 'b/*')
  const list = fc.option(fc.array(entry, { minLength: 1, maxLength: 4 }))
  const names = (entries: readonly string[] | null, id: string) =>
    entries === null ||
    entries.some(entry => (entry.endsWith('/*') ? id.startsWith(entry.slice(0, -1)) : (config.aliases.get(entry) ?? entry) === id))
  const exact = fc.property(list, list, fc.constantFrom(...ids), (ofPlan, ofKey, id) => {
    const asked = { ...key('free'), models: ofKey, plan: { ...key('free').plan, models: ofPlan } }
    return catalog.allowed(asked, model(id)) === (names(ofPlan, id) && names(ofKey, id))
  })
  t.doesNotThrow(() => fc.assert(exact))
})
