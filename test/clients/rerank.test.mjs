import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rerank } from 'ai'
import { at, gateway, json, PRICE, provider, rial } from './support/gateway.mjs'
import { aiCohere, aiTogether, cohereV1, cohereV2 } from './support/libraries.mjs'

const QUERY = 'capital of the United States'
const DOCUMENTS = ['Carson City', 'Saipan', 'Washington, D.C.', 'Capital punishment']
/** By relevance, as every far end finds it; they answer in another order. */
const BEST = [2, 0, 3, 1]
const SCORES = [0.25, 0.0625, 0.96875, 0.125]
const WORST_FIRST = [...BEST].reverse()

/** Far ends that speak the rerank wire of a kind and refuse what they do not know; `tokens` is what they bill, `null` where they do not tell. */
const SERVERS = {
  cohere: {
    base: '/v2',
    path: '/v2/rerank',
    known: ['model', 'query', 'documents', 'top_n', 'max_tokens_per_doc'],
    tokens: null,
    answer: ({ top_n = 4 }) => ({
      body: {
        id: '07734bd2',
        results: BEST.slice(0, top_n).map(index => ({ index, relevance_score: SCORES[index] })),
        meta: { api_version: { version: '2' }, billed_units: { search_units: 1 } },
      },
    }),
  },
  jina: {
    base: '/v1',
    path: '/v1/rerank',
    known: ['model', 'query', 'documents', 'top_n', 'return_documents'],
    tokens: 38,
    answer: ({ documents, return_documents = true }) => ({
      body: {
        model: 'm',
        object: 'list',
        usage: { total_tokens: 38 },
        results: WORST_FIRST.map(index => ({
          index,
          relevance_score: SCORES[index],
          ...(return_documents ? { document: { text: documents[index] } } : {}),
        })),
      },
    }),
  },
  voyage: {
    base: '/v1',
    path: '/v1/rerank',
    known: ['model', 'query', 'documents', 'top_k', 'return_documents', 'truncation'],
    tokens: 26,
    answer: ({ top_k = 4 }) => ({
      body: {
        object: 'list',
        data: BEST.slice(0, top_k).map(index => ({ relevance_score: SCORES[index], index })),
        model: 'm',
        usage: { total_tokens: 26 },
      },
    }),
  },
  tei: {
    base: '',
    path: '/rerank',
    known: ['query', 'texts', 'truncate', 'raw_scores', 'return_text'],
    tokens: 19,
    answer: () => ({
      body: WORST_FIRST.map(index => ({ index, score: SCORES[index] })),
      headers: { 'x-compute-tokens': '19', 'x-compute-type': 'gpu+optimized' },
    }),
  },
  llamacpp: {
    base: '/v1',
    path: '/v1/rerank',
    known: ['model', 'query', 'documents', 'top_n'],
    tokens: 44,
    answer: () => ({
      body: {
        model: 'm',
        object: 'list',
        usage: { prompt_tokens: 44, total_tokens: 44 },
        results: WORST_FIRST.map(index => ({ index, relevance_score: SCORES[index] })),
      },
    }),
  },
}

const kinds = Object.keys(SERVERS)
const providers = {}
for (const kind of kinds) {
  const { base, path, known, answer } = SERVERS[kind]
  const far = await provider((seen, response) => {
    const unknown = Object.keys(seen.body).filter(name => !known.includes(name))
    const texts = seen.body.documents ?? seen.body.texts
    if (seen.path !== path) return json(response, 404, { message: `There is nothing at ${seen.path}.` })
    if (seen.headers.authorization !== 'Bearer sk-upstream') return json(response, 401, { message: 'Who are you?' })
    if (unknown.length > 0) return json(response, 422, { detail: `not known: ${unknown}` })
    if (!Array.isArray(texts) || texts.some(text => typeof text !== 'string'))
      return json(response, 422, { detail: 'documents: not strings' })
    const { body, headers } = answer(seen.body)
    return json(response, 200, body, headers)
  })
  providers[kind] = at(far, kind, { base_url: `http://127.0.0.1:${far.port}${base}` })
}
const running = await gateway({
  providers,
  models: Object.fromEntries(kinds.map(kind => [`${kind}/m`, { price: PRICE, surfaces: ['rerank'] }])),
})
const bills = []

/** How each library asks for the best two: `{ranking: [[index, score, document?]…], usage?, id}`. */
const LIBRARIES = {
  'cohere-ai v1': async model => {
    const documents = DOCUMENTS.map((text, i) => (i % 2 === 0 ? text : { text }))
    const { data, rawResponse } = await cohereV1(running)
      .rerank({ model, query: QUERY, documents, topN: 2, returnDocuments: true })
      .withRawResponse()
    const ranking = data.results.map(({ index, relevanceScore, document }) => [index, relevanceScore, document.text])
    return { ranking, id: rawResponse.headers.get('x-request-id') }
  },
  'cohere-ai v2': async model => {
    const { data, rawResponse } = await cohereV2(running).rerank({ model, query: QUERY, documents: DOCUMENTS, topN: 2 }).withRawResponse()
    return {
      ranking: data.results.map(({ index, relevanceScore }) => [index, relevanceScore]),
      id: rawResponse.headers.get('x-request-id'),
    }
  },
  'ai cohere': model => aiRerank(aiCohere(running).reranking(model)),
  'ai togetherai': model => aiRerank(aiTogether(running).reranking(model)),
}

for (const [library, ask] of Object.entries(LIBRARIES)) {
  for (const kind of kinds) {
    test(`${library}: the best two documents, through ${kind}`, async () => {
      const { ranking, id } = await ask(`${kind}/m`)
      assert.deepEqual(
        ranking.map(([index, score]) => [index, score]),
        BEST.slice(0, 2).map(index => [index, SCORES[index]]),
      )
      for (const [index, , document] of ranking) if (document !== undefined) assert.equal(document, DOCUMENTS[index])
      bills.push([`${library}, ${kind}`, id, kind])
    })
  }

  test(`${library}: reads the sandbox`, async () => {
    const { ranking, id } = await ask('sandbox/echo')
    assert.equal(ranking.length, 2)
    assert.ok(ranking[0][1] >= ranking[1][1])
    bills.push([`${library}, sandbox`, id, 'sandbox'])
  })
}

test('every rerank is billed on its input alone', async t => {
  const records = await running.bills()
  assert.equal(records.size, bills.length)
  for (const [what, id, kind] of bills) {
    await t.test(what, () => {
      const record = records.get(id)
      const tokens = SERVERS[kind]?.tokens
      assert.deepEqual([record.surface, record.state, record.provider, record.output_tokens], ['rerank', 'settled', kind, 0])
      assert.equal(record.usage_source, tokens === null ? 'estimate' : 'provider')
      if (typeof tokens === 'number') assert.equal(record.input_tokens, tokens)
      else assert.ok(record.input_tokens > 0 && record.input_tokens <= record.held_tokens)
      assert.equal(record.cost_rial, rial({ input: record.input_tokens }))
    })
  }
})

async function aiRerank(model) {
  const { ranking, response } = await rerank({ model, query: QUERY, documents: DOCUMENTS, topN: 2, maxRetries: 0 })
  return {
    ranking: ranking.map(({ originalIndex, score, document }) => [originalIndex, score, document]),
    id: response.headers['x-request-id'],
  }
}
