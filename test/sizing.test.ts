import t from 'tap'
import { Calibrations } from '../src/metering/calibrations.js'
import { NO_USAGE, type Usage } from '../src/metering/usage.js'
import { charge, sizeOf } from '../src/sizing.js'
import { sampleModel } from './support/sample-call.js'

const reported = (input: number): Usage => ({ ...NO_USAGE, source: 'provider', input })

t.test('a hold is sized by the upper factor, a charge without usage by the likeliest; what is counted by rule is not scaled', async t => {
  const calibrations = new Calibrations(
    [],
    async () => {},
    () => {},
  )
  const model = sampleModel({ price: { input: 1_000_000n, cached_input: 0n, output: 2_000_000n, request: 0n } })
  for (let i = 0; i < 64; i++) calibrations.learn(model, { input: 100, output: 0 }, reported(i % 2 === 0 ? 120 : 150))
  const { typical, upper } = calibrations.of(model)
  t.ok(upper > 1.5 && typical < upper)
  const estimate = { input: 1085, fixed: 85, output: 10 }
  const target = { name: model.id, weight: 1, rank: 0, model, body: {}, estimate }
  const input = 85 + Math.round(1000 * upper)
  t.strictSame(sizeOf([target], calibrations), { estimate: { input, output: 10 }, estimateRial: BigInt(input + 20) })
  t.strictSame(charge(target, calibrations), { input: 85 + Math.round(1000 * typical), factor: typical })
  const bounded = { ...target, bound: 5000 }
  t.strictSame(
    sizeOf([bounded, target], calibrations),
    { estimate: { input: 5000, output: 10 }, estimateRial: 5020n },
    'the most of all targets',
  )
  t.strictSame(charge(bounded, calibrations), charge(target, calibrations), 'nobody pays for a bound')
})

t.test('each figure is the most of all targets, be it of the first or of the last', async t => {
  const calibrations = new Calibrations(
    [],
    async () => {},
    () => {},
  )
  // Untaught, with a bound, so that the input is held as it is.
  const target = (input: number, output: number, rial: bigint) => {
    const model = sampleModel({ price: { input: 0n, cached_input: 0n, output: 0n, request: rial } })
    return { name: model.id, weight: 1, rank: 0, model, body: {}, estimate: { input, output }, bound: input }
  }
  const targets = [target(10, 50, 7n), target(30, 5, 9n), target(20, 20, 3n)]
  const most = { estimate: { input: 30, output: 50 }, estimateRial: 9n }
  t.strictSame(sizeOf(targets, calibrations), most)
  t.strictSame(sizeOf([...targets].reverse(), calibrations), most)
})

t.test('input is held for at the dearer of its two prices: none of it, or all, may come from a cache', async t => {
  const calibrations = new Calibrations(
    [],
    async () => {},
    () => {},
  )
  const held = (input: bigint, cached_input: bigint) => {
    const model = sampleModel({ price: { input, cached_input, output: 1_000_000n, request: 2n } })
    const target = { name: model.id, weight: 1, rank: 0, model, body: {}, estimate: { input: 10, output: 5 }, bound: 10 }
    return sizeOf([target], calibrations).estimateRial
  }
  t.equal(held(3_000_000n, 1_000_000n), 37n)
  t.equal(held(1_000_000n, 3_000_000n), 37n)
})
