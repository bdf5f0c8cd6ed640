import t from 'tap'
import { ENDPOINTS } from '../../src/endpoints/endpoints.js'
import { fuzz } from './fuzz.js'

t.test('a thousand hostile bodies: no error of our own, no cap above its hold, and nobody else waits', async t => {
  const { faults, cases, statuses, capped, paths, probes } = await fuzz(t, 1_000, 1)
  t.same(faults, [])
  t.equal(cases, 1_000)
  t.ok((statuses[200] ?? 0) > 20 && (statuses[400] ?? 0) > 200, JSON.stringify(statuses))
  t.ok(capped > 20, 'caps were held against holds')
  t.ok(probes > 100, 'others asked meanwhile')
  for (const { paths: of } of ENDPOINTS) t.ok((paths[of[0] as string] ?? 0) > 20, `${of[0]}`)
})
