import fc from 'fast-check'
import t from 'tap'
import completions from '../../src/endpoints/completions.js'
import { familyOf, promptTokens, textTokens } from '../../src/metering/estimate.js'
import { type Row, refusals } from '../support/refusals.js'
import { sampleModel } from '../support/sample-call.js'

t.test('what is wrong with a request is named by field', async t => {
  const prompt = 'a'
  const model = 'm'
  const text = 'a string, an array of strings, an array of token ids or an array of such arrays'
  const rows: Row[] = [
    [{ model, prompt }, null],
    [{ model, prompt: '' }, null],
    [{ model, prompt: ['a', ''] }, null],
    [{ model, prompt: [1, 2] }, null],
    [{ model, prompt: [[1], [2, 3]] }, null],
    [{ model, prompt, stream: 'whatever', unknown: {} }, null],
    [{ model, prompt, max_tokens: null, n: null, best_of: null, stop: null, logprobs: null, echo: null }, null],
    [{ model, prompt, max_tokens: 1, n: 2, best_of: 2, stop: ['a'], logprobs: 5, echo: true, seed: -1, logit_bias: { '1': 2 } }, null],
    [{ model, prompt, best_of: 0, n: 3 }, null],
    [{ prompt }, 'model', 'model is required: a string, <provider>/<model> or an alias.'],
    [{ model: 1, prompt }, 'model', 'model must be a string, got number.'],
    [{ model: '', prompt }, 'model', 'model must not be empty.'],
    [{ model }, 'prompt', `prompt is required: ${text}.`],
    [{ model, prompt: null }, 'prompt', `prompt is required: ${text}.`],
    [{ model, prompt: {} }, 'prompt', `prompt must be ${text}, got object.`],
    [{ model, prompt: [] }, 'prompt', 'prompt must not be an empty array.'],
    [{ model, prompt: ['a', 1] }, 'prompt[1]', 'prompt[1] must be a string like prompt[0], got number.'],
    [{ model, prompt: [1, 'a'] }, 'prompt[1]', 'prompt[1] must be a token id (an integer of at least 0), got string.'],
    [{ model, prompt: [1, 1.5] }, 'prompt[1]', 'prompt[1] must be a token id (an integer of at least 0), got 1.5.'],
    [{ model, prompt: [[1], 2] }, 'prompt[1]', 'prompt[1] must be an array of token ids like prompt[0], got number.'],
    [{ model, prompt: [[1], []] }, 'prompt[1]', 'prompt[1] must not be an empty array.'],
    [{ model, prompt: [[1], [-1]] }, 'prompt[1][0]', 'prompt[1][0] must be a token id (an integer of at least 0), got -1.'],
    [{ model, prompt: [null] }, 'prompt[0]', 'prompt[0] must be a string, a token id or an array of token ids, got null.'],
    [{ model, prompt, max_tokens: 0 }, 'max_tokens', 'max_tokens must be an integer of at least 1, got 0.'],
    [{ model, prompt, max_tokens: '9' }, 'max_tokens', 'max_tokens must be an integer of at least 1, got string.'],
    [{ model, prompt, max_tokens: Infinity }, 'max_tokens', 'max_tokens must be an integer of at least 1, got Infinity.'],
    [{ model, prompt, n: 129 }, 'n', 'n must be an integer from 1 to 128, got 129.'],
    [{ model, prompt, best_of: 21 }, 'best_of', 'best_of must be an integer from 0 to 20, got 21.'],
    [{ model, prompt, n: 3, best_of: 2 }, 'best_of', 'best_of must be at least n: best_of 2, n 3.'],
    [{ model, prompt, temperature: '1' }, 'temperature', 'temperature must be a finite number, got string.'],
    [{ model, prompt, top_p: Infinity }, 'top_p', 'top_p must be a finite number, got Infinity.'],
    [{ model, prompt, stop: 1 }, 'stop', 'stop must be a string or an array of strings, got number.'],
    [{ model, prompt, stop: ['a', null] }, 'stop[1]', 'stop[1] must be a string, got null.'],
    [{ model, prompt, echo: 'yes' }, 'echo', 'echo must be true or false, got string.'],
    [{ model, prompt, suffix: [] }, 'suffix', 'suffix must be a string, got array.'],
    [{ model, prompt, logprobs: 6 }, 'logprobs', 'logprobs must be an integer from 0 to 5, got 6.'],
    [{ model, prompt, logprobs: true }, 'logprobs', 'logprobs must be an integer from 0 to 5, got boolean.'],
    [{ model, prompt, seed: 1.5 }, 'seed', 'seed must be an integer, got 1.5.'],
    [{ model, prompt, logit_bias: [] }, 'logit_bias', 'logit_bias must be an object, got array.'],
  ]
  t.strictSame(refusals(completions, rows), rows)
})

