import fc from 'fast-check'
import t from 'tap'
import rerank from '../../src/endpoints/rerank.js'
import type { JsonObject } from '../../src/json.js'
import { familyOf, textTokens } from '../../src/metering/estimate.js'
import { type Row, refusals } from '../support/refusals.js'
import { sampleModel } from '../support/sample-call.js'

const model = sampleModel()
const shape = (answer: JsonObject, body: JsonObject, of = model) => rerank.shape?.(answer, body, of)

t.test('what is wrong with a request is named by field', async t => {
  const base = { model: 'm', query: 'q' }
  const documents = ['a']
  const what = 'an array of 1 to 10,000 strings or objects with "text"'
  const many = new Array<string>(10_001).fill('a')
  const rows: Row[] = [
    [{ ...base, documents }, null],
    [{ ...base, documents: ['', { text: '', more: 1 }], top_n: 9, return_documents: true, rank_fields: 7 }, null],
    [{ ...base, documents, top_n: null, return_documents: null }, null],
    [{ ...base, documents: many.slice(1) }, null],
    [{ model: 'm', documents }, 'query', 'query is required: a non-empty string.'],
    [{ model: 'm', documents, query: 1 }, 'query', 'query must be a string, got number.'],
    [{ model: 'm', documents, query: '' }, 'query', 'query must not be empty.'],
    [{ ...base }, 'documents', `documents is required: ${what}.`],
    [{ ...base, documents: 'a' }, 'documents', `documents must be ${what}, got string.`],
    [{ ...base, documents: [] }, 'documents', `documents must be ${what}, got 0 of them.`],
    [{ ...base, documents: many }, 'documents', `documents must be ${what}, got 10001 of them.`],
    [{ ...base, documents: ['a', 'b', 'c', 4] }, 'documents[3]', 'documents[3] must be a string or an object with "text", got number.'],
    [{ ...base, documents: [null] }, 'documents[0]', 'documents[0] must be a string or an object with "text", got null.'],
    [{ ...base, documents: [{ text: 1 }] }, 'documents[0].text', 'documents[0].text must be a string, got number.'],
    [{ ...base, documents: [{}] }, 'documents[0].text', 'documents[0].text must be a string, got nothing.'],
    [{ ...base, documents, top_n: 0 }, 'top_n', 'top_n must be an integer of at least 1, got 0.'],
    [{ ...base, documents, top_n: -1 }, 'top_n', 'top_n must be an integer of at least 1, got -1.'],
    [{ ...base, documents, top_n: 1.5 }, 'top_n', 'top_n must be an integer of at least 1, got 1.5.'],
    [{ ...base, documents, top_n: '1' }, 'top_n', 'top_n must be an integer of at least 1, got string.'],
    [{ ...base, documents, return_documents: 1 }, 'return_documents', 'return_documents must be true or false, got number.'],
  ]
  t.strictSame(refusals(rerank, rows), rows)
})

t.test('the estimate counts as the provider does', async t => {
  const tokens = (text: string) => textTokens(text, familyOf(model))
  const [query, a, b] = ['what is it', 'one document', 'and another one']
  const body = { query, documents: [a, { text: b }] }
  const input = (settings: Parameters<typeof sampleModel>[1]) => rerank.estimate(body, sampleModel({}, settings)).input
  t.equal(input({}), 2 * tokens(query) + tokens(a) + tokens(b), 'each pair where nothing is said')
  t.equal(input({ rerank: 'pairs' }), input({}))
  t.equal(input({ rerank: 'query_once' }), tokens(query) + tokens(a) + tokens(b))
  t.equal(input({ rerank: 'units' }), 1)
  const searches = (documents: string[]) => rerank.estimate({ query, documents }, sampleModel({}, { rerank: 'units' })).input
  t.equal(searches(new Array<string>(100).fill('a')), 1)
  t.equal(searches(new Array<string>(101).fill('a')), 2)
  t.ok(searches(new Array<string>(100).fill('word '.repeat(5000))) > 5, 'long documents count as several')
  t.equal(rerank.estimate(body, model).output, 0)
  t.equal(rerank.cap(body, model), null)
})

