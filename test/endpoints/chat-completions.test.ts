import t from 'tap'
import chat from '../../src/endpoints/chat-completions.js'
import type { Json, JsonObject } from '../../src/json.js'
import { familyOf, textTokens } from '../../src/metering/estimate.js'
import { type Row, refusals } from '../support/refusals.js'
import { sampleModel } from '../support/sample-call.js'

const user = { role: 'user', content: 'Hello' }
const ask = (more: JsonObject): JsonObject => ({ model: 'm', messages: [user], ...more })
const message = (more: JsonObject): JsonObject => ({ model: 'm', messages: [user, more] })
const part = (more: Json): JsonObject => message({ role: 'user', content: [more] })
const roles = 'system, developer, user, assistant, tool, function'

t.test('what is right passes', async t => {
  const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } }
  const rows: readonly JsonObject[] = [
    ask({}),
    message({ role: 'developer', content: 'Be brief.' }),
    message({ role: 'assistant', content: null, tool_calls: [call] }),
    message({ role: 'assistant', tool_calls: [call, { id: 'c', type: 'custom', custom: { name: 'sql', input: 'SELECT 1' } }] }),
    message({ role: 'assistant', content: null, function_call: { name: 'f', arguments: '{}' } }),
    message({ role: 'assistant', content: null, refusal: 'No.' }),
    message({ role: 'tool', tool_call_id: 'call_1', content: [{ type: 'text', text: '14 °C' }] }),
    message({ role: 'function', name: 'f', content: null }),
    message({ role: 'user', content: '', name: null, unknown: 7 }),
    part({ type: 'image_url', image_url: { url: 'https://a.example/b.png', detail: 'low' } }),
    part({ type: 'image_url', image_url: 'data:image/png;base64,AAAA' }),
    part({ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }),
    part({ type: 'file', file: { file_id: 'file-1' } }),
    part({ type: 'something_new', thing: 1 }),
    ask({
      max_tokens: null,
      n: null,
      stream: null,
      stream_options: null,
      temperature: null,
      tools: null,
      stop: null,
      response_format: null,
    }),
    ask({
      max_tokens: 1,
      max_completion_tokens: 9,
      n: 128,
      stream: true,
      stream_options: { include_usage: true, include_obfuscation: null },
    }),
    ask({ temperature: 0, top_p: 1, presence_penalty: -2, frequency_penalty: 0.5, seed: -7, logprobs: true, top_logprobs: 20, user: 'u' }),
    ask({ stop: 'END' }),
    ask({ stop: ['a', 'b', 'c', 'd', 'e'] }),
    ask({ tools: [], tool_choice: 'auto', parallel_tool_calls: false }),
    ask({
      tools: [{ type: 'function', function: { name: 'f' } }, { type: 'web_search' }],
      tool_choice: { type: 'function', function: { name: 'f' } },
    }),
    ask({ functions: [{ name: 'f', description: null, parameters: {} }], function_call: { name: 'f' } }),
    ask({ response_format: { type: 'json_object' } }),
    ask({ response_format: { type: 'json_schema', json_schema: { name: 'x', schema: {} } } }),
    ask({
      logit_bias: { '50256': -100 },
      metadata: {},
      modalities: ['text', 'audio'],
      audio: {},
      prediction: {},
      web_search_options: {},
      unknown: [[[]]],
    }),
  ]
  t.strictSame(
    refusals(
      chat,
      rows.map(body => [body, null]),
    ),
    rows.map(body => [body, null]),
  )
})

