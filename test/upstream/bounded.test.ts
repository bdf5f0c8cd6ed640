import t from 'tap'
import { bounded } from '../../src/upstream/bounded.js'

t.test('what anybody would write stays as it is', async t => {
  const told = { a: [null, true, 1.5, 'x', { b: {}, c: [] }], __proto__: null }
  t.strictSame(bounded(told), { a: [null, true, 1.5, 'x', { b: {}, c: [] }] })
  for (const plain of [undefined, null, 7, '', []]) t.strictSame(bounded(plain), plain)
  t.strictSame(Object.keys(bounded(JSON.parse('{"__proto__":{"a":1}}')) as object), ['__proto__'], 'no name is special')
})

t.test('what lies too deep, or comes after too much, is left out', async t => {
  t.strictSame(bounded(JSON.parse('['.repeat(50_000) + ']'.repeat(50_000))), [[[[[[[['…']]]]]]]])
  t.equal((bounded({ list: new Array(100_000).fill({ a: 1 }) }) as { list: object[] }).list.length, 500)
  t.equal((bounded('x'.repeat(100_000)) as string).length, 65_536)
})
