import t from 'tap'
import type { JsonObject } from '../../../src/json.js'
import cohere from '../../../src/upstream/providers/cohere.js'
import { sampleCall, sampleModel } from '../../support/sample-call.js'
import { everySplit, faults, fixture, fixtureJson, translated } from '../../support/sse-split.js'

const { chat, rerank, embeddings } = cohere.wires
const streamed = (name: string) => {
  const bytes = fixture(name)
  const events = () => {
    const translator = chat?.events?.(sampleCall('chat', { stream: true }))
    if (translator === undefined) throw new Error('no translator')
    return translator
  }
  return { bytes, events, chunks: translated(events(), [bytes]) }
}
const deltas = (chunks: readonly JsonObject[]) =>
  chunks.map(({ choices, usage }) => usage ?? (choices as JsonObject[]).map(({ delta, finish_reason }) => finish_reason ?? delta)[0])

t.test('a request is told in the words of Cohere', async t => {
  const call = sampleCall('chat', {
    stream: true,
    max_tokens: 200,
    top_p: 0.9,
    stop: 'END',
    seed: 7,
    n: 2,
    user: 'u',
    temperature: null,
    reasoning_effort: 'low',
    tool_choice: { type: 'function', function: { name: 'get_weather' } },
    tools: [
      { type: 'function', function: { name: 'get_weather', description: 'Weather', parameters: { type: 'object' }, strict: true } },
      { type: 'function', function: { name: 'now' } },
    ],
    response_format: { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'object' } } },
    messages: [
      {
        role: 'developer',
        content: [
          { type: 'text', text: 'Be ' },
          { type: 'text', text: 'brief.' },
        ],
      },
      {
        role: 'user',
        name: 'bob',
        content: [
          { type: 'text', text: 'Look' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AA' } },
        ],
      },
      {
        role: 'assistant',
        content: 'Let me look.',
        refusal: null,
        tool_calls: [{ id: 'c1', type: 'function', function: { name: 'get_weather', arguments: '{}' }, extra: 1 }],
      },
      { role: 'tool', tool_call_id: 'c1', content: [{ type: 'text', text: '14 °C' }] },
      { role: 'assistant', content: 'It is 14 °C.', reasoning_content: 'hm' },
      { role: 'user', content: 'Again' },
    ],
  })
  t.equal(chat?.path(call), '/chat')
  t.strictSame(chat?.request?.(call), {
    model: 'model-1',
    messages: [
      { role: 'system', content: 'Be brief.' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Look' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AA' } },
        ],
      },
      {
        role: 'assistant',
        tool_calls: [{ id: 'c1', type: 'function', function: { name: 'get_weather', arguments: '{}' } }],
        tool_plan: 'Let me look.',
      },
      { role: 'tool', tool_call_id: 'c1', content: '14 °C' },
      { role: 'assistant', content: 'It is 14 °C.' },
      { role: 'user', content: 'Again' },
    ],
    stream: true,
    max_tokens: 200,
    p: 0.9,
    seed: 7,
    stop_sequences: ['END'],
    tools: [{ type: 'function', function: { name: 'get_weather', description: 'Weather', parameters: { type: 'object' } } }],
    tool_choice: 'REQUIRED',
    response_format: { type: 'json_object', json_schema: { type: 'object' } },
    thinking: { type: 'enabled' },
  })
})

t.test('choices of tools, formats and thinking', async t => {
  const tools = [{ type: 'function', function: { name: 'now' } }]
  const made = [{ type: 'function', function: { name: 'now', parameters: { type: 'object', properties: {} } } }]
  const rows: [JsonObject, JsonObject][] = [
    [{ tools, tool_choice: 'auto' }, { tools: made }],
    [
      { tools, tool_choice: 'none' },
      { tools: made, tool_choice: 'NONE' },
    ],
    [
      { tools, tool_choice: 'required' },
      { tools: made, tool_choice: 'REQUIRED' },
    ],
    [{ tools: [], tool_choice: 'required' }, {}],
    [
      {
        tools: [...tools, { type: 'function', function: { name: 'later' } }],
        tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'required', tools } },
      },
      { tools: made, tool_choice: 'REQUIRED' },
    ],
    [{ response_format: { type: 'text' } }, {}],
    [{ response_format: { type: 'json_object' } }, { response_format: { type: 'json_object' } }],
    [{ reasoning_effort: 'none' }, { thinking: { type: 'disabled' } }],
    [{ stop: ['a', 'b'] }, { stop_sequences: ['a', 'b'] }],
    [{ max_completion_tokens: 9 }, { max_tokens: 9 }],
  ]
  const messages = [{ role: 'user', content: 'a' }]
  for (const [given, expected] of rows) {
    const { model, stream, messages: _, ...rest } = chat?.request?.(sampleCall('chat', { messages, ...given })) ?? {}
    t.strictSame(rest, expected, JSON.stringify(given))
  }
})

