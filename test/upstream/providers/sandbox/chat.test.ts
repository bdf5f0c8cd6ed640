import { deepEqual, equal, ok } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import type { JsonObject } from '../../../../src/json.js'
import { asked, type Call, type Chunk, type Heard, ID, says } from './driving.js'

const weather = {
  type: 'function',
  function: {
    name: 'get_weather',
    parameters: {
      type: 'object',
      properties: { city: { type: 'string' }, unit: { enum: ['C', 'F'] }, note: { type: 'string' } },
      required: ['city', 'unit'],
    },
  },
}
const time = { type: 'function', function: { name: 'get_time', parameters: { type: 'object', properties: {} } } }

t.test('answers with what the user said', async t => {
  const heard = await asked('chat', says('Hello there, friend'))
  t.same(heard.calls, ['head', 'data', 'end'])
  t.equal(heard.status, 200)
  t.equal(heard.headers['content-type'], 'application/json')
  t.same(heard.json(), {
    id: `chatcmpl-${ID}`,
    object: 'chat.completion',
    created: 1_741_569_952,
    model: 'echo',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: 'You said: Hello there, friend', refusal: null },
        logprobs: null,
        finish_reason: 'stop',
      },
    ],
    usage: {
      prompt_tokens: 4,
      completion_tokens: 5,
      total_tokens: 9,
      prompt_tokens_details: { cached_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 0 },
    },
  })
})

t.test('finds the text to answer', async t => {
  const table: [name: string, messages: JsonObject[], said: string][] = [
    [
      'the last user message',
      [
        { role: 'user', content: 'one' },
        { role: 'assistant', content: 'x' },
        { role: 'user', content: 'two' },
      ],
      'You said: two',
    ],
    [
      'the text parts',
      [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'a ' },
            { type: 'image_url', image_url: { url: 'data:,' } },
            { type: 'text', text: 'b' },
          ],
        },
      ],
      'You said: a b',
    ],
    ['no user message', [{ role: 'system', content: 'be good' }], 'Hello from the sandbox.'],
    [
      'a tool result',
      [
        { role: 'user', content: 'get_weather' },
        { role: 'tool', tool_call_id: 'c', content: '14 °C' },
      ],
      'The tool said: 14 °C',
    ],
  ]
  for (const [name, messages, said] of table) {
    t.equal((await asked('chat', { messages, tools: [weather] })).json().choices[0]?.message.content, said, name)
  }
})

t.test('streams: role once, one piece an event, one finish for each choice, usage last, then [DONE]', async t => {
  const heard = await asked('chat', { ...says('Hello there'), stream: true, n: 2, stream_options: { include_usage: true } })
  t.equal(heard.headers['content-type'], 'text/event-stream; charset=utf-8')
  t.equal(heard.chunks.at(-1), 'data: [DONE]\n\n')
  t.ok(heard.chunks.every(chunk => /^data: .*\n\n$/.test(chunk)))
  const { events } = heard
  t.ok(events.every(event => event.id === `chatcmpl-${ID}` && event.object === 'chat.completion.chunk' && event.created === 1_741_569_952))
  t.same(events.at(-1)?.choices, [])
  t.match(events.at(-1)?.usage, { prompt_tokens: 3, completion_tokens: 8, total_tokens: 11 })
  t.ok(events.slice(0, -1).every(event => event.usage === undefined && event.choices.length === 1))
  for (const index of [0, 1]) {
    const own = events.flatMap(event => event.choices).filter(choice => choice.index === index)
    t.same(
      own.map(choice => choice.delta),
      [
        { role: 'assistant', content: '', refusal: null },
        { content: 'You ' },
        { content: 'said: ' },
        { content: 'Hello ' },
        { content: 'there' },
        {},
      ],
    )
    t.same(
      own.map(choice => choice.finish_reason),
      [null, null, null, null, null, 'stop'],
    )
  }
})

