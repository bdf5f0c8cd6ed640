import fc from 'fast-check'
import t from 'tap'
import type { JsonObject } from '../../../src/json.js'
import { geminiSchema } from '../../../src/upstream/providers/gemini/schema.js'
import gemini from '../../../src/upstream/providers/gemini.js'
import { API_KEY, callOf, settingsOf } from '../../support/calls.js'
import { brokenRules } from '../../support/stream-rules.js'
import { chatOf, checkFixtures, failureIn, translated } from '../../support/wire-fixtures.js'

const MODEL = 'gemini/gemini-3-flash'
const chat = chatOf(gemini)

checkFixtures(gemini, MODEL)

t.test('names the model and the method in the path', async t => {
  t.equal(chat.path(callOf(MODEL, {})), '/models/gemini-3-flash:generateContent')
  t.equal(chat.path(callOf(MODEL, {}, { stream: true })), '/models/gemini-3-flash:streamGenerateContent?alt=sse')
  t.equal(chat.path(callOf('gemini/tunedModels/a?b', {})), '/tunedModels/a%3Fb:generateContent')
  t.strictSame(gemini.authorize(API_KEY, settingsOf('gemini')), { 'x-goog-api-key': API_KEY })
  t.strictSame(gemini.authorize(null, settingsOf('gemini')), {})
})

const thinking = (id: string, effort: string | null, options = {}) =>
  (chat.request(callOf(id, { messages: [], reasoning_effort: effort }, { options })).generationConfig as JsonObject).thinkingConfig
for (const [id, effort, options, config] of [
  [MODEL, null, {}, undefined],
  [MODEL, 'none', {}, { thinkingLevel: 'minimal' }],
  [MODEL, 'xhigh', { include_thoughts: true }, { thinkingLevel: 'high', includeThoughts: true }],
  ['gemini/gemini-2.5-pro', 'none', {}, { thinkingBudget: 0 }],
  ['gemini/gemini-2.5-pro', 'high', {}, { thinkingBudget: 24576 }],
  ['gemini/tunedModels/mine', 'low', { thinking: 'budget' }, { thinkingBudget: 1024 }],
] as const) {
  t.test(`${id} with effort ${effort} and ${JSON.stringify(options)}`, async t => t.strictSame(thinking(id, effort, options), config))
}

t.test('a result must belong to a call, or say its name', async t => {
  const messages = (name: JsonObject) => [{ role: 'tool', tool_call_id: 'call_1', content: 'x', ...name }]
  t.throws(() => chat.request(callOf(MODEL, { messages: messages({}) })), { code: 'invalid_request', param: 'messages[0].tool_call_id' })
  t.strictSame(chat.request(callOf(MODEL, { messages: messages({ name: 'f' }) })).contents, [
    { role: 'user', parts: [{ functionResponse: { name: 'f', response: { result: 'x' } } }] },
  ])
})

