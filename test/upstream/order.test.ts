import fc from 'fast-check'
import t from 'tap'
import { ordered } from '../../src/upstream/order.js'

/** Numbers from 0 up to 1 that a seed gives, again and again the same. */
function seeded(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

const places = fc
  .array(fc.record({ weight: fc.integer({ min: 0, max: 1000 }), rank: fc.integer({ min: 0, max: 3 }) }), { minLength: 1, maxLength: 12 })
  .map(list => list.sort((a, b) => a.rank - b.rank).map((place, id) => ({ ...place, id })))
const chance = fc.integer().map(seeded)

t.test('all are there once, by rank, and who has no weight comes last within its rank', async t => {
  fc.assert(
    fc.property(places, chance, (targets, random) => {
      const order = ordered(targets, random)
      const ids = order.map(({ id }) => id).sort((a, b) => a - b)
      const follows = order.every((one, i) => {
        const next = order[i + 1]
        return next === undefined || one.rank < next.rank || (one.rank === next.rank && (one.weight > 0 || next.weight === 0))
      })
      return follows && ids.join() === targets.map(({ id }) => id).join()
    }),
  )
  t.pass('for any weights and ranks')
})

t.test('the same chance gives the same order, and the list itself stays as it is', async t => {
  fc.assert(
    fc.property(places, fc.integer(), (targets, seed) => {
      const before = JSON.stringify(targets)
      const [one, two] = [ordered(targets, seeded(seed)), ordered(targets, seeded(seed))]
      return JSON.stringify(one) === JSON.stringify(two) && JSON.stringify(targets) === before
    }),
  )
  t.pass('for any seed')
})

t.test('each is first as often as its weight says', async t => {
  const targets = [
    { name: 'a', weight: 6, rank: 0 },
    { name: 'b', weight: 3, rank: 0 },
    { name: 'c', weight: 1, rank: 0 },
    { name: 'spare', weight: 0, rank: 0 },
  ]
  const random = seeded(7)
  const firsts = new Map<string, number>()
  const rounds = 20_000
  for (let i = 0; i < rounds; i++) {
    const [first] = ordered(targets, random)
    firsts.set(first?.name as string, (firsts.get(first?.name as string) ?? 0) + 1)
  }
  for (const { name, weight } of targets) {
    const share = (firsts.get(name) ?? 0) / rounds
    t.ok(Math.abs(share - weight / 10) < 0.015, `${name}: ${share}`)
  }
})

t.test('the ends of chance', async t => {
  const targets = [
    { name: 'a', weight: 0, rank: 0 },
    { name: 'b', weight: 2, rank: 0 },
    { name: 'c', weight: 1, rank: 0 },
  ]
  t.strictSame(
    ordered(targets, () => 0).map(({ name }) => name),
    ['b', 'c', 'a'],
  )
  t.strictSame(
    ordered(targets, () => 1 - 2 ** -53).map(({ name }) => name),
    ['c', 'b', 'a'],
  )
})