t.test('reports usage in a stream only when asked', async t => {
  for (const stream_options of [undefined, null, { include_usage: false }]) {
    t.notOk(
      (await asked('chat', { ...says('Hi'), stream: true, ...(stream_options === undefined ? {} : { stream_options }) })).text.includes(
        'usage',
      ),
    )
  }
})

t.test('gives n choices', async t => {
  const answer = (await asked('chat', { ...says('Hi'), n: 3 })).json()
  t.same(
    answer.choices.map(choice => choice.index),
    [0, 1, 2],
  )
  t.equal(answer.usage.completion_tokens, 9)
})

t.test('cuts at the smaller cap, and counts what it gave', async t => {
  for (const caps of [{ max_tokens: 3 }, { max_completion_tokens: 3 }, { max_tokens: 9, max_completion_tokens: 3 }]) {
    const { choices, usage } = (await asked('chat', { ...says('one two three'), ...caps })).json()
    t.match(choices[0], { message: { content: 'You said: one ' }, finish_reason: 'length' })
    t.equal(usage.completion_tokens, 3)
  }
  const exact = (await asked('chat', { ...says('one'), max_tokens: 3 })).json()
  t.equal(exact.choices[0]?.finish_reason, 'stop', 'a cap that just fits cuts nothing')
})

t.test('ends before the first stop sequence', async t => {
  for (const stop of ['three', ['four', 'three', ''], ['three', 'absent']]) {
    const { choices, usage } = (await asked('chat', { ...says('one two three four'), stop })).json()
    t.match(choices[0], { message: { content: 'You said: one two ' }, finish_reason: 'stop' })
    t.equal(usage.completion_tokens, 4)
  }
})

t.test('calls a tool', async t => {
  const table: [name: string, fields: JsonObject, called: string[]][] = [
    ['that the user names', { ...says('call get_weather, please') }, ['get_weather']],
    ['and every one that the user names', { ...says('get_weather and get_time') }, ['get_weather', 'get_time']],
    ['but one where calls are not parallel', { ...says('get_weather and get_time'), parallel_tool_calls: false }, ['get_weather']],
    ['not for a part of a word', { ...says('forget_weather get_weathers') }, []],
    ['not when nothing is named', { ...says('hi') }, []],
    ['not with none', { ...says('get_weather'), tool_choice: 'none' }, []],
    ['the first with required', { ...says('hi'), tool_choice: 'required' }, ['get_weather']],
    ['the named one with required', { ...says('get_time'), tool_choice: 'required' }, ['get_time']],
    ['that the choice names', { ...says('hi'), tool_choice: { type: 'function', function: { name: 'get_time' } } }, ['get_time']],
    [
      'of those allowed',
      { ...says('get_weather'), tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'required', tools: [time] } } },
      ['get_time'],
    ],
  ]
  for (const [name, fields, names] of table) {
    const { choices } = (await asked('chat', { ...fields, tools: [weather, time] })).json()
    t.same(choices[0]?.message.tool_calls?.map(call => call.function?.name) ?? [], names, name)
    t.equal(choices[0]?.finish_reason, names.length === 0 ? 'stop' : 'tool_calls')
  }
})

t.test('makes arguments that the schema admits', async t => {
  const { choices, usage } = (await asked('chat', { ...says('hi'), tools: [weather], tool_choice: 'required' })).json()
  t.same(choices[0]?.message, {
    role: 'assistant',
    content: null,
    refusal: null,
    tool_calls: [{ id: `call_${ID}_0_0`, type: 'function', function: { name: 'get_weather', arguments: '{"city":"","unit":"C"}' } }],
  })
  t.equal(usage.completion_tokens, 3, 'the name and two pieces of arguments')
})

t.test('gives a custom tool the text of the user', async t => {
  const fields = { ...says('SELECT 1'), tools: [{ type: 'custom', custom: { name: 'sql' } }], tool_choice: 'required' }
  const { choices } = (await asked('chat', fields)).json()
  t.match(choices[0]?.message.tool_calls, [{ type: 'custom', custom: { name: 'sql', input: 'SELECT 1' } }])
  t.same(toolCalls(await asked('chat', { ...fields, stream: true }), 0), [
    { index: 0, id: `call_${ID}_0_0`, type: 'custom', name: 'sql', input: 'SELECT 1' },
  ])
})

