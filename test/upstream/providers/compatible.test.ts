import { readdirSync } from 'node:fs'
import t from 'tap'
import type { ProviderSettings } from '../../../src/config/config.js'
import type { Surface } from '../../../src/endpoints/endpoint.js'
import type { JsonObject } from '../../../src/json.js'
import { StreamUsage } from '../../../src/metering/meter.js'
import azure from '../../../src/upstream/providers/azure.js'
import geminiCompat from '../../../src/upstream/providers/gemini-compat.js'
import mistral from '../../../src/upstream/providers/mistral.js'
import ollama from '../../../src/upstream/providers/ollama.js'
import openai from '../../../src/upstream/providers/openai.js'
import type { Provider, Wire } from '../../../src/upstream/providers/provider.js'
import together from '../../../src/upstream/providers/together.js'
import { chunksIn, framed, tell } from '../../support/answer-stream.js'
import { sampleCall, sampleModel } from '../../support/sample-call.js'
import { everySplit, faults, fixture } from '../../support/sse-split.js'

const sent = (provider: Provider, surface: Surface, body: JsonObject, model = sampleModel()) => {
  const call = sampleCall(surface, body, model)
  return provider.wires[surface]?.request?.(call) ?? call.body
}

t.test('each server: address, spelling of the cap, how streams report usage', async t => {
  const rows: [string, string | undefined, ProviderSettings['cap'], ProviderSettings['usage_stream']][] = [
    ['openai', 'https://api.openai.com/v1', 'max_tokens', 'option'],
    ['azure', undefined, 'max_completion_tokens', 'option'],
    ['bedrock', undefined, 'max_completion_tokens', 'option'],
    ['gemini-compat', 'https://generativelanguage.googleapis.com/v1beta/openai', 'max_tokens', 'option'],
    ['deepseek', 'https://api.deepseek.com', 'max_tokens', 'option'],
    ['groq', 'https://api.groq.com/openai/v1', 'max_completion_tokens', 'always'],
    ['mistral', 'https://api.mistral.ai/v1', 'max_tokens', 'always'],
    ['xai', 'https://api.x.ai/v1', 'max_completion_tokens', 'option'],
    ['together', 'https://api.together.xyz/v1', 'max_tokens', 'option'],
    ['fireworks', 'https://api.fireworks.ai/inference/v1', 'max_tokens', 'always'],
    ['openrouter', 'https://openrouter.ai/api/v1', 'max_tokens', 'always'],
    ['vllm', undefined, 'max_tokens', 'option'],
    ['ollama', undefined, 'max_tokens', 'option'],
    ['llamacpp', undefined, 'max_tokens', 'option'],
    ['lmstudio', undefined, 'max_tokens', 'option'],
  ]
  for (const [kind, baseUrl, cap, usage] of rows) {
    const { default: provider } = (await import(`../../../src/upstream/providers/${kind}.js`)) as { default: Provider }
    const { defaults } = provider
    t.strictSame([provider.kind, provider.baseUrl, defaults?.cap, defaults?.usage_stream], [kind, baseUrl, cap, usage])
    t.strictSame(Object.keys(provider.wires).sort(), ['chat', 'completions', 'embeddings', 'moderations', 'rerank'])
    if (kind === 'azure') continue
    t.strictSame(provider.authorize('k', sampleModel().provider), { authorization: 'Bearer k' })
    t.strictSame(provider.authorize(null, sampleModel().provider), {})
  }
})

t.test('the name of a kind is the name of its file', async t => {
  const folder = new URL('../../../src/upstream/providers/', import.meta.url)
  for (const file of readdirSync(folder).filter(name => name.endsWith('.js') && name !== 'provider.js')) {
    const { default: provider } = (await import(new URL(file, folder).href)) as { default: Provider }
    t.equal(`${provider.kind}.js`, file)
  }
})

t.test('paths are those of OpenAI', async t => {
  const path = (surface: Surface) => openai.wires[surface]?.path(sampleCall(surface, {}))
  t.strictSame(
    [path('chat'), path('completions'), path('embeddings'), path('moderations'), path('rerank')],
    ['/chat/completions', '/completions', '/embeddings', '/moderations', '/rerank'],
  )
})