t.test('tools that are no functions, and a choice of none of them, are refused', async t => {
  const refused = (asked: JsonObject, param: string) => {
    const call = sampleCall('chat', { messages: [{ role: 'user', content: 'a' }], ...asked })
    t.throws(() => chat?.request?.(call), { code: 'invalid_request', param })
  }
  refused({ tools: [{ type: 'custom', custom: { name: 'sql' } }], tool_choice: 'required' }, 'tools[0]')
  const tools = [{ type: 'function', function: { name: 'now' } }]
  refused({ tools, tool_choice: { type: 'function', function: { name: 'then' } } }, 'tool_choice')
})

t.test('what Cohere has no word for is refused by its path', async t => {
  const refused = (message: JsonObject, param: string) => {
    const call = sampleCall('chat', { messages: [{ role: 'user', content: 'a' }, message] })
    t.throws(() => chat?.request?.(call), { code: 'invalid_request', param })
  }
  refused(
    {
      role: 'user',
      content: [
        { type: 'text', text: 'a' },
        { type: 'input_audio', input_audio: {} },
      ],
    },
    'messages[1].content[1]',
  )
  refused({ role: 'system', content: [{ type: 'image_url', image_url: {} }] }, 'messages[1].content[0]')
  refused({ role: 'function', name: 'f', content: 'a' }, 'messages[1].role')
  refused({ role: 'assistant', tool_calls: [{ id: 'c', type: 'custom', custom: {} }] }, 'messages[1].tool_calls[0]')
})

t.test('a whole answer: thinking, plan, calls, and what is billed', async t => {
  t.strictSame(chat?.response?.(fixtureJson('cohere/chat.provider.json'), sampleCall('chat', {}), {}), {
    id: 'chatcmpl-01K9ZB3J6Q0V8N7T5R4W2Y1XCD',
    object: 'chat.completion',
    created: 1741569952,
    model: 'acme/model-1',
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: 'I will look it up.',
          refusal: null,
          reasoning_content: 'Weather, then.',
          tool_calls: [
            { id: 'get_weather_1', type: 'function', function: { name: 'get_weather', arguments: '{"city":"Tehran"}' } },
            { id: 'now_2', type: 'function', function: { name: 'now', arguments: '{}' } },
          ],
        },
        logprobs: null,
        finish_reason: 'tool_calls',
      },
    ],
    // 880 cached tokens are of the hidden preamble for the most part: never more than the input that is billed.
    usage: {
      prompt_tokens: 37,
      completion_tokens: 22,
      total_tokens: 59,
      prompt_tokens_details: { cached_tokens: 37 },
      completion_tokens_details: { reasoning_tokens: 0 },
    },
  })
})

t.test('a whole answer that failed, or is none', async t => {
  const answer = (finish_reason: string, more = {}) => ({ message: { content: [{ type: 'text', text: 'a' }] }, finish_reason, ...more })
  const read = (body: unknown) => chat?.response?.(body, sampleCall('chat', {}), {})
  const reasons = { COMPLETE: 'stop', STOP_SEQUENCE: 'stop', MAX_TOKENS: 'length', TOOL_CALL: 'tool_calls', constructor: 'stop' }
  for (const [theirs, ours] of Object.entries(reasons)) t.match(read(answer(theirs)), { choices: [{ finish_reason: ours }] })
  t.throws(() => read(answer('ERROR', { error: 'boom' })), { name: 'ProviderFailure', failure: { status: 502, message: 'boom' } })
  t.throws(() => read(answer('TIMEOUT')), { name: 'ProviderFailure', failure: { status: 504 } })
  t.throws(() => read({ text: 'a' }), { name: 'TypeError' })
  t.equal(read(answer('COMPLETE'))?.usage, undefined)
  t.match(read(answer('COMPLETE', { usage: { tokens: { input_tokens: 3, output_tokens: 4 } } })), { usage: { total_tokens: 7 } })
})

t.test('a stream with thinking', async t => {
  const { chunks } = streamed('cohere/chat-thinking.provider.sse')
  t.strictSame(faults(chunks), [])
  t.strictSame(deltas(chunks), [
    { role: 'assistant', content: '' },
    { reasoning_content: 'They greet me.' },
    { content: 'سلام' },
    { content: ', hello 👋' },
    'stop',
    {
      prompt_tokens: 4,
      completion_tokens: 11,
      total_tokens: 15,
      prompt_tokens_details: { cached_tokens: 4 },
      completion_tokens_details: { reasoning_tokens: 0 },
    },
  ])
  t.strictSame(chunks[0], {
    id: 'chatcmpl-01K9ZB3J6Q0V8N7T5R4W2Y1XCD',
    object: 'chat.completion.chunk',
    created: 1741569952,
    model: 'acme/model-1',
    choices: [{ index: 0, delta: { role: 'assistant', content: '' }, logprobs: null, finish_reason: null }],
  })
})