t.test('streams calls: id, type and name in the first delta of each only, indices from 0', async t => {
  const heard = await asked('chat', { ...says('get_weather and get_time'), tools: [weather, time], stream: true, n: 2 })
  t.match(heard.events[0]?.choices[0]?.delta, { role: 'assistant', content: null })
  for (const choice of [0, 1]) {
    t.same(toolCalls(heard, choice), [
      { index: 0, id: `call_${ID}_${choice}_0`, type: 'function', name: 'get_weather', input: '{"city":"","unit":"C"}' },
      { index: 1, id: `call_${ID}_${choice}_1`, type: 'function', name: 'get_time', input: '{}' },
    ])
  }
  t.same(
    heard.events.flatMap(event => event.choices.flatMap(choice => choice.finish_reason ?? [])),
    ['tool_calls', 'tool_calls'],
  )
})

t.test('a cap ends a call in its arguments', async t => {
  const { choices, usage } = (await asked('chat', { ...says('get_weather get_time'), tools: [weather, time], max_tokens: 2 })).json()
  t.match(choices[0], { finish_reason: 'length', message: { tool_calls: [{ function: { arguments: '{"city":"","' } }] } })
  t.equal(choices[0]?.message.tool_calls?.length, 1)
  t.equal(usage.completion_tokens, 2)
})

t.test('answers in the format that is asked for', async t => {
  const content = async (response_format: JsonObject) =>
    JSON.parse((await asked('chat', { ...says('hi'), response_format })).json().choices[0]?.message.content ?? '') as unknown
  t.same(await content({ type: 'json_object' }), { reply: 'You said: hi' })
  const schema = {
    type: 'object',
    properties: { ok: { type: 'boolean' }, list: { type: 'array', minItems: 1, items: { type: 'integer', minimum: 3 } } },
    required: ['ok', 'list'],
  }
  t.same(await content({ type: 'json_schema', json_schema: { name: 'x', schema } }), { ok: false, list: [3] })
})

t.test('says what its options say', async t => {
  const said = async (fields: JsonObject, options: object) => (await asked('chat', { ...says('hi'), ...fields }, options)).json()
  t.equal((await said({}, { reply: 'All is well.' })).choices[0]?.message.content, 'All is well.')
  const repeated = await said({}, { reply: 'a b', tokens: 5 })
  t.match(repeated, { choices: [{ message: { content: 'a b a b a' }, finish_reason: 'stop' }], usage: { completion_tokens: 5 } })
  t.match(await said({ max_tokens: 2 }, { tokens: 5 }), { choices: [{ finish_reason: 'length' }], usage: { completion_tokens: 2 } })
  t.match(await said({}, { tokens: 0 }), {
    choices: [{ message: { content: '' }, finish_reason: 'stop' }],
    usage: { completion_tokens: 0 },
  })
})

t.test('answers a stream request with JSON when it ignores streams', async t => {
  const heard = await asked('chat', { ...says('hi'), stream: true }, { ignore_stream: true })
  t.equal(heard.headers['content-type'], 'application/json')
  t.equal(heard.json().object, 'chat.completion')
})

t.test('reports the usage that its options want', async t => {
  t.notOk('usage' in (await asked('chat', says('hi'), { usage: 'omit' })).json())
  t.notOk(
    (await asked('chat', { ...says('hi'), stream: true, stream_options: { include_usage: true } }, { usage: 'omit' })).text.includes(
      'usage',
    ),
  )
  t.same((await asked('chat', says('hi'), { usage: { input: 100, cached: 40, output: -3, reasoning: 2.5 } })).json().usage, {
    prompt_tokens: 100,
    completion_tokens: -3,
    total_tokens: 97,
    prompt_tokens_details: { cached_tokens: 40 },
    completion_tokens_details: { reasoning_tokens: 2.5 },
  })
  t.match((await asked('chat', says('hi'), { usage: { total: 1000 } })).json().usage, {
    prompt_tokens: 2,
    completion_tokens: 3,
    total_tokens: 1000,
  })
})

