import { spawnSync } from 'node:child_process'
import t from 'tap'
import { CUT_MS, slowAttack } from './slow-attack.js'
import { ATTACKS } from './slow-attackers.js'

const noPython = spawnSync('python3', ['--version']).status === 0 ? false : 'there is no python3'

t.test('100 clients of each kind that send and read as slowly as they can are cut within 15 s, and nobody else is refused', async t => {
  // Side by side, each kind against a gateway of its own. Whether others keep their times is not asked here: that shows where nothing else runs,
  // as a command, which the check runs by itself.
  t.jobs = ATTACKS.length
  for (const kind of ATTACKS) {
    t.test(kind, { skip: kind === 'slow read' && noPython }, async t => {
      const attacks = await slowAttack(t, 100, [kind], 1)
      t.match(attacks, [{ attack: kind, connections: 100 }])
      for (const { longestMs, requests, failed } of attacks) {
        t.ok(longestMs < CUT_MS, `${longestMs} ms`)
        t.ok(requests > 20, `${requests} ordinary requests`)
        t.equal(failed, 0)
      }
    })
  }
})
