import fc from 'fast-check'
import { ENDPOINTS } from '../../src/endpoints/endpoints.js'

/** A request as a hostile client may write it. */
export interface Case {
  readonly path: string
  readonly body: Buffer
}

export const MODELS = ['up/m', 'claude/m', 'gemini/m', 'cohere/m', 'mistral/m', 'jina/m', 'voyage/m', 'tei/m'] as const

/** Whatever a parser of JSON may stumble over. Each stands alone, and as the value of a field. */
const TEXTS: readonly string[] = [
  ...[
    '',
    ' ',
    '[',
    ']',
    '{',
    '}',
    '[]',
    '{}',
    '[,]',
    '{,}',
    '[1,]',
    '[1 2]',
    '{"a":1,}',
    '{"a"}',
    '{"a":}',
    '{a:1}',
    "{'a':1}",
    '{"a":1}x',
  ],
  ...[
    '{"a":1}{"b":2}',
    '"',
    '"\\"',
    '"\\x"',
    '"\\u12"',
    '"\\ud800"',
    '"\\udc00\\ud800"',
    '"\\u0000"',
    '"\0"',
    '"\n"',
    '"\t"',
    '"\x7f"',
    '"\u2028"',
  ],
  ...[
    '-',
    '-0',
    '+1',
    '01',
    '1.',
    '.1',
    '1e',
    '1e+',
    '1e400',
    '-1e400',
    '1e-400',
    '0x10',
    '1_000',
    'NaN',
    'Infinity',
    '-Infinity',
    'undefined',
  ],
  ...[
    '9007199254740993',
    '18446744073709551616',
    '1'.repeat(400),
    '0.1e1',
    '1e3',
    '1.0',
    '-1',
    '0',
    '2147483648',
    '1e308',
    '5e-324',
    '100000000000',
  ],
  ...[
    'true',
    'false',
    'null',
    'TRUE',
    'nul',
    'truefalse',
    '\ufeff{}',
    '{}\ufeff',
    '//\n{}',
    '/**/{}',
    '#\n{}',
    '\v{}',
    '\u00a0{}',
    '{}\0',
    '\u2028{}',
  ],
  ...[
    '{"__proto__":null}',
    '{"constructor":{"prototype":{"a":1}}}',
    '{"toJSON":1}',
    '{"then":1}',
    '{"length":-1}',
    '{"a":1,"a":2}',
    '["",{}]',
  ],
  ...[
    '[[[[]]]]',
    `${'['.repeat(127)}${']'.repeat(127)}`,
    `${'['.repeat(100_000)}`,
    `${'{"a":'.repeat(126)}1${'}'.repeat(126)}`,
    '{"a":'.repeat(5_000),
  ],
]

/** Names that mean something to JavaScript, or to somebody behind us. */
const NAMES = [
  '__proto__',
  'constructor',
  'prototype',
  'hasOwnProperty',
  'toString',
  'valueOf',
  'toJSON',
  'then',
  'length',
  '',
  '\0',
  '\ud800',
  'base_url',
]
/** Fields that stand in messages, tools and parts of content. */
const INNER = [
  ...[
    'role',
    'content',
    'name',
    'tool_calls',
    'tool_call_id',
    'function_call',
    'refusal',
    'audio',
    'id',
    'type',
    'function',
    'arguments',
    'parameters',
  ],
  ...[
    'text',
    'image_url',
    'url',
    'detail',
    'input_audio',
    'data',
    'format',
    'file',
    'file_data',
    'schema',
    'json_schema',
    'strict',
    'properties',
    'items',
  ],
  ...[
    '$ref',
    '$defs',
    'enum',
    'anyOf',
    'required',
    'include_usage',
    'description',
    'reasoning_content',
    'cache_control',
    'effort',
    'allowed_tools',
  ],
]
const WORDS = [
  ...[
    'user',
    'assistant',
    'system',
    'developer',
    'tool',
    'function',
    'text',
    'image_url',
    'input_audio',
    'file',
    'refusal',
    'auto',
    'none',
    'required',
  ],
  ...[
    'json_schema',
    'json_object',
    'object',
    'string',
    'high',
    'low',
    'wav',
    'float',
    'base64',
    '#/$defs/a',
    '{}',
    '{"a":1}',
    '{',
    'call_1',
    '..',
    '/../..',
  ],
  ...[
    'data:image/png;base64,iVBORw0KGgo=',
    'data:image/png;base64,AAAA',
    'data:;base64,',
    'data:,',
    'https://a/b.png',
    'http://169.254.169.254/',
    'a\r\nb: c',
  ],
]

