import t from 'tap'
import moderations from '../../src/endpoints/moderations.js'
import type { JsonObject } from '../../src/json.js'
import { familyOf, textTokens } from '../../src/metering/estimate.js'
import { type Row, refusals } from '../support/refusals.js'
import { sampleModel } from '../support/sample-call.js'

const model = sampleModel()
const shape = (answer: JsonObject, body: JsonObject) => moderations.shape?.(answer, body, model)

t.test('what is wrong with a request is named by field', async t => {
  const what = 'a string, an array of strings or an array of parts'
  const rows: Row[] = [
    [{ model: 'm', input: '' }, null],
    [{ model: 'm', input: ['a', 'b'] }, null],
    [
      {
        model: 'm',
        input: [
          { type: 'text', text: 'a' },
          { type: 'image_url', image_url: { url: 'https://a' } },
        ],
      },
      null,
    ],
    [{ model: 'm' }, 'input', `input is required: ${what}.`],
    [{ model: 'm', input: 1 }, 'input', `input must be ${what}, got number.`],
    [{ model: 'm', input: [] }, 'input', 'input must not be an empty array.'],
    [{ model: 'm', input: ['a', 1] }, 'input[1]', 'input[1] must be a string like input[0], got number.'],
    [{ model: 'm', input: [1] }, 'input[0]', 'input[0] must be a string or a part with "type", got number.'],
    [{ model: 'm', input: [{ type: 'text' }] }, 'input[0].text', 'input[0].text must be a string, got nothing.'],
    [
      { model: 'm', input: [{ type: 'image_url', image_url: 'a' }] },
      'input[0].image_url',
      'input[0].image_url must be an object with "url", got string.',
    ],
    [
      { model: 'm', input: [{ type: 'image_url', image_url: {} }] },
      'input[0].image_url.url',
      'input[0].image_url.url must be a string, got nothing.',
    ],
    [{ model: 'm', input: [{ type: 'audio' }] }, 'input[0].type', 'input[0].type must be "text" or "image_url".'],
  ]
  t.strictSame(refusals(moderations, rows), rows)
})

t.test('holds what is sent, bills nothing where nothing is reported', async t => {
  t.strictSame(moderations.estimate({ input: 'some text' }, model), { input: textTokens('some text', familyOf(model)), output: 0 })
  const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(9999)}` } }
  const parts = moderations.estimate({ input: [{ type: 'text', text: 'some text' }, image] }, model)
  t.strictSame(parts, moderations.estimate({ input: ['some text'] }, model), 'images are not counted, least of all as text')
  t.equal(moderations.unreported, 'nothing')
  t.equal(moderations.cap({}, model), null)
})

t.test('flagged is added where it is missing, from the categories', async t => {
  const answer = {
    id: 'm-1',
    model: 'mistral-moderation-latest',
    results: [
      { categories: { sexual: false, violence: true }, category_scores: { sexual: 0.1, violence: 0.9 } },
      { categories: { sexual: false, violence: false }, category_scores: { sexual: 0.1, violence: 0.1 } },
      { flagged: true, categories: {} },
    ],
  }
  const [first, second, third] = answer.results
  t.strictSame(shape(answer, { input: ['a', 'b', 'c'] }), {
    ...answer,
    results: [{ flagged: true, ...first }, { flagged: false, ...second }, third],
  })
})

t.test('an answer that is whole comes back as the very same object', async t => {
  const answer = { id: 'modr-1', results: [{ flagged: false, categories: {}, unknown: 1 }], unknown: 2 }
  t.equal(shape(answer, { input: 'a' }), answer)
  t.equal(
    shape(answer, {
      input: [
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b' },
      ],
    }),
    answer,
    'parts are judged together',
  )
})

t.test('what is no answer is told from what is', async t => {
  t.equal(moderations.answers({ results: [{ flagged: false }] }), true)
  for (const results of [undefined, null, [], {}, [null], [{}], [{ flagged: 'no' }], [{ categories: [] }]]) {
    t.equal(moderations.answers(results === undefined ? {} : { results }), false, JSON.stringify(results))
  }
  const message = "The provider's answer does not fit the request: 1 results for 2 inputs."
  t.throws(() => shape({ results: [{ flagged: true }] }, { input: ['a', 'b'] }), { code: 'upstream_invalid_response', message })
})
