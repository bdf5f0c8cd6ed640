import fc from 'fast-check'
import t from 'tap'
import type { Model } from '../../src/config/config.js'
import { FAMILIES } from '../../src/config/tokenizer-families.js'
import { ENDPOINTS } from '../../src/endpoints/endpoints.js'
import type { Json, JsonObject } from '../../src/json.js'
import { BodyTexts, TextSum } from '../../src/metering/text.js'
import { type Family, familyOf } from '../../src/metering/tokenizers.js'
import { textSamples } from '../support/estimate-samples.js'
import { endpointOf } from '../support/questions.js'
import { sampleModel } from '../support/sample-call.js'

const text = fc.oneof(
  fc.constantFrom(...textSamples().map(sample => sample.text)),
  fc.string({ unit: 'binary', maxLength: 80 }),
  fc.constantFrom('', 'ހ'.repeat(90), 'é '.repeat(40), '\u0001\u0002'),
)
const image = { type: 'image_url', image_url: { url: 'https://x.example/a.png' } }
const file = (text: string) => ({
  type: 'file',
  file: { filename: 'a.txt', file_data: `data:text/plain;base64,${Buffer.from(text).toString('base64')}` },
})
const content = fc.oneof(
  text,
  fc.array(
    text.chain(text =>
      fc.constantFrom<Json>({ type: 'text', text }, image, file(text), { type: 'else', of: [text, 'data:image/png;base64,AAAA'] }),
    ),
  ),
)
const call = text.map(text => ({ id: 'c', type: 'function', function: { name: 'f', arguments: text } }))
const message = fc.record({ role: fc.constant('user'), name: fc.option(text), content, tool_calls: fc.array(call, { maxLength: 2 }) })
const tool = text.map(description => ({
  type: 'function',
  function: { name: 'f', description, parameters: { type: 'object', properties: { a: { type: 'string', enum: ['x', description] } } } },
}))
const bodies: { readonly [surface in (typeof ENDPOINTS)[number]['surface']]: fc.Arbitrary<JsonObject> } = {
  chat: fc.record({
    messages: fc.array(message, { maxLength: 4 }),
    tools: fc.array(tool, { maxLength: 3 }),
    functions: fc.constantFrom<Json>([], [{ name: 'g', description: 'An old one.' }]),
    tool_choice: fc.constantFrom<Json>('auto', { type: 'function', function: { name: 'f' } }),
    response_format: text.map(title => ({ type: 'json_schema', json_schema: { name: 's', schema: { title } } })),
  }) as fc.Arbitrary<JsonObject>,
  completions: fc.record({
    prompt: fc.oneof<fc.Arbitrary<Json>[]>(text, fc.array(text, { minLength: 1, maxLength: 4 }), fc.constant([1, 2, 3])),
  }),
  embeddings: fc.record({
    input: fc.oneof<fc.Arbitrary<Json>[]>(text, fc.array(text, { minLength: 1, maxLength: 4 }), fc.constant([[1], [2, 3]])),
  }),
  rerank: fc.record({ query: text, documents: fc.array(text, { minLength: 1, maxLength: 5 }) }),
  moderations: fc.record({ input: fc.array(text, { minLength: 1, maxLength: 3 }) }),
}
const models = FAMILIES.map(tokenizer => sampleModel({ upstream: 'm', tokenizer })) as Model[]

for (const { surface } of ENDPOINTS) {
  t.test(`${surface}: a body that is read once for all families counts for each as it does alone`, async () => {
    const endpoint = endpointOf(surface)
    fc.assert(
      fc.property(bodies[surface], fc.shuffledSubarray(models, { minLength: 1 }), (body, asked) => {
        const texts = new BodyTexts(new Set(asked.map(familyOf)))
        return asked.every(
          model => JSON.stringify(endpoint.estimate(body, model, texts)) === JSON.stringify(endpoint.estimate(body, model)),
        )
      }),
      { numRuns: 300 },
    )
  })
}

t.test('a part of a body is read once, whatever the number of families; without a body, each time', async t => {
  const families: Family[] = ['o200k', 'claude', 'gemini', 'llama', 'bytes']
  let reads = 0
  const tokens = (body: BodyTexts | undefined) =>
    families.map(family => {
      const sum = new TextSum(family, body)
      const returned = sum.addPart('prompt', texts => {
        reads++
        texts.add('Wherever you go, there you are.')
        return 7
      })
      return returned + sum.tokens
    })
  const together = tokens(new BodyTexts(new Set(families)))
  t.equal(reads, 1)
  t.strictSame(together, tokens(undefined))
  t.equal(reads, 6)
})

t.test('a body is read for the families that it was made for, and no other', async t => {
  const sum = new TextSum('gemini', new BodyTexts(new Set(['o200k'])))
  t.throws(() => sum.addPart('prompt', () => 0), { message: 'The body is not read for gemini.' })
})
