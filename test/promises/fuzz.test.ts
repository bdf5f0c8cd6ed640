import t from 'tap'
import { fuzz } from './fuzz.js'

t.test('a thousand hostile bodies: no error of our own, and no cap above its hold', async t => {
  const { faults, cases, statuses, capped } = await fuzz(t, 1_000, Math.floor(Math.random() * 2 ** 31))
  t.same(faults, [])
  t.equal(cases, 1_000)
  t.ok((statuses[200] ?? 0) > 20 && (statuses[400] ?? 0) > 200, JSON.stringify(statuses))
  t.ok(capped > 20, 'caps were held against holds')
})