const string = { type: 'string' }
for (const [name, schema, converted] of [
  [
    'what it does not know is dropped',
    {
      $schema: 'x',
      $id: 'y',
      type: 'object',
      additionalProperties: false,
      default: {},
      properties: { a: { type: 'string', format: 'uri', examples: ['x'] } },
    },
    { type: 'object', properties: { a: string } },
  ],
  [
    'what it knows is kept',
    {
      type: 'array',
      minItems: 1,
      items: { type: 'string', format: 'date-time', pattern: '^2', maxLength: 9, description: 'd', title: 't' },
    },
    {
      type: 'array',
      minItems: 1,
      items: { type: 'string', title: 't', description: 'd', maxLength: 9, pattern: '^2', format: 'date-time' },
    },
  ],
  ['null among the types', { type: ['integer', 'null'], minimum: 0 }, { type: 'integer', minimum: 0, nullable: true }],
  [
    'several types',
    { type: ['string', 'integer', 'string', 'null'], description: 'd' },
    { description: 'd', nullable: true, anyOf: [string, { type: 'integer' }] },
  ],
  ['null among the alternatives', { anyOf: [string, { type: 'null' }] }, { type: 'string', nullable: true }],
  ['oneOf', { oneOf: [string, { type: 'integer' }, { type: 'null' }] }, { anyOf: [string, { type: 'integer' }], nullable: true }],
  [
    'allOf',
    {
      allOf: [
        { type: 'object', properties: { a: string }, required: ['a'] },
        { properties: { b: string }, required: ['b'] },
      ],
    },
    { type: 'object', properties: { a: string, b: string }, required: ['a', 'b'] },
  ],
  ['a constant', { const: 'x' }, { type: 'string', enum: ['x'] }],
  ['a constant number', { const: 4, description: 'Four.' }, { type: 'number', description: 'Four. One of: 4.' }],
  ['null among the values', { enum: ['a', null] }, { type: 'string', enum: ['a'], nullable: true }],
  ['numbers in an enum', { type: 'integer', enum: [1, 2] }, { type: 'integer', description: 'One of: 1, 2.' }],
  [
    'several types with values',
    { type: ['string', 'integer'], enum: ['a', 1] },
    { anyOf: [string, { type: 'integer' }], description: 'One of: "a", 1.' },
  ],
  [
    'a tuple',
    { type: 'array', prefixItems: [string, { type: 'integer' }] },
    { type: 'array', items: { anyOf: [string, { type: 'integer' }] } },
  ],
  ['an array of anything', { type: 'array' }, { type: 'array', items: string }],
  [
    'a type that is left out',
    { properties: { a: { items: string } } },
    { type: 'object', properties: { a: { type: 'array', items: string } } },
  ],
  [
    'a name that is required and not there',
    { type: 'object', properties: { a: true }, required: ['a', 'b', 'toString'] },
    { type: 'object', properties: { a: {} }, required: ['a'] },
  ],
  [
    'references',
    {
      $defs: { A: { type: 'object', properties: { b: { $ref: '#/definitions/B~1~0' } } } },
      definitions: { 'B/~': string },
      type: 'object',
      properties: { a: { $ref: '#/$defs/A', description: 'd' } },
    },
    { type: 'object', properties: { a: { type: 'object', description: 'd', properties: { b: string } } } },
  ],
  [
    'a schema that contains itself',
    {
      $ref: '#/$defs/N',
      $defs: { N: { type: 'object', properties: { next: { $ref: '#/$defs/N' }, all: { type: 'array', items: { $ref: '#' } } } } },
    },
    { type: 'object', properties: { next: { type: 'object' }, all: { type: 'array', items: { type: 'object' } } } },
  ],
] as const) {
  t.test(`schema: ${name}`, async t => t.strictSame(geminiSchema(schema as unknown as JsonObject, 'p'), converted))
}

const doubling: JsonObject = Object.fromEntries(
  Array.from({ length: 40 }, (_, level) => [
    `L${level}`,
    { type: 'object', properties: { a: { $ref: `#/$defs/L${level + 1}` }, b: { $ref: `#/$defs/L${level + 1}` } } },
  ]),
)
const deep = Array.from({ length: 5000 }).reduce<JsonObject>(schema => ({ type: 'array', items: schema }), string)
for (const [name, schema] of [
  ['that grows with every reference', { $ref: '#/$defs/L0', $defs: { ...doubling, L40: string } }],
  ['that is nested without end', deep],
  [
    'whose references repeat a long text',
    { $ref: '#/$defs/L30', $defs: { ...doubling, L40: { ...string, description: 'x'.repeat(1000) } } },
  ],
  [
    'whose references repeat many values',
    { $ref: '#/$defs/L30', $defs: { ...doubling, L40: { enum: Array.from({ length: 1000 }, String) } } },
  ],
  ['that refers to nothing', { $ref: '#/$defs/gone' }],
  ['that refers to another document', { $ref: 'https://example.com/schema.json' }],
  ['that refers to an anchor', { $ref: '#gone' }],
  ['that refers to what every object has', { $ref: '#/constructor' }],
] as const) {
  t.test(`refuses a schema ${name}`, async t => {
    const tools = [{ type: 'function', function: { name: 'f', parameters: schema as JsonObject } }]
    t.throws(() => chat.request(callOf(MODEL, { messages: [], tools })), { code: 'invalid_request', param: 'tools[0].function.parameters' })
  })
}

t.test('the references of all tools share one budget', async t => {
  const parameters = { $ref: '#/$defs/L32', $defs: { ...doubling, L40: string } }
  const tools = (count: number) =>
    Array.from({ length: count }, (_, at) => ({ type: 'function', function: { name: `f${at}`, parameters } }))
  t.ok(chat.request(callOf(MODEL, { messages: [], tools: tools(5) })))
  t.throws(() => chat.request(callOf(MODEL, { messages: [], tools: tools(50) })), { code: 'invalid_request', param: /tools.\d+/ })
})

