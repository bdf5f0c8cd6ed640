import { equal, ok } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import type { JsonObject } from '../../../src/json.js'
import { count, pieces, repeated } from '../../../src/upstream/providers/sandbox/pieces.js'
import sandbox from '../../../src/upstream/providers/sandbox.js'
import { asked, Heard, ID, opened, request, says } from './sandbox/driving.js'

t.test('is a provider that needs no server and no credentials', t => {
  t.match(sandbox, { kind: 'sandbox', baseUrl: 'sandbox:' })
  t.same(sandbox.authorize(), {})
  const paths = Object.values(sandbox.wires).map(wire => wire.path(request('chat', says('')).call))
  t.same(paths, ['/chat/completions', '/completions', '/rerank', '/moderations', '/embeddings'])
  t.end()
})

t.test('every option is described', t => {
  const described = (schema: JsonObject): boolean => {
    const below = Object.values((schema.properties ?? {}) as { [name: string]: JsonObject })
    return below.every(one => typeof one.description === 'string' && described(one))
  }
  t.ok(described(sandbox.modelOptions))
  const options = ['reply', 'tokens', 'first_byte', 'pace', 'usage', 'ignore_stream', 'fail', 'cut', 'reset', 'hang', 'refuse']
  t.same(Object.keys(sandbox.modelOptions.properties as JsonObject), options)
  t.end()
})

t.test('completions answer each prompt n times', async t => {
  const heard = await asked('completions', { prompt: ['one', 'two three'], n: 2, stream: true })
  t.same(heard.json(), {
    id: `cmpl-${ID}`,
    object: 'text_completion',
    created: 1_741_569_952,
    model: 'echo',
    choices: ['one', 'one', 'two three', 'two three'].map((prompt, index) => {
      return { index, text: `You said: ${prompt}`, logprobs: null, finish_reason: 'stop' }
    }),
    usage: {
      prompt_tokens: 3,
      completion_tokens: 14,
      total_tokens: 17,
      prompt_tokens_details: { cached_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 0 },
    },
  })
})

t.test('completions honour cap, stop and echo, and take tokens', async t => {
  const said = async (fields: JsonObject) => (await asked('completions', fields)).json()
  t.match(await said({ prompt: 'one two three', max_tokens: 3 }), {
    choices: [{ text: 'You said: one ', finish_reason: 'length' }],
    usage: { completion_tokens: 3 },
  })
  t.match(await said({ prompt: 'one two', stop: 'two' }), { choices: [{ text: 'You said: one ', finish_reason: 'stop' }] })
  t.match(await said({ prompt: 'one', echo: true }), { choices: [{ text: 'oneYou said: one' }], usage: { completion_tokens: 3 } })
  t.match(await said({ prompt: [5, 6, 7] }), { choices: [{ text: 'You said: 5 6 7' }], usage: { prompt_tokens: 3 } })
  t.equal((await said({ prompt: [[5, 6], [7]] })).choices.length, 2)
})

interface Embeddings {
  object: string
  data: { object: string; index: number; embedding: number[] }[]
  usage: object
}

t.test('embeddings are unit vectors that the text decides', async t => {
  const { object, data, usage } = (await asked('embeddings', { input: ['one', 'two', 'one', ''] })).json<Embeddings>()
  t.equal(object, 'list')
  t.same(usage, { prompt_tokens: 3, total_tokens: 3 })
  t.same(
    data.map(one => [one.object, one.index, one.embedding.length]),
    [0, 1, 2, 3].map(index => ['embedding', index, 8]),
  )
  for (const { embedding } of data) t.ok(Math.abs(embedding.reduce((sum, value) => sum + value * value, 0) - 1) < 1e-6)
  t.same(data[0]?.embedding, data[2]?.embedding)
  t.not(String(data[0]?.embedding), String(data[1]?.embedding))
})

