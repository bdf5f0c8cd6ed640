import t from 'tap'
import type { Json } from '../../../src/json.js'
import { conversationOf } from '../../../src/upstream/chat/conversation.js'

const read = (...messages: Json[]) => conversationOf({ messages })

t.test('leaves out empty text, and gathers the system messages wherever they stand', async t => {
  t.strictSame(
    read(
      { role: 'user', content: '' },
      { role: 'developer', content: 'B' },
      { role: 'system', content: [{ type: 'text', text: 'C' }, ''] },
    ),
    {
      system: ['B', 'C'],
      turns: [{ role: 'user', parts: [] }],
    },
  )
})

t.test('reads an assistant’s words, refusals and calls', async t => {
  const calls = [
    { id: 'c1', type: 'function', function: { name: 'f', arguments: '{"a":1}' }, extra_content: { google: { thought_signature: 's' } } },
    { id: 'c2', type: 'function', function: { name: 'g', arguments: 'not json' } },
    { id: 'c3', type: 'custom', custom: { name: 'sql', input: 'SELECT 1' } },
  ]
  t.strictSame(read({ role: 'assistant', content: null, refusal: 'No.', tool_calls: calls, reasoning_content: 'x' }).turns, [
    {
      role: 'assistant',
      text: ['No.'],
      calls: [
        { id: 'c1', name: 'f', args: { a: 1 }, signature: 's' },
        { id: 'c2', name: 'g', args: {}, signature: null },
        { id: 'c3', name: 'sql', args: { input: 'SELECT 1' }, signature: null },
      ],
    },
  ])
})

const url = (value: string) => ({ role: 'user', content: [{ type: 'image_url', image_url: { url: value } }] })
for (const [value, source] of [
  ['data:image/png;base64,AAAA', { from: 'data', mediaType: 'image/png', base64: 'AAAA' }],
  ['DATA:Image/PNG;charset=x;BASE64,AAAA', { from: 'data', mediaType: 'image/png', base64: 'AAAA' }],
  ['data:,a%20b', { from: 'data', mediaType: 'text/plain', base64: 'YSBi' }],
  ['https://example.com/a', { from: 'url', url: 'https://example.com/a' }],
] as const) {
  t.test(`reads the source ${value}`, async t => {
    t.strictSame(read(url(value)).turns, [
      { role: 'user', parts: [{ kind: 'image', source, filename: null, path: 'messages[0].content[0]' }] },
    ])
  })
}

for (const value of ['data:image/png', 'data:,%zz', 'ftp://a', '']) {
  t.test(`refuses the source «${value}»`, async t => {
    t.throws(() => read(url(value)), { code: 'invalid_request', param: 'messages[0].content[0].image_url.url' })
  })
}

for (const [name, message, param] of [
  ['a message that is none', 'x', 'messages[0]'],
  ['a part that is none', { role: 'user', content: [1] }, 'messages[0].content[0]'],
  ['text that is none', { role: 'user', content: [{ type: 'text', text: 1 }] }, 'messages[0].content[0].text'],
  [
    'audio without a format',
    { role: 'user', content: [{ type: 'input_audio', input_audio: { data: 'A' } }] },
    'messages[0].content[0].input_audio',
  ],
  [
    'arguments nested without end',
    { role: 'assistant', tool_calls: [{ id: 'c', function: { name: 'f', arguments: `{"a":${'['.repeat(9999)}${']'.repeat(9999)}}` } }] },
    'messages[0].tool_calls[0].function.arguments',
  ],
  ['a function that was not called', { role: 'function', name: 'f', content: 'x' }, 'messages[0].tool_call_id'],
] as const) {
  t.test(`refuses ${name}`, async t => {
    t.throws(() => read(message as Json), { code: 'invalid_request', param })
  })
}