const leaf = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...WORDS) },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 20 }) },
  fc.double(),
  fc.constantFrom<unknown>(0, 1, -1, 2, 100, 1.5, -0, 1e21, 2 ** 53, true, false, null, '', '\ud800', 'é\0', [], {}),
)
const { inner } = fc.letrec<{ inner: unknown }>(tie => ({
  inner: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    leaf,
    fc.array(tie('inner'), { maxLength: 4 }),
    fc.array(fc.tuple(fc.constantFrom(...INNER, ...INNER, ...NAMES), tie('inner')), { maxLength: 6 }).map(own),
  ),
}))

const message = fc
  .record({ role: fc.constantFrom('user', 'assistant', 'system', 'tool', 'developer', 'function'), content: fc.oneof(leaf, inner) })
  .chain(base => fc.array(fc.tuple(fc.constantFrom(...INNER), inner), { maxLength: 3 }).map(more => ({ ...base, ...own(more) })))
const messages = fc.array(message, { minLength: 1, maxLength: 5 })
const tools = fc.array(fc.record({ type: fc.constant('function'), function: fc.record({ name: fc.constant('f'), parameters: inner }) }), {
  maxLength: 3,
})

/** A body that is right, for each surface. */
const RIGHT: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  chat: { messages: [{ role: 'user', content: 'Hello' }] },
  completions: { prompt: 'Hello' },
  embeddings: { input: ['a', 'b'] },
  rerank: { query: 'a', documents: ['a', { text: 'b' }] },
  moderations: { input: 'a' },
}

interface Field {
  readonly name: string
  readonly text: string
}

const surface = fc.constantFrom(
  ...ENDPOINTS,
  ...ENDPOINTS.filter(one => one.surface === 'chat'),
  ...ENDPOINTS.filter(one => one.surface === 'chat'),
)

/** A right body of which some fields are wrong, doubled, spelled in another case, or not known. */
const wrong = surface.chain(endpoint => {
  const names = [...endpoint.fields, ...endpoint.parameters]
  const name = fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom('model', ...names) },
    fc.constantFrom(...NAMES, ...names.map(one => one.toUpperCase())),
  )
  const chat = endpoint.surface === 'chat'
  const field = fc.oneof(
    { weight: 1, arbitrary: fc.record({ name, text: fc.constantFrom(...TEXTS) }) },
    { weight: 3, arbitrary: fc.record({ name, text: inner.map(text) }) },
    { weight: chat ? 5 : 0, arbitrary: fc.record({ name: fc.constant('messages'), text: messages.map(text) }) },
    { weight: chat ? 2 : 0, arbitrary: fc.record({ name: fc.constant('tools'), text: tools.map(text) }) },
    {
      weight: chat ? 2 : 0,
      arbitrary: fc.record({ name: fc.constantFrom('n', 'max_tokens', 'max_completion_tokens', 'best_of'), text: caps }),
    },
  )
  return fc.tuple(fc.constantFrom(...MODELS), fc.array(field, { maxLength: 3 })).map(([model, fields]) => {
    const base = Object.entries({ model, ...RIGHT[endpoint.surface] }).map(([name, value]) => ({ name, text: text(value) }))
    return { path: endpoint.paths[0] as string, body: Buffer.from(written([...base, ...fields])) }
  })
})
const caps = fc.oneof(fc.integer({ min: -2, max: 100_000 }), fc.constantFrom(0, 1, 2 ** 31, 2 ** 53 - 1, 2 ** 53, 1e300, 1.5)).map(text)