t.test('embeddings come in any dimension, and as base64 of the same numbers', async t => {
  const floats = (await asked('embeddings', { input: 'one', dimensions: 300 })).json<Embeddings>().data[0]?.embedding ?? []
  t.equal(floats.length, 300)
  const fields = { input: 'one', dimensions: 300, encoding_format: 'base64' }
  const text = (await asked('embeddings', fields)).json<{ data: [{ embedding: string }] }>().data[0].embedding
  const bytes = Buffer.from(text, 'base64')
  t.same(
    floats.map((_, i) => bytes.readFloatLE(i * 4)),
    floats,
  )
  for (const dimensions of [0, 4097, 1.5, 'x']) {
    const refused = await asked('embeddings', { input: 'one', dimensions })
    t.equal(refused.status, 400)
    t.match(refused.json().error, { type: 'invalid_request_error', param: 'dimensions' })
  }
})

t.test('rerank scores by shared words, best first', async t => {
  const documents = ['A red fox', { text: 'The quick RED fox, jumping' }, 'nothing of it', 'quick']
  const answer = (await asked('rerank', { query: 'quick red fox', documents })).json<object>()
  t.match(answer, { id: `rerank-${ID}`, object: 'list', model: 'echo', usage: { prompt_tokens: 15, total_tokens: 15 } })
  t.same((answer as { results: object }).results, [
    { index: 1, relevance_score: 1 },
    { index: 0, relevance_score: 2 / 3 },
    { index: 3, relevance_score: 1 / 3 },
    { index: 2, relevance_score: 0 },
  ])
  const top = await asked('rerank', { query: 'fox', documents, top_n: 1, return_documents: true })
  t.same(top.json<{ results: object }>().results, [{ index: 0, relevance_score: 1, document: { text: 'A red fox' } }])
})

t.test('moderations flag plain words, and report no usage', async t => {
  const answer = (await asked('moderations', { input: ['I love you', 'No VIOLENCE, I hate it!'] })).json<{
    results: { flagged: boolean; categories: { [name: string]: boolean }; category_scores: { [name: string]: number } }[]
  }>()
  t.notOk('usage' in answer)
  t.same(
    answer.results.map(result => result.flagged),
    [false, true],
  )
  const [, bad] = answer.results
  t.same(
    Object.entries(bad?.categories ?? {}).flatMap(([name, flagged]) => (flagged ? [name] : [])),
    ['hate', 'violence'],
  )
  t.match(bad?.category_scores, { violence: 0.98, sexual: 0.01 })
  t.equal(Object.keys(bad?.categories ?? {}).length, 13)
  const parts = {
    input: [
      { type: 'text', text: 'kill' },
      { type: 'image_url', image_url: { url: 'data:,' } },
    ],
  }
  t.match((await asked('moderations', parts)).json(), { results: [{ flagged: true }] })
  t.match((await asked('moderations', { input: 'one two' }, { usage: { cached: 1 } })).json().usage, { prompt_tokens: 2, total_tokens: 2 })
})

t.test('fails with a status, as OpenAI words it', async t => {
  const limited = await asked('chat', { ...says('Hi'), stream: true }, { fail: { status: 429 } })
  t.match(limited, { status: 429, headers: { 'content-type': 'application/json', 'retry-after': '1' }, calls: ['head', 'data', 'end'] })
  t.match(limited.json().error, { type: 'requests', param: null, code: 'rate_limit_exceeded', message: /429/ })
  const down = await asked('rerank', { query: 'x', documents: ['y'] }, { fail: {} })
  t.equal(down.status, 500)
  t.notOk('retry-after' in down.headers)
  t.match(down.json().error, { type: 'server_error', code: null })
  const own = await asked('chat', says('Hi'), {
    fail: { status: 400, code: 'context_length_exceeded', message: 'Too long.', retry_after: 7 },
  })
  t.equal(own.headers['retry-after'], '7')
  t.same(own.json(), { error: { message: 'Too long.', type: 'invalid_request_error', param: null, code: 'context_length_exceeded' } })
})

t.test('fails the first times only, each model for itself', async t => {
  const transport = opened()
  const status = async (name: string) => {
    const heard = new Heard()
    transport.send(request('chat', says('Hi'), { fail: { status: 503, times: 2 } }, name), heard)
    await heard.over
    return heard.status
  }
  t.same(
    [await status('a'), await status('a'), await status('b'), await status('a'), await status('b'), await status('b')],
    [503, 503, 503, 200, 503, 200],
  )
})