const error = (code: number, status: string, message: string, details: readonly JsonObject[] = []) => ({
  error: { code, message, status, details },
})
for (const [name, status, body, failure] of [
  [
    'says when to come back',
    429,
    error(429, 'RESOURCE_EXHAUSTED', 'Quota', [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '0.2s' }]),
    { message: 'Quota', retryAfter: 1 },
  ],
  [
    'calls a bad key a matter of authentication',
    400,
    error(400, 'INVALID_ARGUMENT', 'API key not valid.', [{ '@type': 'x', reason: 'API_KEY_INVALID' }]),
    { status: 401, message: 'API key not valid.' },
  ],
  [
    'knows a prompt that is too long',
    400,
    error(400, 'INVALID_ARGUMENT', 'The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).'),
    { code: 'context_length_exceeded', message: 'The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).' },
  ],
  ['takes the first of a list', 200, [error(503, 'UNAVAILABLE', 'Busy')], { status: 503, message: 'Busy' }],
  ['falls back to the code', 200, { error: { code: 418, message: 'Tea' } }, { status: 418, message: 'Tea' }],
  ['makes nothing of a page', 502, '<html>', {}],
] as const) {
  t.test(`a failure ${name}`, async t => t.strictSame(gemini.failure?.(status, body), failure))
}

t.test('embeddings: one request for each text, one vector for each', async t => {
  const wire = gemini.wires.embeddings
  const call = callOf(
    'gemini/gemini-embedding-001',
    { input: ['a', 'ب'], dimensions: 2, encoding_format: 'base64' },
    { surface: 'embeddings' },
  )
  t.equal(wire?.path(call), '/models/gemini-embedding-001:batchEmbedContents')
  t.strictSame(wire?.request?.(call), {
    requests: [
      { model: 'models/gemini-embedding-001', content: { parts: [{ text: 'a' }] }, outputDimensionality: 2 },
      { model: 'models/gemini-embedding-001', content: { parts: [{ text: 'ب' }] }, outputDimensionality: 2 },
    ],
  })
  const embeddings = [{ values: [0.1, -0.2] }, { values: [1, 0] }]
  const answer = {
    object: 'list',
    data: [
      { object: 'embedding', index: 0, embedding: [0.1, -0.2] },
      { object: 'embedding', index: 1, embedding: [1, 0] },
    ],
    model: 'gemini/gemini-embedding-001',
  }
  t.strictSame(wire?.response?.({ embeddings }, call, {}), answer)
  t.strictSame(wire?.response?.({ embeddings, usageMetadata: { promptTokenCount: 3 } }, call, {}), {
    ...answer,
    usage: { prompt_tokens: 3, total_tokens: 3 },
  })
  t.match(
    failureIn(() => wire?.response?.({ embeddings: embeddings.slice(1) }, call, {})),
    { code: 'upstream_invalid_response' },
  )
  t.match(
    failureIn(() => wire?.response?.(error(429, 'RESOURCE_EXHAUSTED', `Quota of ${API_KEY}`), call, {})),
    { status: 429, message: 'Quota of ***' },
  )
  t.throws(() => wire?.request?.(callOf(MODEL, { input: [[1, 2]] })), { code: 'invalid_request', param: 'input[0]' })
})

t.test('texts and thoughts of every candidate come out as they went in, and usage is never negative', async () => {
  const part = fc.record({ text: fc.string({ unit: 'grapheme' }), thought: fc.boolean() })
  const count = fc.oneof(fc.nat(), fc.constant(null), fc.integer(), fc.double(), fc.constant('7'))
  const usage = fc.dictionary(
    fc.constantFrom('promptTokenCount', 'candidatesTokenCount', 'thoughtsTokenCount', 'totalTokenCount', 'cachedContentTokenCount'),
    count,
  )
  const step = fc.record({ index: fc.nat(2), parts: fc.array(part, { maxLength: 3 }), usage: fc.option(usage) })
  fc.assert(
    fc.property(fc.array(step, { minLength: 1 }), steps => {
      const events = steps.map(({ index, parts, usage }) => ({
        data: JSON.stringify({
          candidates: [{ index, content: { parts }, finishReason: 'STOP' }],
          ...(usage === null ? {} : { usageMetadata: usage }),
        }),
      }))
      const told = translated(chat.events(callOf(MODEL, {})), events)
      const choices = told.chunks.flatMap(
        chunk => chunk.choices as { index: number; delta: { content?: string; reasoning_content?: string } }[],
      )
      const said = (index: number, thought: boolean) =>
        steps
          .flatMap(step => (step.index === index ? step.parts.filter(part => part.thought === thought) : []).map(({ text }) => text))
          .join('')
      const heard = (index: number, field: 'content' | 'reasoning_content') =>
        choices.map(choice => (choice.index === index ? (choice.delta[field] ?? '') : '')).join('')
      return (
        told.failure === null &&
        brokenRules(told.chunks).length === 0 &&
        [0, 1, 2].every(index => heard(index, 'content') === said(index, false) && heard(index, 'reasoning_content') === said(index, true))
      )
    }),
  )
})