t.test('an answer comes in one shape, best first and cut', async t => {
  const answer = {
    id: 'rerank-7',
    model: 'whatever',
    results: [
      { index: 0, relevance_score: 0.11, document: { text: 'not this', multi_modal: null } },
      { index: 2, relevance_score: 0.98 },
      { index: 1, relevance_score: -3 },
    ],
    usage: { prompt_tokens: 123, total_tokens: 123 },
    meta: { billed_units: { search_units: 1 } },
    extra: 1,
  }
  const body = { query: 'q', documents: ['zero', 'one', { text: 'two' }], top_n: 2, return_documents: true }
  const expected = {
    id: 'rerank-7',
    object: 'list',
    model: 'acme/model-1',
    results: [
      { index: 2, relevance_score: 0.98, document: { text: 'two' } },
      { index: 0, relevance_score: 0.11, document: { text: 'zero' } },
    ],
    usage: { prompt_tokens: 123, completion_tokens: 0, total_tokens: 123 },
    meta: { billed_units: { search_units: 1 } },
  }
  t.strictSame(shape(answer, body), expected)
  t.strictSame(Object.keys(shape(answer, body) ?? {}), Object.keys(expected), 'in the same order')
})

t.test('usage and meta are there where the provider sends none, documents only where they are asked for', async t => {
  const body = { query: 'q', documents: ['zero', 'one'], top_n: 50 }
  const input = rerank.estimate(body, model).input
  t.strictSame(shape({ results: [{ index: 1, relevance_score: 1, document: 'one' }] }, body), {
    object: 'list',
    model: 'acme/model-1',
    results: [{ index: 1, relevance_score: 1 }],
    usage: { prompt_tokens: input, completion_tokens: 0, total_tokens: input },
    meta: null,
  })
  const usage = (reported: JsonObject) => shape({ results: [], usage: reported }, body)?.usage
  t.strictSame(usage({ total_tokens: 26 }), { prompt_tokens: 26, completion_tokens: 0, total_tokens: 26 })
  t.strictSame(usage({ prompt_tokens: 0, total_tokens: 0 }), { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }, 'zero is a value')
  t.match(usage({ prompt_tokens: -1 }), { prompt_tokens: input })
  t.match(usage({ prompt_tokens: 1.5, total_tokens: '7' }), { prompt_tokens: input })
})

t.test('order is by score, stable, and loses nothing', async t => {
  const scores = fc.array(fc.integer({ min: -3, max: 3 }), { minLength: 1, maxLength: 30 })
  fc.assert(
    fc.property(scores, fc.integer({ min: 1, max: 40 }), (given, top) => {
      const results = given.map((relevance_score, index) => ({ index, relevance_score }))
      const expected = [...results].sort((a, b) => b.relevance_score - a.relevance_score || a.index - b.index).slice(0, top)
      t.strictSame(shape({ results }, { query: 'q', documents: given.map(String), top_n: top })?.results, expected)
    }),
    { numRuns: 100 },
  )
})

t.test('what is no answer is told from what is', async t => {
  t.equal(rerank.answers({ results: [{ index: 0, relevance_score: 0 }] }), true)
  for (const results of [
    undefined,
    null,
    {},
    [],
    [null],
    [{ index: 0 }],
    [{ index: 0, relevance_score: null }],
    [{ index: '0', relevance_score: 1 }],
  ]) {
    t.equal(rerank.answers(results === undefined ? {} : { results }), false, JSON.stringify(results))
  }
  const body = { query: 'q', documents: ['a', 'b'] }
  const at = (...indexes: number[]) => ({ results: indexes.map(index => ({ index, relevance_score: 1 })) })
  const wrong = (message: string) => ({ code: 'upstream_invalid_response', message })
  t.throws(() => shape(at(2), body), wrong("The provider's answer does not fit the request: it ranks document 2 of 2."))
  t.throws(() => shape(at(-1), body), wrong("The provider's answer does not fit the request: it ranks document -1 of 2."))
  t.throws(() => shape(at(1, 0, 1), body), wrong("The provider's answer does not fit the request: it ranks document 1 twice."))
})