t.test('breaks a stream after so many events', async t => {
  const stream = { ...says('one two'), stream: true, stream_options: { include_usage: true } }
  const failed = await asked('chat', stream, { fail: { status: 503, message: 'Gone.', after_events: 3 } })
  t.equal(failed.status, 200)
  t.equal(failed.events.length, 4)
  t.same(failed.events[3], { error: { message: 'Gone.', type: 'server_error', param: null, code: null } })
  t.equal(failed.calls.at(-1), 'end')

  for (const [n, events] of [
    [0, 0],
    [2, 2],
    [99, 5],
  ] as const) {
    const cut = await asked('chat', stream, { cut: n })
    t.equal(cut.events.length, events)
    t.equal(cut.calls.at(-1), 'end')
    t.notOk(/"finish_reason":"|\[DONE\]|usage/.test(cut.text), 'never finished')
  }
  const reset = await asked('chat', stream, { reset: 2 })
  t.same(reset.calls, ['head', 'data', 'data', 'failed'])
  t.match(reset.failure, { kind: 'broken', sent: true })
  t.same((await asked('chat', stream, { reset: 0 })).calls, ['failed'])
})

t.test('breaks an answer that is no stream', async t => {
  const cut = await asked('chat', says('Hi'), { cut: 1 })
  t.same(cut.calls, ['head', 'data', 'end'])
  t.throws(() => cut.json(), SyntaxError)
  t.same((await asked('chat', says('Hi'), { reset: 1 })).calls, ['head', 'data', 'failed'])
  t.same((await asked('chat', says('Hi'), { reset: 0 })).calls, ['failed'])
  t.equal((await asked('chat', says('Hi'), { fail: { after_events: 3 } })).status, 500)
})

t.test('takes no connection', async t => {
  const heard = await asked('chat', says('Hi'), { refuse: true, hang: true, fail: {} })
  t.same(heard.calls, ['failed'])
  t.match(heard.failure, { kind: 'refused', sent: false })
  t.notOk(heard.delivery.sent)
})

t.test('a body that is no request is answered, never thrown', async t => {
  for (const body of ['', '{', '[]', Buffer.from([0xff])]) {
    const heard = new Heard()
    opened().send({ ...request('chat', {}), body }, heard)
    await heard.over
    t.equal(heard.status, 400)
    t.equal(heard.json().error.type, 'invalid_request_error')
  }
  const heard = new Heard()
  const asking = request('chat', says('سلام'))
  opened().send({ ...asking, body: Buffer.from(asking.body) }, heard)
  await heard.over
  t.equal(heard.json().choices[0]?.message.content, 'You said: سلام', 'bytes are as good as text')
})

t.test('property: whatever the body, one answer comes', async () => {
  const names = ['messages', 'prompt', 'input', 'query', 'documents', 'tools', 'tool_choice', 'stop', 'n', 'max_tokens', 'response_format']
  const body = fc.dictionary(fc.constantFrom(...names), fc.jsonValue({ maxDepth: 3 }))
  const surface = fc.constantFrom('chat', 'completions', 'rerank', 'moderations', 'embeddings')
  await fc.assert(
    fc.asyncProperty(surface, body, fc.boolean(), async (surface, fields, stream) => {
      const heard = await asked(surface as 'chat', { ...(fields as JsonObject), stream })
      equal(heard.calls.filter(call => call === 'head' || call === 'end').join(), 'head,end')
      equal(heard.status, 200, heard.text)
    }),
    { numRuns: 300 },
  )
})

t.test('property: pieces are the text, and count as many or fewer', () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom(' ', '\n\n', 'word ', '👨‍👩‍👧')), { maxLength: 30 }),
      fc.nat(50),
      (parts, n) => {
        const text = parts.join('')
        const found = pieces(text)
        equal(found.join(''), text)
        ok(lone(text) || !found.some(lone), 'no character is torn')
        ok(count(text) <= found.length && count(text) <= Math.ceil(Buffer.byteLength(text) / 4))
        equal(repeated(found, n).length, n)
        equal(pieces(repeated(['a ', 'b'], n).join('')).length, n)
      },
    ),
  )
  return Promise.resolve()
})

function lone(text: string): boolean {
  return /\p{Surrogate}/u.test(text)
}
