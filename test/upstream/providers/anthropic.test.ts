import fc from 'fast-check'
import t from 'tap'
import type { JsonObject } from '../../../src/json.js'
import anthropic from '../../../src/upstream/providers/anthropic.js'
import type { SseEvent } from '../../../src/upstream/providers/provider.js'
import { API_KEY, callOf, settingsOf } from '../../support/calls.js'
import { brokenRules } from '../../support/stream-rules.js'
import { chatOf, checkFixtures, translated } from '../../support/wire-fixtures.js'

const MODEL = 'anthropic/claude-sonnet-5'
const chat = chatOf(anthropic)

checkFixtures(anthropic, MODEL)

const requestOf = (body: JsonObject, overrides: Parameters<typeof callOf>[2] = {}) =>
  chat.request(callOf(MODEL, { max_tokens: 9, messages: [{ role: 'user', content: 'hi' }], ...body }, overrides))

t.test('asks /messages, with the key and the pinned version', async t => {
  t.equal(chat.path(callOf(MODEL, {})), '/messages')
  t.strictSame(anthropic.authorize(API_KEY, settingsOf('anthropic')), { 'x-api-key': API_KEY, 'anthropic-version': '2023-06-01' })
  t.strictSame(anthropic.authorize(null, settingsOf('anthropic', { options: { version: '2026-10-21' } })), {
    'anthropic-version': '2026-10-21',
  })
})

t.test('sends no sampling parameters to a version that refuses them', async t => {
  const sampling = { temperature: 0.5, top_p: 0.9, top_k: 4 }
  t.match(requestOf(sampling), sampling)
  const newer = requestOf(sampling, { provider: { options: { version: '2026-10-21' } } })
  t.strictSame(Object.keys(newer), ['model', 'max_tokens', 'messages'])
})

t.test('always sends a cap', async t => {
  t.equal(chat.request(callOf(MODEL, { messages: [] })).max_tokens, 512)
})

const TOOL = { type: 'function', function: { name: 'f' } }
for (const [name, body, choice] of [
  ['none', { tool_choice: 'none', parallel_tool_calls: false }, { type: 'none' }],
  ['required', { tool_choice: 'required' }, { type: 'any' }],
  ['one at a time', { parallel_tool_calls: false }, { type: 'auto', disable_parallel_tool_use: true }],
  ['several at a time', { parallel_tool_calls: true }, undefined],
  ['without tools', { tool_choice: 'auto', tools: [] }, undefined],
] as const) {
  t.test(`tool_choice: ${name}`, async t => {
    t.strictSame(requestOf({ tools: [TOOL], ...body }).tool_choice, choice)
  })
}

for (const [name, body, param] of [
  [
    'audio',
    { messages: [{ role: 'user', content: [{ type: 'input_audio', input_audio: { data: 'AA', format: 'wav' } }] }] },
    'messages[0].content[0]',
  ],
  [
    'a file by id',
    { messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: 'file-1' } }] }] },
    'messages[0].content[0].file.file_id',
  ],
  [
    'a file of an unknown type',
    { messages: [{ role: 'user', content: [{ type: 'file', file: { file_data: 'data:application/zip;base64,AA' } }] }] },
    'messages[0].content[0]',
  ],
  [
    'an image that is no URL',
    { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'file:///etc/passwd' } }] }] },
    'messages[0].content[0].image_url.url',
  ],
  ['an unknown part', { messages: [{ role: 'user', content: [{ type: 'video' }] }] }, 'messages[0].content[0].type'],
  [
    'an image of an assistant',
    { messages: [{ role: 'assistant', content: [{ type: 'image_url', image_url: { url: 'https://a.b/c' } }] }] },
    'messages[0].content[0]',
  ],
  ['a custom tool', { tools: [{ type: 'custom', custom: { name: 'sql' } }] }, 'tools[0]'],
  ['the choice of a custom tool', { tools: [TOOL], tool_choice: { type: 'custom', custom: { name: 'sql' } } }, 'tool_choice'],
  ['a result of no call', { messages: [{ role: 'tool', content: 'x' }] }, 'messages[0].tool_call_id'],
] as const) {
  t.test(`refuses ${name}, and names the field`, async t => {
    t.throws(() => requestOf(body), { code: 'invalid_request', status: 400, param })
  })
}