/** Bytes that are no text, or no JSON. */
const broken = fc.tuple(wrong, fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 5 })).map(([{ path, body }, flips]) => {
  const bytes = Buffer.from(body)
  for (const [at, byte] of flips) if (bytes.length > 0) bytes[at % bytes.length] = byte
  return { path, body: bytes }
})
const alone = fc
  .tuple(surface, fc.constantFrom(...TEXTS))
  .map(([endpoint, body]) => ({ path: endpoint.paths[0] as string, body: Buffer.from(body) }))

/** What is large in one way: its fields, its depth, its text, its messages. */
const large = fc
  .tuple(surface, fc.constantFrom(...MODELS), fc.nat(5), fc.integer({ min: 1_000, max: 40_000 }))
  .map(([endpoint, model, kind, size]) => {
    const base = Object.entries({ model, ...RIGHT[endpoint.surface] }).map(([name, value]) => ({ name, text: text(value) }))
    const items = (one: string): string => `[${Array.from({ length: size }, () => one).join(',')}]`
    const depth = 1 + (size % 120)
    const more: readonly Field[] = [
      ...(kind === 0 ? Array.from({ length: size }, (_, i) => ({ name: `k${i}`, text: '1' })) : []),
      ...(kind === 1 ? [{ name: 'messages', text: items('{"role":"user","content":"a"}') }] : []),
      ...(kind === 2
        ? [
            {
              name: 'tools',
              text: `[{"type":"function","function":{"name":"f","parameters":${'{"a":['.repeat(depth / 2)}1${']}'.repeat(depth / 2)}}}]`,
            },
          ]
        : []),
      ...(kind === 3
        ? [
            { name: 'input', text: items('"a"') },
            { name: 'documents', text: items('"a"') },
          ]
        : []),
      ...(kind === 4
        ? [
            { name: 'prompt', text: text('a\ud800\0é'.repeat(size)) },
            { name: 'messages', text: text([{ role: 'user', content: 'é'.repeat(size) }]) },
          ]
        : []),
      ...(kind === 5
        ? [
            { name: 'stop', text: items('"\\u0000"') },
            { name: 'logit_bias', text: `{${Array.from({ length: size }, (_, i) => `"${i}":1`).join(',')}}` },
          ]
        : []),
    ]
    return { path: endpoint.paths[0] as string, body: Buffer.from(written([...base, ...more])) }
  })

/** Cases in the proportions in which they find something. */
export const cases: fc.Arbitrary<Case> = fc.oneof(
  { weight: 200, arbitrary: wrong },
  { weight: 40, arbitrary: broken },
  { weight: 15, arbitrary: alone },
  { weight: 3, arbitrary: large },
)

/** What is as large as it may be, and larger: a million keys, elements, levels, letters of an escape. */
export const extremes: readonly Case[] = [
  `{"model":"up/m","messages":[{"role":"user","content":"a"}],${Array.from({ length: 1_000_000 }, (_, i) => `"k${i}":1`).join(',')}}`,
  `{"model":"up/m","messages":[{"role":"user","content":"a"}],"logit_bias":{${Array.from({ length: 1_000_000 }, (_, i) => `"${i}":1`).join(',')}}}`,
  `{"model":"up/m","messages":[${'{"role":"user","content":"a"},'.repeat(400_000)}{"role":"user","content":"a"}]}`,
  `{"model":"up/m","messages":[{"role":"user","content":${'['.repeat(1_000_000)}`,
  `{"model":"up/m","messages":[{"role":"user","content":"${'\\u00e9'.repeat(1_000_000)}"}]}`,
  `{"model":"up/m","messages":[{"role":"user","content":"a"}],"stop":[${'"",'.repeat(1_000_000)}""]}`,
  `{${'"__proto__":{},'.repeat(500_000)}"model":"up/m"}`,
  `{"model":"up/m","x":"${'x'.repeat(17 * 1024 * 1024)}"}`,
].map(text => ({ path: '/v1/chat/completions', body: Buffer.from(text) }))

/** As an object of own properties alone, whatever their names are. */
function own(entries: readonly (readonly [string, unknown])[]): Record<string, unknown> {
  return Object.fromEntries(entries)
}

function text(value: unknown): string {
  return JSON.stringify(value) ?? 'null'
}

function written(fields: readonly Field[]): string {
  return `{${fields.map(({ name, text }) => `${JSON.stringify(name)}:${text}`).join(',')}}`
}