t.test('answers pass as they are', async t => {
  for (const surface of ['chat', 'completions', 'embeddings', 'moderations'] as const) {
    t.equal(openai.wires[surface]?.response, undefined)
    t.equal(openai.wires[surface]?.events, undefined)
  }
})

t.test('newer models of OpenAI get the only spelling that they take', async t => {
  const spelling = (upstream: string, body: JsonObject) => sent(openai, 'chat', body, sampleModel({ upstream }))
  for (const upstream of ['o1', 'o3-mini', 'o4-mini', 'gpt-5', 'gpt-5.5-mini', 'gpt-6', 'gpt-10', 'ft:gpt-5-mini:acme']) {
    t.strictSame(spelling(upstream, { max_tokens: 9 }), { model: upstream, max_completion_tokens: 9 }, upstream)
  }
  for (const upstream of ['gpt-4o-mini', 'gpt-4.1', 'gpt-3.5-turbo', 'olmo-2', 'llama3', 'gpt-oss-20b']) {
    t.strictSame(spelling(upstream, { max_tokens: 9 }), { model: upstream, max_tokens: 9 }, upstream)
  }
  t.strictSame(spelling('o3', { max_completion_tokens: 9 }), { model: 'o3', max_completion_tokens: 9 })
})

t.test('what one surface needs at all servers', async t => {
  t.strictSame(sent(openai, 'completions', { prompt: 'a', max_completion_tokens: 9 }), { model: 'model-1', prompt: 'a', max_tokens: 9 })
  t.strictSame(sent(openai, 'embeddings', { input: 'a', input_type: 'query', dimensions: 9 }), {
    model: 'model-1',
    input: 'a',
    dimensions: 9,
  })
  t.strictSame(sent(openai, 'rerank', { query: 'q', documents: [{ text: 'a' }], return_documents: true }), {
    model: 'model-1',
    query: 'q',
    documents: ['a'],
  })
})

t.test('azure: key header, Entra token, older paths', async t => {
  const settings = (options: JsonObject) => sampleModel({}, { options }).provider
  t.strictSame(azure.authorize('k', settings({})), { 'api-key': 'k' })
  t.strictSame(azure.authorize('k', settings({ auth: 'bearer' })), { authorization: 'Bearer k' })
  t.strictSame(azure.authorize(null, settings({})), {})
  const path = (options: JsonObject) => azure.wires.chat?.path(sampleCall('chat', {}, sampleModel({ upstream: 'my gpt' }, { options })))
  t.equal(path({}), '/chat/completions')
  t.equal(path({ api_version: '2024-10-21' }), '/deployments/my%20gpt/chat/completions?api-version=2024-10-21')
})

t.test('ollama: what it does not know is not sent', async t => {
  const body = { messages: [], n: 2, tool_choice: 'auto', logit_bias: {}, max_tokens: 9 }
  t.strictSame(sent(ollama, 'chat', body), { model: 'model-1', messages: [], max_tokens: 9 })
})

t.test('together: 403 for a prompt that is too long is the fault of the request', async t => {
  const body = { error: { message: 'The token count of your prompt exceeds the context length.' } }
  t.match(together.failure?.(403, body), { status: 400, code: 'context_length_exceeded' })
  t.strictSame(together.failure?.(403, { error: { message: 'no access' } }), { message: 'no access' })
  t.strictSame(together.failure?.(400, body), { message: body.error.message })
})

