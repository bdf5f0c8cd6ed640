import { pathToFileURL } from 'node:url'
import t from 'tap'
import { unknownKeywords } from '../../src/config/schema.js'
import { loadKinds, loadProviders } from '../../src/upstream/kinds.js'

t.test('each file of the folder is a kind, by its name', async t => {
  const dir = t.testdir({
    'package.json': '{"type": "module"}',
    'remote.js': `export default { wires: { chat: {}, rerank: {} }, defaults: { cap: 'max_tokens' }, options: { type: 'object' } }`,
    'known.js': `export default { baseUrl: 'https://known.example', wires: { chat: {} }, modelOptions: { type: 'object' } }`,
    'inside.js': 'export default { wires: { chat: {} }, transport() {} }',
    'shared.js': 'export const shared = 1',
    'provider.js': 'throw new Error("the contract is no kind")',
    'inside.js.map': '{}',
    'inside.d.ts': '',
  })
  const folder = pathToFileURL(`${dir}/`)
  t.strictSame([...(await loadProviders(folder)).keys()], ['inside', 'known', 'remote'])
  t.strictSame(
    await loadKinds(folder),
    new Map([
      ['inside', { baseUrl: '', surfaces: ['chat'] }],
      ['known', { baseUrl: 'https://known.example', modelOptions: { type: 'object' }, surfaces: ['chat'] }],
      ['remote', { defaults: { cap: 'max_tokens' }, options: { type: 'object' }, surfaces: ['chat', 'rerank'] }],
    ]),
  )
})

t.test('the kinds that are built in all load', async t => {
  for (const [kind, provider] of await loadProviders()) {
    t.equal(provider.kind, kind)
    t.strictSame(
      [...unknownKeywords(provider.options ?? {}), ...unknownKeywords(provider.modelOptions ?? {})],
      [],
      `${kind} is checked as its schemas say`,
    )
  }
})
