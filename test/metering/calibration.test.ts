import fc from 'fast-check'
import t from 'tap'
import type { KeptCalibration } from '../../src/ledger/calibration-book.js'
import { Calibration, RATIO_MAX, RATIO_MIN, SAMPLES_MAX, SAMPLES_MIN, UNCORRECTED } from '../../src/metering/calibration.js'
import { Calibrations } from '../../src/metering/calibrations.js'
import { NO_USAGE, type Usage } from '../../src/metering/usage.js'
import { inputCharged, sizeOf } from '../../src/sizing.js'
import { sampleModel } from '../support/sample-call.js'

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
  t.ok(upper > 2 && upper < 2 * 1.07, `upper ${upper}`)
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

const reported = (input: number): Usage => ({ ...NO_USAGE, source: 'provider', input })

function learned(kept: readonly KeptCalibration[] = [], fails = false) {
  const written: KeptCalibration[][] = []
  const failures: unknown[] = []
  const keep = async (batch: readonly KeptCalibration[]) => {
    if (fails) throw new Error('the disk is gone')
    written.push([...batch])
  }
  return { calibrations: new Calibrations(kept, keep, error => failures.push(error)), written, failures }
}

t.test('texts teach; what was not reported, or was counted by rule, does not', async t => {
  const { calibrations } = learned()
  const model = sampleModel()
  const teach = (estimate: { input: number; fixed?: number }, usage: Usage) => {
    for (let i = 0; i < SAMPLES_MIN; i++) calibrations.learn(model, { ...estimate, output: 0 }, usage)
  }
  for (const source of ['counted', 'estimate', 'none'] as const) teach({ input: 100 }, { ...reported(200), source })
  teach({ input: 100, fixed: 85 }, reported(200))
  teach({ input: 100 }, reported(0))
  teach({ input: 0 }, reported(5))
  t.strictSame(calibrations.of(model), UNCORRECTED)
  teach({ input: 100, fixed: 0 }, reported(200))
  t.ok(near(calibrations.of(model).typical, 2))
})

t.test('a model is taught for itself, under the tokenizer and the name upstream that it has; a bound is never corrected', async t => {
  const { calibrations } = learned()
  const model = sampleModel({ tokenizer: 'o200k' })
  const bytes = sampleModel({ tokenizer: 'bytes' })
  for (const one of [model, bytes]) for (let i = 0; i < SAMPLES_MIN; i++) calibrations.learn(one, { input: 100, output: 0 }, reported(150))
  t.ok(near(calibrations.of(model).typical, 1.5))
  t.strictSame(calibrations.of(sampleModel({ tokenizer: 'o200k' })), calibrations.of(model), 'the same model of a reloaded config')
  for (const other of [
    bytes,
    sampleModel({ id: 'acme/model-2', tokenizer: 'o200k' }),
    sampleModel({ tokenizer: 'llama' }),
    sampleModel({ tokenizer: 'o200k', upstream: 'model-2' }),
  ])
    t.strictSame(calibrations.of(other), UNCORRECTED)
})

t.test('what was learned is kept every 32 samples and at the end, and the next run goes on from there', async t => {
  const { calibrations, written } = learned()
  const model = sampleModel()
  for (let i = 0; i < 40; i++) calibrations.learn(model, { input: 100, output: 0 }, reported(120))
  t.equal(written.length, 1)
  await calibrations.flush()
  await calibrations.flush()
  t.equal(written.length, 2, 'what is kept already is not written again')
  const [kept] = written[1] as [KeptCalibration]
  t.equal(kept.model, model.id)
  t.strictSame(learned([kept]).calibrations.of(model), calibrations.of(model))
  t.strictSame(learned([{ ...kept, state: 'null' }]).calibrations.of(model), UNCORRECTED)
})

t.test('what can not be kept is told, and goes on counting', async t => {
  const { calibrations, failures } = learned([], true)
  const model = sampleModel()
  for (let i = 0; i < 32; i++) calibrations.learn(model, { input: 100, output: 0 }, reported(120))
  await new Promise(setImmediate)
  t.match(failures, [{ message: 'the disk is gone' }])
  t.ok(near(calibrations.of(model).typical, 1.2))
  calibrations.learn(model, { input: 100, output: 0 }, reported(120))
  await t.rejects(calibrations.flush(), { message: 'the disk is gone' })
})

t.test('a hold is sized by the upper factor, a charge without usage by the likeliest; what is counted by rule is not scaled', async t => {
  const { calibrations } = learned()
  const model = sampleModel({ price: { input: 1_000_000n, cached_input: 0n, output: 2_000_000n, request: 0n } })
  for (let i = 0; i < 64; i++) calibrations.learn(model, { input: 100, output: 0 }, reported(i % 2 === 0 ? 120 : 150))
  const { typical, upper } = calibrations.of(model)
  t.ok(upper > 1.5 && typical < upper)
  const estimate = { input: 1085, fixed: 85, output: 10 }
  const target = { model, body: {}, estimate }
  const input = 85 + Math.round(1000 * upper)
  t.strictSame(sizeOf([target], calibrations), { estimate: { input, output: 10 }, estimateRial: BigInt(input + 20) })
  t.equal(inputCharged(target, calibrations), 85 + Math.round(1000 * typical))
  const bounded = { ...target, bound: 5000 }
  t.strictSame(
    sizeOf([bounded, target], calibrations),
    { estimate: { input: 5000, output: 10 }, estimateRial: 5020n },
    'the most of all targets',
  )
  t.equal(inputCharged(bounded, calibrations), inputCharged(target, calibrations), 'nobody pays for a bound')
})