t.test('counts tools, schemas, names and calls as input', async t => {
  const input = async (fields: JsonObject) => (await asked('chat', { ...says('hi'), ...fields })).json().usage.prompt_tokens
  const plain = await input({})
  t.ok((await input({ tools: [weather], tool_choice: 'none' })) > plain)
  t.ok((await input({ response_format: { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'object' } } } })) > plain)
  t.ok((await input({ messages: [{ role: 'user', name: 'ali', content: 'hi' }] })) > plain)
  const calls = [{ id: 'c', type: 'function', function: { name: 'get_weather', arguments: '{}' } }]
  t.ok(
    (await input({
      messages: [
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: null, tool_calls: calls },
      ],
    })) >
      plain + 1,
  )
})

t.test('property: a stream says what the answer says, and the same request the same', async () => {
  const fields = fc.record(
    {
      n: fc.integer({ min: 1, max: 3 }),
      max_tokens: fc.integer({ min: 1, max: 12 }),
      stop: fc.string({ maxLength: 2 }),
      tools: fc.constant([weather, time]),
      response_format: fc.constant({ type: 'json_object' }),
    },
    { requiredKeys: [] },
  )
  const texts = fc
    .array(fc.oneof(fc.string({ unit: 'grapheme' }), fc.constantFrom('get_weather', ' get_time ', '\n')))
    .map(parts => parts.join(''))
  await fc.assert(
    fc.asyncProperty(texts, fields, async (text, extra) => {
      const body: JsonObject = { ...says(text), ...extra }
      const whole = (await asked('chat', body)).json()
      const stream = await asked('chat', { ...body, stream: true, stream_options: { include_usage: true } })
      const again = await asked('chat', { ...body, stream: true, stream_options: { include_usage: true } })
      equal(stream.text, again.text)
      deepEqual(stream.events.at(-1)?.usage, whole.usage)
      const bytes = Buffer.byteLength(JSON.stringify(body))
      ok(whole.usage.prompt_tokens <= bytes / 4 + 3, 'an estimate by bytes is above it')
      let tokens = 0
      for (const { index, message, finish_reason } of whole.choices) {
        const own = stream.events.flatMap(event => event.choices).filter(choice => choice.index === index)
        deepEqual(own.map(choice => choice.delta.role).filter(Boolean), ['assistant'])
        equal(own.map(choice => choice.delta.content ?? '').join(''), message.content ?? '')
        deepEqual(own.map(choice => choice.finish_reason).filter(Boolean), [finish_reason])
        deepEqual(
          toolCalls(stream, index).map(call => call.input),
          (message.tool_calls ?? []).map(call => call.function?.arguments),
        )
        tokens += own.length - 2
      }
      equal(whole.usage.completion_tokens, tokens, 'a token is an event')
    }),
    { numRuns: 150 },
  )
})

/** A choice's calls put together, as a client does it: fields that come twice are joined. */
function toolCalls(heard: Heard, index: number) {
  const calls: { index: number; id: string; type: string; name: string; input: string }[] = []
  const deltas = heard.events.flatMap((event: Chunk) => event.choices).filter(choice => choice.index === index)
  for (const delta of deltas.flatMap(choice => choice.delta.tool_calls ?? []) as Call[]) {
    const at = delta.index ?? -1
    const call = calls[at] ?? { index: at, id: '', type: '', name: '', input: '' }
    calls[at] = call
    call.id += delta.id ?? ''
    call.type += delta.type ?? ''
    call.name += delta.function?.name ?? delta.custom?.name ?? ''
    call.input += delta.function?.arguments ?? delta.custom?.input ?? ''
  }
  return calls
}
