import fc from 'fast-check'
import t from 'tap'
import { Calibration, RATIO_MAX, RATIO_MIN, SAMPLES_MAX, SAMPLES_MIN, UNCORRECTED } from '../../src/metering/calibration.js'

function taught(ratios: Iterable<number>): Calibration {
  const calibration = new Calibration()
  for (const ratio of ratios) calibration.learn(ratio)
  return calibration
}

const times = (count: number, ratio: number) => new Array<number>(count).fill(ratio)
/** A width of a bin and a half, for figures that were rounded to bins. */
const near = (found: number, expected: number) => Math.abs(Math.log(found / expected)) < 0.03

/** What a provider may say: sound ratios, and anything else. */
const anyRatio = fc.oneof(
  fc.double({ min: 0.6, max: 2, noNaN: true }),
  fc.double(),
  fc.constantFrom(0, -1, Number.NaN, Number.POSITIVE_INFINITY, Number.MIN_VALUE, Number.MAX_VALUE),
)

t.test('whatever is reported, the correction stays within its bounds and the likeliest is never above the hold', async () => {
  fc.assert(
    fc.property(fc.array(anyRatio, { maxLength: 300 }), ratios => {
      const { typical, upper } = taught(ratios).correction
      return typical >= RATIO_MIN && typical <= upper && upper <= RATIO_MAX
    }),
  )
})

t.test('nothing is corrected before there are enough samples, and what is no ratio is none', async t => {
  t.strictSame(taught(times(SAMPLES_MIN - 1, 2)).correction, UNCORRECTED)
  t.strictSame(taught([...times(SAMPLES_MIN - 1, 2), 0, -3, Number.NaN]).correction, UNCORRECTED)
  const { typical, upper } = taught(times(SAMPLES_MIN, 2)).correction
  t.ok(near(typical, 2), `typical ${typical}`)
  t.ok(upper > 2 && upper < 2 * 1.1, `upper ${upper}`)
})

t.test('the hold covers all but few of the samples that taught it, whatever their spread', async () => {
  const ratios = fc
    .tuple(fc.double({ min: 0.6, max: 1.8, noNaN: true }), fc.double({ min: 0, max: 0.3, noNaN: true }))
    .chain(([centre, spread]) =>
      fc
        .array(fc.double({ min: -1, max: 1, noNaN: true }), { minLength: 50, maxLength: 400 })
        .map(all => all.map(x => centre * Math.exp(spread * x))),
    )
  fc.assert(
    fc.property(ratios, all => {
      const { upper } = taught(all).correction
      // Tails that reach beyond three times the way from the median to the nine tenths are cut: at most a tenth can be there.
      const sorted = [...all].sort((a, b) => a - b)
      const median = sorted[Math.floor(all.length / 2)] as number
      const most = sorted[sorted.length - 1] as number
      const above = all.filter(ratio => ratio > upper * 1.0001).length
      return above <= all.length / 10 && (above === 0 || most > median * 1.02 || all.length > 200)
    }),
  )
})

t.test('some lies among many samples move the hold by no more than honest neighbours allow', async () => {
  fc.assert(
    fc.property(fc.integer({ min: 50, max: 900 }), fc.array(anyRatio, { maxLength: 4 }), (count, lies) => {
      const honest = Array.from({ length: count }, (_, i) => 0.9 + (i % 11) / 100)
      const { typical, upper } = taught([...honest, ...lies]).correction
      return near(typical, 0.95) && upper > 1 && upper < 1.25
    }),
  )
})

t.test('what is over is forgotten: a model that changes is learned anew, upwards at once, downwards slowly', async t => {
  const calibration = taught(times(SAMPLES_MAX, 0.9))
  for (const ratio of times(120, 1.4)) calibration.learn(ratio)
  t.ok(calibration.correction.upper >= 1.05, `up after 120 of 1144: ${calibration.correction.upper}`)
  for (const ratio of times(6 * SAMPLES_MAX, 0.7)) calibration.learn(ratio)
  const { typical, upper } = calibration.correction
  t.ok(near(typical, 0.7) && near(upper, 0.735), `${typical}, ${upper}`)
  t.ok(calibration.samples <= SAMPLES_MAX)
})

t.test('what is written is read as it was; what is not of that form is nothing', async t => {
  fc.assert(
    fc.property(fc.array(anyRatio, { maxLength: 3000 }), ratios => {
      const calibration = taught(ratios)
      const read = Calibration.read(calibration.write())
      t.strictSame(read?.correction, calibration.correction)
      return read?.samples === calibration.samples && read.write() === calibration.write()
    }),
    { numRuns: 30 },
  )
  for (const text of [
    '',
    '{}',
    '7',
    '[7]',
    '[[1]]',
    '[[1,0]]',
    '[[1,-1]]',
    '[[1,1.5]]',
    '[[90,1]]',
    '[[-1,1]]',
    '[["1",1]]',
    '[[1,1025]]',
    '[[1,1000],[2,25]]',
    '[[1,2,3]]',
  ])
    t.equal(Calibration.read(text), null, text)
  t.equal(Calibration.read('[]')?.samples, 0)
})
