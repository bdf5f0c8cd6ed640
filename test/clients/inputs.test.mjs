import assert from 'node:assert/strict'
import { test } from 'node:test'
import { embedMany } from 'ai'
import { at, gateway, json, PRICE, provider, rial } from './support/gateway.mjs'
import { aiSdk, langchainEmbeddings, OPENAI, openai, voyage } from './support/libraries.mjs'

/* Embeddings and moderations through providers that answer in their own way. */

const VECTORS = [
  [0.25, -0.5, 0.125],
  [1, 0.0625, -0.75],
]
const INPUT = ['one', 'two']
const openaiEmbeddings = usage => () => ({
  object: 'list',
  data: VECTORS.map((embedding, index) => ({ object: 'embedding', index, embedding })).reverse(),
  model: 'm',
  ...(usage === undefined ? {} : { usage }),
})

/** `tokens`: what it bills; `null` where it does not tell. */
const EMBEDDERS = {
  // A server that has never heard of base64, nor of an order.
  openai: { base: '/v1', path: '/v1/embeddings', tokens: 5, answer: openaiEmbeddings({ prompt_tokens: 5, total_tokens: 5 }) },
  cohere: {
    base: '/v2',
    path: '/v2/embed',
    known: ['model', 'texts', 'input_type', 'embedding_types', 'output_dimension'],
    tokens: 2,
    answer: () => ({
      id: 'e',
      embeddings: { float: VECTORS },
      texts: INPUT,
      meta: { api_version: { version: '2' }, billed_units: { input_tokens: 2 } },
    }),
  },
  voyage: {
    base: '/v1',
    path: '/v1/embeddings',
    known: ['model', 'input', 'input_type', 'truncation', 'output_dimension', 'output_dtype'],
    tokens: 10,
    answer: openaiEmbeddings({ total_tokens: 10 }),
  },
  gemini: {
    base: '/v1beta',
    path: '/v1beta/models/m:batchEmbedContents',
    known: ['requests'],
    tokens: null,
    answer: () => ({ embeddings: VECTORS.map(values => ({ values })) }),
  },
  mistral: {
    base: '/v1',
    path: '/v1/embeddings',
    known: ['model', 'input', 'output_dimension'],
    tokens: 7,
    answer: openaiEmbeddings({ prompt_tokens: 7, total_tokens: 7, completion_tokens: 0 }),
  },
}
const CATEGORIES = ['sexual', 'violence_and_threats']
const verdict = score => ({
  categories: Object.fromEntries(CATEGORIES.map((name, i) => [name, i === 1 && score > 0.5])),
  category_scores: Object.fromEntries(CATEGORIES.map((name, i) => [name, i === 1 ? score : 0])),
})
const MODERATORS = {
  openai: {
    flagged: true,
    answer: () => ({ id: 'modr-1', model: 'm', results: [0.1, 0.9].map(score => ({ flagged: score > 0.5, ...verdict(score) })) }),
  },
  mistral: { flagged: false, answer: () => ({ id: 'x1', model: 'm', results: [0.1, 0.9].map(verdict) }) },
}

const kinds = Object.keys(EMBEDDERS)
const providers = {}
for (const kind of kinds) {
  const { base, path, known, answer } = EMBEDDERS[kind]
  const far = await provider((seen, response) => {
    if (seen.path === '/v1/moderations' && MODERATORS[kind] !== undefined) return json(response, 200, MODERATORS[kind].answer())
    const unknown = Object.keys(seen.body).filter(name => known !== undefined && !known.includes(name))
    if (seen.path !== path) return json(response, 404, { message: `There is nothing at ${seen.path}.` })
    if (unknown.length > 0) return json(response, 422, { detail: `not known: ${unknown}` })
    return json(response, 200, answer())
  })
  providers[kind] = at(far, kind, { base_url: `http://127.0.0.1:${far.port}${base}` })
}
const running = await gateway({ providers, models: Object.fromEntries(kinds.map(kind => [`${kind}/m`, { price: PRICE }])) })
const bills = []

