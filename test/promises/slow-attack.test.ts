import { spawnSync } from 'node:child_process'
import t from 'tap'
import { CUT_MS, slowAttack } from './slow-attack.js'
import { ATTACKS } from './slow-attackers.js'

t.test('100 clients of each kind that send and read as slowly as they can are cut within 15 s, and nobody else is refused', async t => {
  const python = spawnSync('python3', ['--version']).status === 0
  if (!python) t.comment('slow reading is passed over: there is no python3')
  const kinds = ATTACKS.filter(kind => python || kind !== 'slow read')
  // Once: what others' times are is not asked here.
  const attacks = await slowAttack(t, 100, kinds, 1)
  t.strictSame(
    attacks.map(({ attack, connections }) => [attack, connections]),
    kinds.map(kind => [kind, 100]),
  )
  // Whether others keep their times shows where nothing else runs: as a command, which the check runs by itself.
  for (const { attack, longestMs, requests, failed } of attacks) {
    t.ok(longestMs < CUT_MS, `${attack}: ${longestMs} ms`)
    t.ok(requests > 100, `${requests} ordinary requests`)
    t.equal(failed, 0)
  }
})
