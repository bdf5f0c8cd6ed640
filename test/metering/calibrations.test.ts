import t from 'tap'
import type { KeptCalibration } from '../../src/ledger/calibration-book.js'
import { SAMPLES_MIN, UNCORRECTED } from '../../src/metering/calibration.js'
import { Calibrations } from '../../src/metering/calibrations.js'
import { NO_USAGE, type Usage } from '../../src/metering/usage.js'
import { sampleModel } from '../support/sample-call.js'

/** A width of a bin and a half, for figures that were rounded to bins. */
const near = (found: number, expected: number) => Math.abs(Math.log(found / expected)) < 0.03
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
