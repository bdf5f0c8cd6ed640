import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { simulate } from './run.js'
import { World } from './world.js'

/*
 * The money of the gateway, in histories that a seed decides: see world.ts. `node dist/test/simulator/run.js 1000` lives through many more.
 */

t.test('whatever happens, ceilings hold, every hold ends once, and what was received in full is billed to the Rial', async t => {
  const faults: Record<string, number> = {}
  let reconciled = 0
  for (let seed = 1; seed <= 12; seed++) {
    const told = await simulate(seed)
    t.equal(told.failure, null, `seed ${seed}`)
    t.equal(told.differenceRial, 0n)
    reconciled += told.reconciled
    for (const [kind, count] of Object.entries(told.faults)) faults[kind] = (faults[kind] ?? 0) + count
  }
  t.ok(reconciled > 150, `${reconciled} answers were received in full`)
  t.ok(Object.keys(faults).length >= 8, Object.keys(faults).join(', '))
})

t.test('a seed has one history', async t => {
  const folder = t.testdir()
  const lived = async (name: string) => {
    mkdirSync(join(folder, name))
    return new World(7, join(folder, name)).live(400)
  }
  t.strictSame(await lived('first'), await lived('second'))
})