/** How each library embeds two texts: `{vectors, tokens?, id?}`. */
const LIBRARIES = {
  ...Object.fromEntries(
    OPENAI.flatMap(({ name, module }) =>
      [undefined, 'float'].map(encoding_format => [
        `${name}${encoding_format === undefined ? '' : ', asked for floats'}`,
        async model => {
          const answer = await openai(running, { module }).embeddings.create({
            model,
            input: INPUT,
            ...(encoding_format && { encoding_format }),
          })
          assert.deepEqual(
            answer.data.map(({ object, index }) => [object, index]),
            INPUT.map((_, index) => ['embedding', index]),
          )
          return { vectors: answer.data.map(({ embedding }) => [...embedding]), tokens: answer.usage.prompt_tokens, id: answer._request_id }
        },
      ]),
    ),
  ),
  ai: async model => {
    const { embeddings, usage, responses } = await embedMany({ model: aiSdk(running).embeddingModel(model), values: INPUT, maxRetries: 0 })
    return { vectors: embeddings, tokens: usage.tokens, id: responses[0].headers['x-request-id'] }
  },
  langchain: async model => ({ vectors: await langchainEmbeddings(running, { model }).embedDocuments(INPUT) }),
  voyageai: async model => {
    const { data, rawResponse } = await voyage(running).embed({ model, input: INPUT, inputType: 'document' }).withRawResponse()
    return {
      vectors: data.data.map(({ embedding }) => embedding),
      tokens: data.usage.totalTokens,
      id: rawResponse.headers.get('x-request-id'),
    }
  },
}

for (const kind of kinds) {
  const { tokens } = EMBEDDERS[kind]
  for (const [library, ask] of Object.entries(LIBRARIES)) {
    test(`${library}: the right floats, through ${kind}`, async () => {
      const answer = await ask(`${kind}/m`)
      assert.deepEqual(answer.vectors, VECTORS)
      if (answer.tokens !== undefined) assert.ok(tokens === null ? answer.tokens > 0 : answer.tokens === tokens, `${answer.tokens}`)
      bills.push({ what: `${library}, ${kind}`, id: answer.id, kind, tokens, told: answer.tokens })
    })
  }
}

for (const kind of Object.keys(MODERATORS)) {
  for (const { name, module } of OPENAI) {
    test(`${name}: a moderation, through ${kind}`, async () => {
      const answer = await openai(running, { module }).moderations.create({ model: `${kind}/m`, input: ['a kind word', 'a bad one'] })
      assert.deepEqual(
        answer.results.map(result => [result.flagged, result.categories.violence_and_threats, result.category_scores.violence_and_threats]),
        [
          [false, false, 0.1],
          [true, true, 0.9],
        ],
      )
      assert.match(answer.id, /^modr-.+/)
      assert.equal(answer.model, `${kind}/m`)
      bills.push({ what: `${name}, a moderation, ${kind}`, id: answer._request_id, kind, free: true })
    })
  }
}

test('every usage record has what was billed', async t => {
  const records = await running.bills()
  const inOrder = [...records.values()]
  assert.equal(inOrder.length, bills.length)
  for (const [i, { what, id, kind, tokens, told, free = false }] of bills.entries()) {
    await t.test(what, () => {
      const record = id === undefined ? inOrder[i] : records.get(id)
      assert.deepEqual([record.state, record.provider, record.output_tokens], ['settled', kind, 0])
      if (free)
        assert.deepEqual([record.surface, record.usage_source, record.input_tokens, record.cost_rial], ['moderations', 'none', 0, 0n])
      else if (tokens === null) assert.deepEqual([record.usage_source, record.input_tokens], ['estimate', told ?? record.input_tokens])
      else assert.deepEqual([record.usage_source, record.input_tokens], ['provider', tokens])
      assert.equal(record.cost_rial, rial({ input: record.input_tokens }))
    })
  }
})
