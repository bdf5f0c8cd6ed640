import { spawnSync } from 'node:child_process'
import t from 'tap'
import { faults, slowAttack } from './slow-attack.js'
import { ATTACKS } from './slow-attackers.js'

t.test('100 clients of each kind that send and read as slowly as they can are cut within 15 s, and nobody else notices', async t => {
  const python = spawnSync('python3', ['--version']).status === 0
  if (!python) t.comment('slow reading is passed over: there is no python3')
  const kinds = ATTACKS.filter(kind => python || kind !== 'slow read')
  const attacks = await slowAttack(t, 100, kinds)
  t.strictSame(
    attacks.map(({ attack, connections }) => [attack, connections]),
    kinds.map(kind => [kind, 100]),
  )
  t.strictSame(
    attacks.flatMap(one => faults([one])),
    [],
  )
  for (const { requests } of attacks) t.ok(requests > 100, `${requests} ordinary requests`)
})