const error = (type: string, message: string, more: JsonObject = {}) => ({
  type: 'error',
  error: { type, message, ...more },
  request_id: 'req_1',
})
for (const [name, status, body, failure] of [
  ['says the status that a type stands for', 200, error('overloaded_error', 'Overloaded'), { status: 529, message: 'Overloaded' }],
  ['keeps quiet about the status where it is the answer’s', 429, error('rate_limit_error', 'Slow down'), { message: 'Slow down' }],
  [
    'knows a prompt that is too long',
    400,
    error('invalid_request_error', 'prompt is too long: 210000 tokens > 200000 maximum'),
    { code: 'context_length_exceeded', message: 'prompt is too long: 210000 tokens > 200000 maximum' },
  ],
  [
    'passes on an error code',
    400,
    error('invalid_request_error', 'Twice', { details: { error_code: 'tool_name_conflict' } }),
    { code: 'tool_name_conflict', message: 'Twice' },
  ],
  [
    'blames the operator for an empty purse',
    400,
    error('invalid_request_error', 'Your credit balance is too low to access the API.'),
    { status: 402, message: 'Your credit balance is too low to access the API.' },
  ],
  ['makes nothing of a page', 502, '<html>', {}],
  ['makes nothing of an unknown type', 500, { error: { type: 'new_error', message: 7 } }, {}],
] as const) {
  t.test(`a failure ${name}`, async t => t.strictSame(anthropic.failure?.(status, body), failure))
}

const event = (fields: JsonObject): SseEvent => ({ event: String(fields.type), data: JSON.stringify(fields) })

t.test('text, thoughts and arguments come out as they went in, and usage is never negative', async () => {
  const block = fc.oneof(
    fc.record({ kind: fc.constant('text'), texts: fc.array(fc.string({ unit: 'grapheme' })) }),
    fc.record({ kind: fc.constant('thinking'), texts: fc.array(fc.string({ unit: 'grapheme' })) }),
    fc.record({ kind: fc.constant('tool_use'), texts: fc.array(fc.string({ unit: 'grapheme' })) }),
  )
  const count = fc.oneof(fc.nat(), fc.constant(null), fc.integer(), fc.double(), fc.constant('7'))
  const usage = fc.dictionary(
    fc.constantFrom('input_tokens', 'output_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens'),
    count,
  )
  fc.assert(
    fc.property(fc.array(block, { maxLength: 6 }), usage, usage, (blocks, first, last) => {
      const delta = { text: 'text_delta', thinking: 'thinking_delta', tool_use: 'input_json_delta' } as const
      const field = { text: 'text', thinking: 'thinking', tool_use: 'partial_json' } as const
      const events = [
        event({ type: 'message_start', message: { id: 'msg_1', usage: first as JsonObject } }),
        ...blocks.flatMap(({ kind, texts }, index) => [
          event({ type: 'content_block_start', index, content_block: { type: kind, id: `toolu_${index}`, name: 'f', input: {} } }),
          ...texts.map(text =>
            event({ type: 'content_block_delta', index, delta: { type: delta[kind as 'text'], [field[kind as 'text']]: text } }),
          ),
          event({ type: 'content_block_stop', index }),
        ]),
        event({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: last as JsonObject }),
        event({ type: 'message_stop' }),
      ]
      const told = translated(chat.events(callOf(MODEL, {})), events)
      const said = (kind: string) => blocks.flatMap(one => (one.kind === kind ? one.texts : [])).join('')
      const deltas = told.chunks.flatMap(chunk =>
        (
          chunk.choices as {
            delta: { [name: string]: string | undefined } & { tool_calls?: { index: number; function: { arguments: string } }[] }
          }[]
        ).map(choice => choice.delta),
      )
      const args: string[] = []
      for (const call of deltas.flatMap(({ tool_calls }) => tool_calls ?? []))
        args[call.index] = (args[call.index] ?? '') + call.function.arguments
      return (
        told.failure === null &&
        brokenRules(told.chunks).length === 0 &&
        deltas.map(({ content }) => content ?? '').join('') === said('text') &&
        deltas.map(({ reasoning_content }) => reasoning_content ?? '').join('') === said('thinking') &&
        JSON.stringify(args) === JSON.stringify(blocks.filter(one => one.kind === 'tool_use').map(one => one.texts.join('') || '{}'))
      )
    }),
  )
})
