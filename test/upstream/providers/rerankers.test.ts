import t from 'tap'
import rerankEndpoint from '../../../src/endpoints/rerank.js'
import type { JsonObject } from '../../../src/json.js'
import jina from '../../../src/upstream/providers/jina.js'
import llamacpp from '../../../src/upstream/providers/llamacpp.js'
import tei from '../../../src/upstream/providers/tei.js'
import voyage from '../../../src/upstream/providers/voyage.js'
import { sampleCall, sampleModel } from '../../support/sample-call.js'
import { fixtureJson } from '../../support/sse-split.js'

const body = { query: 'q', documents: ['a', { text: 'b' }], top_n: 1, return_documents: true }
const call = sampleCall('rerank', body)

t.test('a rerank request in the words of each', async t => {
  const rows: [typeof jina, string, JsonObject][] = [
    [jina, '/rerank', { model: 'model-1', query: 'q', documents: ['a', 'b'], top_n: 1, return_documents: false }],
    [voyage, '/rerank', { model: 'model-1', query: 'q', documents: ['a', 'b'], top_k: 1 }],
    [tei, '/rerank', { query: 'q', texts: ['a', 'b'] }],
    [llamacpp, '/rerank', { model: 'model-1', query: 'q', documents: ['a', 'b'], top_n: 1 }],
  ]
  for (const [{ kind, wires }, path, sent] of rows) {
    t.equal(wires.rerank?.path(call), path, kind)
    t.strictSame(wires.rerank?.request?.(call), sent, kind)
  }
  const bare = sampleCall('rerank', { query: 'q', documents: ['a'] })
  t.notOk('top_k' in (voyage.wires.rerank?.request?.(bare) ?? {}))
  t.notOk('top_n' in (jina.wires.rerank?.request?.(bare) ?? {}))
  const cutting = sampleCall('rerank', body, sampleModel({ options: { truncate: true } }))
  t.match(tei.wires.rerank?.request?.(cutting), { truncate: true })
})

t.test('every answer ends in the one shape', async t => {
  const computed = { 'x-compute-tokens': '19' }
  const rows: [typeof jina, unknown, Readonly<Record<string, string>>, number, number, number][] = [
    [jina, fixtureJson('jina/rerank.provider.json'), {}, 1, 0.87, 38],
    [voyage, fixtureJson('voyage/rerank.provider.json'), {}, 0, 0.4375, 26],
    [tei, fixtureJson('tei/rerank.provider.json'), computed, 1, 0.9980405, 19],
    [llamacpp, { results: [{ index: 1, relevance_score: -2.5 }], usage: { prompt_tokens: 9, total_tokens: 9 } }, {}, 1, -2.5, 9],
  ]
  for (const [{ kind, wires }, answer, headers, index, relevance_score, tokens] of rows) {
    const read = wires.rerank?.response?.(answer, call, headers) ?? {}
    t.ok(rerankEndpoint.answers(read), kind)
    t.match(read, { usage: { prompt_tokens: tokens } }, `${kind}: what is metered is input`)
    t.strictSame(
      rerankEndpoint.shape?.(read, call.body, call.model),
      {
        object: 'list',
        model: 'acme/model-1',
        results: [{ index, relevance_score, document: { text: index === 0 ? 'a' : 'b' } }],
        usage: { prompt_tokens: tokens, completion_tokens: 0, total_tokens: tokens },
        meta: null,
      },
      kind,
    )
  }
})

t.test('what is no rerank answer', async t => {
  const read = (provider: typeof jina, answer: unknown, headers = {}) => provider.wires.rerank?.response?.(answer, call, headers) ?? {}
  t.throws(() => read(tei, { results: [] }))
  t.throws(() => read(voyage, []))
  t.throws(() => read(jina, 'a'))
  t.notOk(rerankEndpoint.answers(read(tei, [{ index: 0 }])))
  t.notOk(rerankEndpoint.answers(read(tei, [7])))
  t.notOk(rerankEndpoint.answers(read(voyage, { results: [] })))
  for (const text of ['', 'x', '-1', '1.5', '1e3', '9'.repeat(16)]) t.notOk('usage' in read(tei, [], { 'x-compute-tokens': text }), text)
})

t.test('embeddings in the words of each', async t => {
  const embed = sampleCall('embeddings', { input: 'a', encoding_format: 'base64', dimensions: 256, input_type: 'query', user: 'u' })
  const rows: [typeof jina, string, JsonObject][] = [
    [jina, '/embeddings', { model: 'model-1', input: ['a'], task: 'retrieval.query', dimensions: 256 }],
    [voyage, '/embeddings', { model: 'model-1', input: ['a'], input_type: 'query', output_dimension: 256 }],
    [tei, '/v1/embeddings', { model: 'model-1', input: 'a', dimensions: 256, user: 'u' }],
  ]
  for (const [{ kind, wires }, path, sent] of rows) {
    t.equal(wires.embeddings?.path(embed), path, kind)
    t.strictSame(wires.embeddings?.request?.(embed), sent, kind)
  }
  const bare = sampleCall('embeddings', { input: ['a', 'b'] })
  t.strictSame(voyage.wires.embeddings?.request?.(bare), { model: 'model-1', input: ['a', 'b'] })
  t.throws(() => voyage.wires.embeddings?.request?.(sampleCall('embeddings', { input: [[1]] })), {
    code: 'invalid_request',
    param: 'input',
  })
  t.match(voyage.wires.embeddings?.response?.(fixtureJson('voyage/embeddings.provider.json'), bare, {}), {
    data: [{ index: 0, embedding: [0.25, -0.5] }],
    usage: { prompt_tokens: 10, total_tokens: 10 },
  })
})

t.test('failures and credentials', async t => {
  t.strictSame(tei.failure?.(424, { error: 'inference failed', error_type: 'Backend' }), {
    message: 'inference failed',
    code: 'Backend',
    status: 502,
  })
  t.strictSame(tei.failure?.(429, { error: 'Model is overloaded', error_type: 'Overloaded' }), {
    message: 'Model is overloaded',
    code: 'Overloaded',
  })
  const { provider } = sampleModel()
  for (const { authorize } of [jina, voyage, tei]) {
    t.strictSame(authorize('k', provider), { authorization: 'Bearer k' })
    t.strictSame(authorize(null, provider), {})
  }
})
