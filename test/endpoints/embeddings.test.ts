import fc from 'fast-check'
import t from 'tap'
import embeddings from '../../src/endpoints/embeddings.js'
import type { JsonObject } from '../../src/json.js'
import { familyOf, promptTokens } from '../../src/metering/estimate.js'
import { type Row, refusals } from '../support/refusals.js'
import { sampleModel } from '../support/sample-call.js'

const model = sampleModel()
const usage = { prompt_tokens: 8, total_tokens: 8 }
const shape = (answer: JsonObject, body: JsonObject) => embeddings.shape?.(answer, body, model)

t.test('what is wrong with a request is named by field', async t => {
  const rows: Row[] = [
    [{ model: 'm', input: 'a' }, null],
    [{ model: 'm', input: ['a'], encoding_format: 'base64', dimensions: 256, user: 'u', input_type: 'query' }, null],
    [{ model: 'm', input: [1], encoding_format: null, dimensions: null }, null],
    [{ model: 'm', input: [[1], [2]], encoding_format: 'float' }, null],
    [{ model: 'm', input: ['a', {}] }, 'input[1]', 'input[1] must be a string like input[0], got object.'],
    [{ model: 'm', input: [] }, 'input', 'input must not be an empty array.'],
    [{ model: 'm', input: 'a', encoding_format: 'int8' }, 'encoding_format', 'encoding_format must be "float" or "base64".'],
    [{ model: 'm', input: 'a', encoding_format: 1 }, 'encoding_format', 'encoding_format must be "float" or "base64", got number.'],
    [{ model: 'm', input: 'a', dimensions: 0 }, 'dimensions', 'dimensions must be an integer of at least 1, got 0.'],
    [{ model: 'm', input: 'a', user: 1 }, 'user', 'user must be a string, got number.'],
  ]
  t.strictSame(refusals(embeddings, rows), rows)
})

t.test('the encoding is the one that was asked for, whatever the provider did', async t => {
  // The bytes of 1, -2.5 and 0.1 as IEEE 754 binary32, the least significant first.
  const base64 = Buffer.from('0000803f000020c0cdcccc3d', 'hex').toString('base64')
  const floats = [1, -2.5, Math.fround(0.1)]
  const given = (embedding: string | number[]) => ({ object: 'list', data: [{ object: 'embedding', index: 0, embedding }], usage })
  t.strictSame(shape(given(base64), { input: 'a' }), given(floats), 'numbers are the default')
  t.strictSame(shape(given(base64), { input: 'a', encoding_format: 'float' }), given(floats))
  t.strictSame(shape(given([1, -2.5, 0.1]), { input: 'a', encoding_format: 'base64' }), given(base64))
})

t.test('both ways bring back the same 32-bit numbers', async t => {
  fc.assert(
    fc.property(fc.array(fc.float({ noNaN: true, noDefaultInfinity: true }), { minLength: 1 }), floats => {
      const there = shape({ data: [{ index: 0, embedding: floats }], usage }, { input: 'a', encoding_format: 'base64' })
      const back = shape(there ?? {}, { input: 'a', encoding_format: 'float' })
      t.strictSame(back?.data, [{ index: 0, embedding: floats }])
    }),
    { numRuns: 100 },
  )
})

t.test('answers come in the order of the request', async t => {
  const answer = {
    object: 'list',
    data: [
      { object: 'embedding', index: 1, embedding: [1] },
      { object: 'embedding', index: 0, embedding: [0] },
    ],
    usage,
    unknown: 1,
  }
  t.strictSame(shape(answer, { input: ['a', 'b'] }), { ...answer, data: [answer.data[1], answer.data[0]] })
})

t.test('an answer that needs nothing comes back as the very same object', async t => {
  const answer = { object: 'list', data: [{ object: 'embedding', index: 0, embedding: [1] }], usage, model: 'x' }
  t.equal(shape(answer, { input: 'a' }), answer)
  t.equal(shape(answer, { input: [1, 2, 3] }), answer, 'token ids are one text')
})

t.test('what the client is told was used is what is billed: input alone', async t => {
  const answer = { object: 'list', data: [{ object: 'embedding', index: 0, embedding: [1] }], model: 'x' }
  const told = (usage: JsonObject) => shape({ ...answer, usage }, { input: 'a' })?.usage
  t.strictSame(told({ prompt_tokens: 8, total_tokens: 20 }), { prompt_tokens: 8, total_tokens: 8 })
  t.strictSame(told({ total_tokens: 9 }), { prompt_tokens: 9, total_tokens: 9 })
  t.strictSame(told({ prompt_tokens: 8, completion_tokens: 3, total_tokens: 11, cost: 1 }), {
    prompt_tokens: 8,
    completion_tokens: 0,
    total_tokens: 8,
    cost: 1,
  })
  const input = promptTokens('a', familyOf(model))
  t.strictSame(told({ prompt_tokens: -8, total_tokens: 8 }), { prompt_tokens: input, total_tokens: input })
})

t.test('an index and usage are added where they are missing', async t => {
  const body = { input: ['a', 'b'] }
  const input = promptTokens(body.input, familyOf(model))
  t.strictSame(shape({ data: [{ embedding: [1] }, { embedding: [2] }] }, body), {
    data: [
      { object: 'embedding', embedding: [1], index: 0 },
      { object: 'embedding', embedding: [2], index: 1 },
    ],
    object: 'list',
    usage: { prompt_tokens: input, total_tokens: input },
  })
})

t.test('what is no answer is told from what is', async t => {
  t.equal(embeddings.answers({ data: [{ embedding: [1] }] }), true)
  for (const data of [undefined, null, [], {}, [null], [{}], [{ embedding: {} }]]) {
    t.equal(embeddings.answers(data === undefined ? {} : { data }), false, JSON.stringify(data))
  }
  const refused = (data: JsonObject[], input: string[], why: string, encoding_format = 'float') => {
    const message = `The provider's answer does not fit the request: ${why}.`
    t.throws(() => shape({ data, usage }, { input, encoding_format }), { code: 'upstream_invalid_response', message })
  }
  const embedding = [1]
  refused([{ index: 0, embedding }], ['a', 'b'], '1 embeddings for 2 inputs')
  refused([{ index: 1, embedding }], ['a'], 'there is no input 1')
  refused(
    [
      { index: 0, embedding },
      { index: 0, embedding },
    ],
    ['a', 'b'],
    'input 0 is embedded twice',
  )
  refused([{ index: 0, embedding: 'AAAA' }], ['a'], 'an embedding is no base64 of 32-bit floats')
  refused([{ index: 0, embedding: 'AADAfw==' }], ['a'], 'an embedding holds what is no number')
  refused([{ index: 0, embedding: [null] }], ['a'], 'an embedding holds what is no number', 'base64')
})