t.test('never streams, and never forwards the wish to', async t => {
  t.equal(completions.streams({ model: 'm', stream: true }), false)
  t.notOk(completions.fields.has('stream') || completions.parameters.has('stream') || completions.parameters.has('stream_options'))
})

t.test('the cap is the smaller of the two spellings, the default without one, and never above that of the model', async t => {
  const model = sampleModel({ max_output_tokens: 1000, default_max_tokens: 512 })
  t.equal(completions.cap({}, model), 512)
  t.equal(completions.cap({ max_tokens: null }, model), 512)
  t.equal(completions.cap({ max_tokens: 9 }, model), 9)
  t.equal(completions.cap({ max_tokens: 9, max_completion_tokens: 7 }, model), 7)
  t.equal(completions.cap({ max_tokens: 5000 }, model), 1000)
  t.equal(completions.cap({}, sampleModel({ max_output_tokens: 100, default_max_tokens: 512 })), 100)
  t.equal(completions.cap({ max_tokens: 5000 }, sampleModel({ max_output_tokens: null })), 5000)
})

t.test('the estimate covers every prompt, every choice and every candidate that best_of throws away', async t => {
  const model = sampleModel()
  const count = fc.option(fc.integer({ min: 1, max: 20 }), { nil: undefined })
  fc.assert(
    fc.property(fc.array(fc.string(), { minLength: 1, maxLength: 5 }), count, count, count, (prompt, n, best, cap) => {
      const body = { prompt, n, best_of: best, max_tokens: cap }
      const expected = prompt.length * Math.max(n ?? 1, best ?? 1) * (cap ?? 512)
      t.equal(completions.estimate(body, model).output, expected)
    }),
    { numRuns: 50 },
  )
  const tokens = promptTokens([1, 2, 3], familyOf(model))
  t.strictSame(completions.estimate({ prompt: [1, 2, 3], max_tokens: 10 }, model), { input: tokens, fixed: 3, output: 10 })
  t.equal(completions.estimate({ prompt: [[1], [2]], max_tokens: 10 }, model).output, 20)
  const suffix = textTokens('the end of the story', familyOf(model))
  t.equal(
    completions.estimate({ prompt: [[1], [2]], suffix: 'the end of the story' }, model).input,
    2 + 2 * suffix,
    'and the suffix with each',
  )
})

t.test('an estimate stays a safe integer whatever is asked for', async t => {
  const body = { prompt: ['a', 'b'], n: 128, max_tokens: Number.MAX_SAFE_INTEGER }
  t.equal(completions.estimate(body, sampleModel({ max_output_tokens: null })).output, Number.MAX_SAFE_INTEGER)
})

t.test('an answer has choices, each with its text', async t => {
  t.equal(completions.answers({ choices: [{ text: '' }] }), true)
  for (const choices of [undefined, null, [], {}, [{}], [{ text: 1 }], [{ text: 'a' }, null]]) {
    t.equal(completions.answers(choices === undefined ? {} : { choices }), false, JSON.stringify(choices))
  }
  t.equal(completions.output({ choices: [{ text: 'a' }, { text: 'b' }] }), 'ab')
  t.equal(completions.output({}), '')
})
