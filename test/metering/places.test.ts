import fc from 'fast-check'
import t from 'tap'
import type { Model } from '../../src/config/config.js'
import { FAMILIES } from '../../src/config/tokenizer-families.js'
import chat from '../../src/endpoints/chat-completions.js'
import completions from '../../src/endpoints/completions.js'
import embeddings from '../../src/endpoints/embeddings.js'
import type { Endpoint } from '../../src/endpoints/endpoint.js'
import moderations from '../../src/endpoints/moderations.js'
import rerank from '../../src/endpoints/rerank.js'
import type { Json, JsonObject } from '../../src/json.js'
import { textTokens } from '../../src/metering/estimate.js'
import { sampleModel } from '../support/sample-call.js'

const TEXT = 'A lamp that a customer of the bakery has lost may be fetched at the counter until seven. '.repeat(20)

/** A body with much of what the format has, and what it does not have where others add it. */
const schema = (inner: Json): JsonObject => ({
  type: 'object',
  properties: { a: { type: 'string', description: 'b', enum: ['c'] }, d: { type: 'array', items: { type: 'object', properties: {} } } },
  required: ['a'],
  anyOf: [{ type: 'null' }],
  $defs: { E: { type: 'string', title: 'f' } },
  additionalProperties: false,
  more: inner,
})
const chatBody = (inner: Json): JsonObject => ({
  model: 'm',
  messages: [
    { role: 'system', content: 'a', name: 'b', more: inner },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'a', more: inner },
        { type: 'note', note: { a: inner } },
        { type: 'file', file: { filename: 'a', file_data: 'data:text/plain,a' } },
      ],
    },
    {
      role: 'assistant',
      content: null,
      refusal: 'a',
      reasoning_content: 'b',
      reasoning: 'c',
      tool_calls: [{ id: 'c', type: 'function', function: { name: 'd', arguments: '{}', more: inner }, more: inner }],
      function_call: { name: 'a', arguments: '{}' },
    },
    { role: 'tool', tool_call_id: 'c', content: [{ type: 'text', text: 'a' }] },
  ],
  tools: [
    { type: 'function', function: { name: 'a', description: 'b', parameters: schema(inner), strict: true, more: inner }, more: inner },
    { type: 'custom', custom: { name: 'a', format: inner } },
  ],
  functions: [{ name: 'a', parameters: schema(inner), more: inner }],
  tool_choice: { type: 'function', function: { name: 'a' } },
  function_call: { name: 'a' },
  response_format: { type: 'json_schema', json_schema: { name: 'a', schema: schema(inner) }, more: inner },
  prediction: { type: 'content', content: 'a' },
  reasoning_effort: 'low',
  verbosity: 'low',
  web_search_options: { user_location: inner },
})

interface Surface {
  readonly endpoint: Endpoint
  readonly body: (inner: Json) => JsonObject
  /** Places of which no model reads: what chooses among kinds, and what is dropped on the way. */
  readonly unread: RegExp
}
const SURFACES: readonly Surface[] = [
  {
    endpoint: chat,
    body: chatBody,
    unread: /^(model|added)$|^messages\.\d+\.role$|^prediction\.(?!content)|\.file\.(?!filename|file_data)/,
  },
  { endpoint: completions, body: () => ({ model: 'm', prompt: ['a', 'b'], suffix: 'c' }), unread: /^(model|added)$/ },
  { endpoint: embeddings, body: () => ({ model: 'm', input: ['a', 'b'] }), unread: /^(model|added)$/ },
  {
    endpoint: moderations,
    body: () => ({ model: 'm', input: [{ type: 'text', text: 'a' }] }),
    unread: /^(model|added)$|^input\.\d+\.added$/,
  },
  {
    endpoint: rerank,
    body: () => ({ model: 'm', query: 'a', documents: ['b', { text: 'c' }] }),
    unread: /^(model|added)$|^documents\.\d+\.added$/,
  },
]

/** Where a text may take the place of a value, or become a member of an object. */
function* places(value: Json | undefined, path: readonly string[] = []): Generator<readonly string[]> {
  if (typeof value !== 'object' || value === null) {
    yield path
    return
  }
  if (!Array.isArray(value)) yield [...path, 'added']
  for (const [name, inner] of Object.entries(value)) yield* places(inner as Json, [...path, name])
}

/** The value with a text at the place; `key`: as the name of a member. */
function put(value: Json | undefined, [name, ...path]: readonly string[], key: boolean): Json {
  if (name === undefined) return key ? { [TEXT]: 1 } : TEXT
  if (Array.isArray(value)) return value.map((item: Json, i) => (String(i) === name ? put(item, path, key) : item))
  const object = typeof value === 'object' && value !== null ? (value as JsonObject) : {}
  return { ...object, [name]: put(object[name], path, key) }
}

function held({ endpoint }: Surface, body: JsonObject, model: Model): number {
  const { input, output } = endpoint.estimate(body, model)
  return input + output
}

t.test('a text anywhere a model reads is never counted as nothing', async t => {
  const inner = fc.jsonValue({ maxDepth: 3 }).map(value => value as Json)
  for (const surface of SURFACES) {
    for (const tokenizer of FAMILIES) {
      const model = sampleModel({ tokenizer })
      let tried = 0
      fc.assert(
        fc.property(inner, fc.nat(), fc.boolean(), (value, at, key) => {
          const body = surface.body(value)
          surface.endpoint.check(body)
          const all = [...places(body)].filter(path => !surface.unread.test(path.join('.')))
          const path = all[at % all.length] as readonly string[]
          const changed = put(body, path, key) as JsonObject
          try {
            surface.endpoint.check(changed)
          } catch {
            return
          }
          tried++
          const more = held(surface, changed, model) - held(surface, body, model)
          if (more < 0.8 * textTokens(TEXT, tokenizer)) throw new Error(`${path.join('.')}${key ? ' (name)' : ''}: ${more}`)
        }),
        { numRuns: 150 },
      )
      t.ok(tried > 20, `${surface.endpoint.surface}, ${tokenizer}: ${tried} texts`)
    }
  }
})