t.test('mistral: only what it knows is sent, at every depth', async t => {
  const body = {
    stream: true,
    stream_options: { include_usage: true },
    seed: 7,
    max_completion_tokens: 9,
    logprobs: true,
    user: 'u',
    messages: [
      { role: 'developer', content: 'Be brief.', name: 'x' },
      { role: 'user', content: 'a', name: 'bob' },
      {
        role: 'assistant',
        content: null,
        refusal: null,
        annotations: [],
        reasoning_content: 'hm',
        tool_calls: [{ index: 0, id: 'D681PevKs', type: 'function', function: { name: 'f', arguments: '{}' }, extra_content: {} }],
      },
      { role: 'tool', tool_call_id: 'D681PevKs', content: 'b', extra: 1 },
    ],
  }
  t.strictSame(sent(mistral, 'chat', body), {
    model: 'model-1',
    stream: true,
    random_seed: 7,
    max_tokens: 9,
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'a' },
      { role: 'assistant', content: null, tool_calls: [{ id: 'D681PevKs', type: 'function', function: { name: 'f', arguments: '{}' } }] },
      { role: 'tool', tool_call_id: 'D681PevKs', content: 'b' },
    ],
  })
  t.strictSame(sent(mistral, 'embeddings', { input: 'a', encoding_format: 'base64', dimensions: 9, user: 'u' }), {
    model: 'model-1',
    input: 'a',
    output_dimension: 9,
  })
})

t.test('mistral: ids of calls are of the shape that it takes', async t => {
  const ids = ['D681PevKs', 'call_abcdefghijklmnop', 'toolu_1', 'abcdefghiJ', '']
  const tool_calls = ids.map(id => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } }))
  const results = ids.map(id => ({ role: 'tool', tool_call_id: id, content: id }))
  const { messages } = sent(mistral, 'chat', { messages: [{ role: 'assistant', content: null, tool_calls }, ...results] }) as {
    readonly messages: readonly [{ readonly tool_calls: typeof tool_calls }, ...(typeof results)[number][]]
  }
  const [{ tool_calls: calls }, ...answered] = messages
  const made = calls.map(call => call.id)
  t.equal(made[0], 'D681PevKs', 'its own stay')
  t.ok(made.every(id => /^[a-zA-Z0-9]{9}$/.test(id)))
  t.equal(new Set(made).size, ids.length)
  t.strictSame(
    answered.map(result => result.tool_call_id),
    made,
    'results have those of their calls',
  )
})

t.test('mistral: reasons of its own to end', async t => {
  const choice = (finish_reason: string | null) => ({ index: 0, message: { role: 'assistant', content: 'a' }, finish_reason })
  const read = (...reasons: (string | null)[]) =>
    mistral.wires.chat?.response?.({ choices: reasons.map(choice) }, sampleCall('chat', {}), {})
  t.strictSame(read('model_length', 'stop', 'tool_calls'), { choices: ['length', 'stop', 'tool_calls'].map(choice) })
  t.throws(() => read('stop', 'error'), { name: 'ProviderFailure' })
  const events = (finish_reason: string) => {
    const told = mistral.wires.chat?.events?.(sampleCall('chat', { stream: true }))
    const data = JSON.stringify({ id: 'a', choices: [{ index: 0, delta: { content: 'a' }, finish_reason }] })
    return [...(told?.event({ data }) ?? [])]
  }
  t.match(events('model_length'), [{ choices: [{ delta: { content: 'a' }, finish_reason: 'length' }] }])
  t.throws(() => events('error'), { name: 'ProviderFailure' })
})

t.test('mistral: fields of its own are sent', async t => {
  const body = { reasoning_effort: 'high', prompt_mode: 'reasoning', prompt_cache_key: 'k', safe_prompt: true, guardrails: [] }
  t.strictSame(sent(mistral, 'chat', body), { model: 'model-1', ...body })
})

t.test('mistral: completions fill in text', async t => {
  const call = sampleCall('completions', {})
  const wire = mistral.wires.completions
  t.equal(wire?.path?.(call), '/fim/completions')
  t.equal(mistral.wires.chat?.path?.(call), '/chat/completions')
  t.strictSame(sent(mistral, 'completions', { prompt: 'a', suffix: 'c', seed: 7, echo: false, n: 1, user: 'u' }), {
    model: 'model-1',
    prompt: 'a',
    suffix: 'c',
    random_seed: 7,
  })
  const usage = { prompt_tokens: 2, completion_tokens: 1, total_tokens: 3 }
  const message = { role: 'assistant', content: 'b', tool_calls: null }
  const answer = {
    id: 'x',
    object: 'chat.completion',
    created: 5,
    model: 'm',
    choices: [{ index: 0, message, finish_reason: 'stop' }],
    usage,
  }
  t.strictSame(wire?.response?.(answer, call, {}), {
    id: `cmpl-${call.id}`,
    object: 'text_completion',
    created: 5,
    model: 'm',
    choices: [{ index: 0, text: 'b', logprobs: null, finish_reason: 'stop' }],
    usage,
  })
  t.throws(() => wire?.response?.({ id: 'x' }, call, {}))
})