t.test('what is wrong with a request is named by field', async t => {
  const rows: Row[] = [
    [{ model: 'm' }, 'messages', 'messages is required.'],
    [{ model: 'm', messages: null }, 'messages', 'messages is required.'],
    [{ model: 'm', messages: 'Hello' }, 'messages', 'messages must be a non-empty array, got string.'],
    [{ model: 'm', messages: [] }, 'messages', 'messages must not be empty.'],
    [{ model: 'm', messages: ['Hello'] }, 'messages[0]', 'messages[0] must be an object, got string.'],
    [message({ content: 'a' }), 'messages[1].role', 'messages[1].role is required.'],
    [message({ role: 7, content: 'a' }), 'messages[1].role', `messages[1].role must be one of ${roles}, got number.`],
    [message({ role: 'robot', content: 'a' }), 'messages[1].role', `messages[1].role must be one of ${roles}, got "robot".`],
    [message({ role: 'user' }), 'messages[1].content', 'messages[1].content is required.'],
    [message({ role: 'system', content: null }), 'messages[1].content', 'messages[1].content is required.'],
    [
      message({ role: 'user', content: 7 }),
      'messages[1].content',
      'messages[1].content must be a string, an array of parts or null, got number.',
    ],
    [
      message({ role: 'assistant', content: {} }),
      'messages[1].content',
      'messages[1].content must be a string, an array of parts or null, got object.',
    ],
    [message({ role: 'user', content: 'a', name: 5 }), 'messages[1].name', 'messages[1].name must be a string, got number.'],
    [part('a'), 'messages[1].content[0]', 'messages[1].content[0] must be an object, got string.'],
    [part({ text: 'a' }), 'messages[1].content[0].type', 'messages[1].content[0].type is required.'],
    [part({ type: 'text' }), 'messages[1].content[0].text', 'messages[1].content[0].text is required.'],
    [part({ type: 'text', text: 1 }), 'messages[1].content[0].text', 'messages[1].content[0].text must be a string, got number.'],
    [
      part({ type: 'image_url', image_url: {} }),
      'messages[1].content[0].image_url.url',
      'messages[1].content[0].image_url.url is required.',
    ],
    [part({ type: 'input_audio' }), 'messages[1].content[0].input_audio', 'messages[1].content[0].input_audio is required.'],
    [
      part({ type: 'file', file: { file_data: 1 } }),
      'messages[1].content[0].file.file_data',
      'messages[1].content[0].file.file_data must be a string, got number.',
    ],
    [message({ role: 'assistant', tool_calls: {} }), 'messages[1].tool_calls', 'messages[1].tool_calls must be an array, got object.'],
    [
      message({ role: 'assistant', tool_calls: [{ id: 'a', function: { name: 'f', arguments: {} } }] }),
      'messages[1].tool_calls[0].function.arguments',
      'messages[1].tool_calls[0].function.arguments must be a string, got object.',
    ],
    [ask({ max_tokens: 0 }), 'max_tokens', 'max_tokens must be an integer of at least 1, got 0.'],
    [ask({ max_tokens: -1 }), 'max_tokens', 'max_tokens must be an integer of at least 1, got -1.'],
    [ask({ max_completion_tokens: 1.5 }), 'max_completion_tokens', 'max_completion_tokens must be an integer of at least 1, got 1.5.'],
    [ask({ max_tokens: Number.POSITIVE_INFINITY }), 'max_tokens', 'max_tokens must be an integer of at least 1, got Infinity.'],
    [ask({ n: 129 }), 'n', 'n must be an integer from 1 to 128, got 129.'],
    [ask({ n: '2' }), 'n', 'n must be an integer from 1 to 128, got string.'],
    [ask({ stream: 'true' }), 'stream', 'stream must be true or false, got string.'],
    [ask({ stream_options: true }), 'stream_options', 'stream_options must be an object, got boolean.'],
    [
      ask({ stream_options: { include_usage: 1 } }),
      'stream_options.include_usage',
      'stream_options.include_usage must be true or false, got number.',
    ],
    [ask({ temperature: '1' }), 'temperature', 'temperature must be a finite number, got string.'],
    [ask({ top_p: Number.POSITIVE_INFINITY }), 'top_p', 'top_p must be a finite number, got Infinity.'],
    [ask({ stop: 5 }), 'stop', 'stop must be a string or an array of strings, got number.'],
    [ask({ stop: ['a', 5] }), 'stop[1]', 'stop[1] must be a string, got number.'],
    [ask({ seed: 1.5 }), 'seed', 'seed must be an integer, got 1.5.'],
    [ask({ seed: 1e20 }), 'seed', 'seed must be an integer of 64 bits, got 100000000000000000000.'],
    [ask({ tools: {} }), 'tools', 'tools must be an array of tools, got object.'],
    [ask({ tools: [5] }), 'tools[0]', 'tools[0] must be an object, got number.'],
    [ask({ tools: [{ function: { name: 'f' } }] }), 'tools[0].type', 'tools[0].type is required.'],
    [ask({ tools: [{ type: 'function' }] }), 'tools[0].function', 'tools[0].function is required.'],
    [ask({ tools: [{ type: 'function', function: {} }] }), 'tools[0].function.name', 'tools[0].function.name is required.'],
    [
      ask({ tools: [{ type: 'function', function: { name: 'f', parameters: [] } }] }),
      'tools[0].function.parameters',
      'tools[0].function.parameters must be an object, got array.',
    ],
    [ask({ tool_choice: 1 }), 'tool_choice', 'tool_choice must be a string or an object, got number.'],
    [ask({ response_format: 'json' }), 'response_format', 'response_format must be an object, got string.'],
    [ask({ response_format: {} }), 'response_format.type', 'response_format.type is required.'],
    [ask({ response_format: { type: 'json_schema' } }), 'response_format.json_schema', 'response_format.json_schema is required.'],
    [ask({ logprobs: 1 }), 'logprobs', 'logprobs must be true or false, got number.'],
    [ask({ top_logprobs: 21 }), 'top_logprobs', 'top_logprobs must be an integer from 0 to 20, got 21.'],
    [ask({ modalities: 'text' }), 'modalities', 'modalities must be an array of strings, got string.'],
    [ask({ user: 5 }), 'user', 'user must be a string, got number.'],
    [ask({ metadata: [] }), 'metadata', 'metadata must be an object, got array.'],
  ]
  t.strictSame(refusals(chat, rows), rows)
})