t.test('a stream with a plan and calls; a call without arguments has an empty object', async t => {
  const { chunks } = streamed('cohere/chat-tools.provider.sse')
  t.strictSame(faults(chunks), [])
  const called = (index: number, id: string, name: string) => ({
    tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }],
  })
  const written = (index: number, text: string) => ({ tool_calls: [{ index, function: { arguments: text } }] })
  t.strictSame(deltas(chunks), [
    { role: 'assistant', content: '' },
    { content: 'I will look' },
    { content: ' it up.' },
    called(0, 'get_weather_1', 'get_weather'),
    written(0, '{"city":'),
    written(0, '"تهران"}'),
    called(1, 'now_2', 'now'),
    written(1, '{}'),
    called(2, 'today_3', 'today'),
    written(2, '{}'),
    'tool_calls',
    {
      prompt_tokens: 37,
      completion_tokens: 22,
      total_tokens: 59,
      prompt_tokens_details: { cached_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 0 },
    },
  ])
})

t.test('streams are the same wherever they are cut', async t => {
  for (const name of ['cohere/chat-thinking.provider.sse', 'cohere/chat-tools.provider.sse']) {
    const { bytes, events, chunks } = streamed(name)
    const whole = JSON.stringify(chunks)
    const different = everySplit(bytes).filter(pieces => JSON.stringify(translated(events(), pieces)) !== whole)
    t.equal(different.length, 0, name)
  }
})

t.test('a stream that breaks off or reports an error is a failure', async t => {
  const { bytes, events } = streamed('cohere/chat-thinking.provider.sse')
  const cutAt = bytes.indexOf('event: message-end')
  t.throws(() => translated(events(), [bytes.subarray(0, cutAt)]), { name: 'ProviderFailure' })
  const ended = (delta: JsonObject) => events().event({ event: 'message-end', data: JSON.stringify({ type: 'message-end', delta }) })
  const told = { finish_reason: 'ERROR', error: 'no route' }
  t.throws(() => ended(told), { name: 'ProviderFailure', failure: { status: 502, message: 'no route' } })
  t.throws(() => events().event({ data: '{' }), { name: 'ProviderFailure' })
  t.throws(() => events().event({ data: '7' }), { name: 'ProviderFailure' })
  t.strictSame(events().event({ data: '{"type":"debug"}' }), [], 'an unknown event is nothing')
  t.strictSame(events().event({ data: '{"type":"tool-call-delta","delta":{"message":{"tool_calls":{"function":{"arguments":"x"}}}}}' }), [])
})

t.test('rerank: strings go, searches are billed where the config says so', async t => {
  const body = { query: 'q', documents: ['a', { text: 'b' }, 'c', 'd'], top_n: 2, return_documents: true, max_tokens_per_doc: 99 }
  const call = sampleCall('rerank', body)
  t.equal(rerank?.path(call), '/rerank')
  const sent = { model: 'model-1', query: 'q', documents: ['a', 'b', 'c', 'd'], top_n: 2, max_tokens_per_doc: 99 }
  t.strictSame(rerank?.request?.(call), sent)
  const answer = fixtureJson('cohere/rerank.provider.json')
  t.strictSame(rerank?.response?.(answer, call, {}), answer)
  const units = sampleCall('rerank', body, sampleModel({}, { rerank: 'units' }))
  t.match(rerank?.response?.(answer, units, {}), {
    usage: { prompt_tokens: 1, total_tokens: 1 },
    meta: { billed_units: { search_units: 1 } },
  })
  t.equal(cohere.defaults?.rerank, 'query_once')
  t.throws(() => rerank?.response?.([], call, {}))
})

t.test('embeddings', async t => {
  const call = sampleCall('embeddings', { input: 'hello', encoding_format: 'base64', dimensions: 256, user: 'u' })
  t.equal(embeddings?.path(call), '/embed')
  const sent = { model: 'model-1', texts: ['hello'], input_type: 'search_document', embedding_types: ['float'], output_dimension: 256 }
  t.strictSame(embeddings?.request?.(call), sent)
  const type = (body: JsonObject, options = {}) =>
    embeddings?.request?.(sampleCall('embeddings', { input: ['a'], ...body }, sampleModel({ options })))?.input_type
  t.equal(type({ input_type: 'query' }), 'search_query')
  t.equal(type({ input_type: 'clustering' }), 'clustering')
  t.equal(type({}, { input_type: 'query' }), 'search_query')
  t.equal(type({ input_type: 'search_document' }, { input_type: 'query' }), 'search_document')
  t.throws(() => embeddings?.request?.(sampleCall('embeddings', { input: [1, 2] })), { code: 'invalid_request', param: 'input' })
  t.strictSame(embeddings?.response?.(fixtureJson('cohere/embed.provider.json'), call, {}), {
    object: 'list',
    data: [
      { object: 'embedding', index: 0, embedding: [0.016296387, -0.008354187] },
      { object: 'embedding', index: 1, embedding: [0.04663086, -0.023239136] },
    ],
    usage: { prompt_tokens: 2, total_tokens: 2 },
  })
  t.throws(() => embeddings?.response?.({ embeddings: [[1]] }, call, {}))
})

t.test('failures and credentials', async t => {
  t.strictSame(cohere.failure?.(400, { message: 'no' }), { message: 'no' })
  t.strictSame(cohere.failure?.(498, { message: 'invalid token' }), { message: 'invalid token', status: 401 })
  t.strictSame(cohere.failure?.(499, {}), { status: 502 })
  t.strictSame(cohere.authorize('k', sampleModel().provider), { authorization: 'Bearer k' })
})