t.test('mistral: thinking becomes reasoning_content, the text a string', async t => {
  const content = [
    {
      type: 'thinking',
      thinking: [
        { type: 'text', text: 'Hm, ' },
        { type: 'text', text: 'tea.' },
      ],
    },
    { type: 'text', text: 'Tea' },
    { type: 'reference', reference_ids: [1] },
    { type: 'text', text: '!' },
  ]
  const answer = (message: JsonObject) => ({ id: 'a', choices: [{ index: 0, message, finish_reason: 'stop' }], usage: { unknown: 1 } })
  const read = (body: unknown) => mistral.wires.chat?.response?.(body, sampleCall('chat', {}), {})
  t.strictSame(read(answer({ role: 'assistant', content })), answer({ role: 'assistant', content: 'Tea!', reasoning_content: 'Hm, tea.' }))
  t.strictSame(read(answer({ role: 'assistant', content: 'a' })), answer({ role: 'assistant', content: 'a' }))
  t.throws(() => read('a'))
})

t.test('mistral: the cached part of the input is told where clients look for it', async t => {
  const read = (usage: JsonObject) => mistral.wires.chat?.response?.({ choices: [], usage }, sampleCall('chat', {}), {})?.usage
  t.strictSame(read({ num_cached_tokens: 8 }), { num_cached_tokens: 8, prompt_tokens_details: { cached_tokens: 8 } })
  const both = { num_cached_tokens: 8, prompt_tokens_details: { cached_tokens: 7 } }
  t.strictSame(read(both), both, 'its own figure stays')
})

const streams: [Provider, string, unknown[]][] = [
  [
    mistral,
    'mistral/chat-thinking.provider.sse',
    [
      { role: 'assistant', content: '' },
      { content: null, reasoning_content: 'Hm, tea.' },
      { content: 'چای' },
      { content: '' },
      { prompt_tokens: 12, total_tokens: 40, completion_tokens: 28, num_cached_tokens: 8, prompt_tokens_details: { cached_tokens: 8 } },
    ],
  ],
  [
    geminiCompat,
    'gemini-compat/chat-tools.provider.sse',
    [
      { role: 'assistant', content: 'Let me look.' },
      {
        tool_calls: [
          {
            extra_content: { google: { thought_signature: 'EqQC' } },
            index: 0,
            id: 'fc_1',
            type: 'function',
            function: { arguments: '{"city":"Tehran"}', name: 'get_weather' },
          },
        ],
      },
      {
        tool_calls: [{ index: 1, id: 'call_01K9ZB3J6Q0V8N7T5R4W2Y1XCD_0_1', type: 'function', function: { arguments: '{}', name: 'now' } }],
      },
      { prompt_tokens: 60, completion_tokens: 20, total_tokens: 125 },
    ],
  ],
]

for (const [provider, name, expected] of streams) {
  t.test(`${provider.kind}: a stream is brought back to the rules, wherever it is cut`, async t => {
    const bytes = fixture(name)
    const wire = wireOf(provider)
    const { text, ended } = tell([bytes], { wire })
    t.equal(ended, 'done')
    const chunks = chunksIn(text)
    t.strictSame(faults(chunks), [])
    const deltas = chunks.map(({ choices, usage }) => usage ?? (choices as JsonObject[])[0]?.delta)
    t.strictSame(deltas, expected)
    t.match(chunks[0], { id: 'chatcmpl-01K9ZB3J6Q0V8N7T5R4W2Y1XCD', model: 'acme/model-1', created: 1741569952 })
    t.equal(everySplit(bytes).filter(pieces => tell(pieces, { wire }).text !== text).length, 0)
    t.notMatch(tell([bytes], { wire, includeUsage: false }).text, 'usage', 'a client that did not ask for usage gets none')
    const last = bytes.lastIndexOf('data: {')
    t.match(tell([bytes.subarray(0, last)], { wire }).error, { name: 'ProviderFailure' }, 'the end is missing')
  })
}