t.test('each optional parameter is checked', async t => {
  for (const name of chat.parameters)
    t.throws(() => chat.check(ask({ [name]: Symbol(name) as unknown as Json })), { code: 'invalid_request', param: name }, name)
})

t.test('the cap is the smaller of both spellings, else the default, never above the most', async t => {
  const model = sampleModel({ default_max_tokens: 512, max_output_tokens: 4096 })
  t.equal(chat.cap(ask({}), model), 512)
  t.equal(chat.cap(ask({ max_tokens: null }), model), 512)
  t.equal(chat.cap(ask({ max_tokens: 10 }), model), 10)
  t.equal(chat.cap(ask({ max_tokens: 30, max_completion_tokens: 20 }), model), 20)
  t.equal(chat.cap(ask({ max_tokens: 20, max_completion_tokens: 30 }), model), 20)
  t.equal(chat.cap(ask({ max_tokens: 9_000_000 }), model), 4096)
  t.equal(chat.cap(ask({ max_tokens: 9_000_000 }), sampleModel({ max_output_tokens: null })), 9_000_000)
})

t.test('the estimate covers the input and every choice', async t => {
  const model = sampleModel({ upstream: 'gpt-4o', default_max_tokens: 100 })
  t.strictSame(chat.estimate(ask({}), model), { input: 8, fixed: 0, output: 100 })
  t.strictSame(chat.estimate(ask({ n: 5, max_tokens: 7 }), model), { input: 8, fixed: 0, output: 35 })
  const prediction = { type: 'content', content: 'the lamp of the shop' }
  const { output } = chat.estimate(ask({ n: 2, max_tokens: 7, prediction }), model)
  t.equal(output, 2 * (7 + textTokens('the lamp of the shop', familyOf(model))), 'what is predicted and not said is billed, too')
})

t.test('an answer has choices, each with its message', async t => {
  t.ok(chat.answers({ choices: [{ message: {} }] }))
  for (const choices of [[], {}, null, [null], [{}], [{ message: null }], [{ message: 'Hi' }], [{ text: 'Hi' }], [{ message: {} }, {}]])
    t.notOk(chat.answers({ choices }), JSON.stringify(choices))
  for (const answer of [{}, { error: {} }]) t.notOk(chat.answers(answer))
})

t.test('asks for a stream only with true', async t => {
  t.strictSame([ask({ stream: true }), ask({ stream: false }), ask({}), ask({ stream: null })].map(chat.streams), [
    true,
    false,
    false,
    false,
  ])
})

t.test('all that was generated is output, in answers and in chunks', async t => {
  const call = { index: 0, id: 'call_1', type: 'function', function: { name: 'get', arguments: '{"a":1}' } }
  const rows: readonly [said: JsonObject, output: string][] = [
    [{ role: 'assistant', content: 'Hi' }, 'Hi'],
    [{ content: null, refusal: 'No.' }, 'No.'],
    [{ reasoning_content: 'Hm. ', content: 'Yes' }, 'Hm. Yes'],
    [{ reasoning: 'Hm. ', reasoning_content: 'Hm. ' }, 'Hm. '],
    [{ reasoning: 'Hm. ' }, 'Hm. '],
    [{ tool_calls: [call, { custom: { name: 'sql', input: 'SELECT' } }] }, 'get{"a":1}sqlSELECT'],
    [{ tool_calls: [{ index: 0, function: { arguments: '{"b' } }] }, '{"b'],
    [{ function_call: { name: 'f', arguments: '{}' } }, 'f{}'],
    [
      {
        content: [
          { type: 'thinking', thinking: [{ type: 'text', text: 'Hm. ' }] },
          { type: 'text', text: 'Yes' },
        ],
      },
      'Hm. Yes',
    ],
    [{ audio: { id: 'a', transcript: 'Hello' } }, 'Hello'],
    [{}, ''],
  ]
  for (const [said, output] of rows) {
    t.equal(chat.output({ choices: [{ index: 0, message: said }] }), output)
    t.equal(chat.output({ choices: [{ index: 0, delta: said }] }), output)
  }
  const whole = { role: 'assistant', content: 'Hi' }
  t.equal(chat.output({ choices: [{ delta: {}, message: whole, finish_reason: 'stop' }] }), 'Hi', 'a whole message in a chunk')
  t.equal(chat.output({ choices: [{ delta: { content: 'Hi' }, message: whole }] }), 'Hi', 'not twice')
  t.equal(chat.output({ choices: [{ delta: {}, text: 'Hi' }] }), 'Hi', 'the chunk of a legacy completion')
  t.equal(chat.output({ choices: [{ delta: { content: 'a' } }, { delta: { content: 'b' } }, null] }), 'ab')
  for (const none of [{}, { choices: [] }, { choices: null }, { choices: [], usage: {} }, { choices: [7, { delta: null }] }])
    t.equal(chat.output(none), '')
})