t.test('usage that grows from choice to choice is told once, and billed as it is told', async t => {
  const tokens = (completion_tokens: number) => ({ prompt_tokens: 10, completion_tokens, total_tokens: 10 + completion_tokens })
  const chunk = (index: number, usage: JsonObject) => ({
    id: 'chatcmpl-x',
    created: 1741569952,
    choices: [{ index, delta: { role: 'assistant', content: 'a' }, finish_reason: 'stop' }],
    usage,
  })
  for (const provider of [geminiCompat, mistral]) {
    const { text, metered } = tell([framed([chunk(0, tokens(1000)), chunk(1, tokens(2000)), chunk(1, { total_tokens: -1 })])], {
      wire: wireOf(provider),
    })
    const usage = new StreamUsage({ strict: false })
    for (const each of metered) usage.add(each)
    t.match(usage.usage, { input: 10, output: 2000 }, `${provider.kind}: billed`)
    const told = chunksIn(text).filter(each => each.usage !== undefined)
    t.match(told, [{ choices: [], usage: tokens(2000) }], `${provider.kind}: told`)
    t.equal(told.length, 1)
  }
})

t.test('the rules that imitators break', async t => {
  const chunk = (choices: JsonObject[], more: JsonObject = {}) => ({ id: 'chatcmpl-x', created: 1741569952, choices, ...more })
  const run = (...given: JsonObject[]) => tell([framed(given)], { wire: wireOf(geminiCompat) })
  const called = (given: JsonObject) => chunk([{ index: 0, delta: { tool_calls: [given] } }])
  const end = chunk([{ index: 0, delta: {}, finish_reason: 'tool_calls' }])
  const calls = (...given: JsonObject[]) =>
    chunksIn(run(...given.map(called), end).text).flatMap(each =>
      (each.choices as { delta: { tool_calls?: JsonObject[] } }[]).flatMap(({ delta }) => delta.tool_calls ?? []),
    )

  const f = { name: 'f', arguments: '{' }
  const rest = { arguments: '}' }
  const whole = [
    { index: 0, id: 'a', type: 'function', function: f },
    { index: 0, function: rest },
  ]
  t.strictSame(
    calls({ index: 1, id: 'a', type: 'function', function: f }, { index: 1, id: 'a', function: { name: 'f', ...rest } }),
    whole,
    'begins at 1',
  )
  t.strictSame(calls({ id: 'a', function: f }, { id: 'a', function: rest }), whole, 'no index: by id')
  t.strictSame(calls({ id: 'a', function: f }, { function: rest }), whole, 'no index, no id: the last one')

  const messy = chunksIn(
    run(
      chunk([{ index: 1, delta: { content: 'b' } }]),
      chunk([{ index: 0, delta: { role: '', content: 'a' } }], { usage: { total_tokens: 1 } }),
      chunk([{ index: 1, delta: { role: 'assistant' }, finish_reason: 'stop' }]),
      chunk([], { usage: { total_tokens: 2 } }),
      chunk([], { prompt_filter_results: [] }),
      chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]),
    ).text,
  )
  t.strictSame(faults(messy), [])
  t.strictSame(messy.at(-1)?.usage, { total_tokens: 2 }, 'the last usage, once')
  t.ok(
    messy.some(each => 'prompt_filter_results' in each),
    'what is not known passes',
  )
  const open = run(
    chunk([
      { index: 0, delta: {}, finish_reason: 'stop' },
      { index: 1, delta: {} },
    ]),
  )
  t.match(open.error, { name: 'ProviderFailure' })
  t.match(run({ error: { code: 429, message: 'slow down' } }).error, {
    name: 'ProviderFailure',
    failure: { status: 429, message: 'slow down' },
  })
})

function wireOf(provider: Provider): Wire {
  const wire = provider.wires.chat
  if (wire === undefined) throw new Error('no chat')
  return wire
}
