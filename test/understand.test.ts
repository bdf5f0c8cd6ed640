import t from 'tap'
import type { Surface } from '../src/endpoints/endpoint.js'
import type { JsonObject } from '../src/json.js'
import { Calibrations } from '../src/metering/calibrations.js'
import { cost } from '../src/metering/price.js'
import { INLINE_BYTES_MAX } from '../src/pieces.js'
import { sizeOf } from '../src/sizing.js'
import { type Question, readQuestion, understand } from '../src/understand.js'
import { asking, endpointOf } from './support/questions.js'

const MESSAGES = [{ role: 'user', content: 'Hello' }]
const there = asking(t)
const UNTAUGHT = new Calibrations(
  [],
  async () => {},
  () => {},
)

/** What a body asks for. A string is the body's text. */
function ask(given: JsonObject | string, surface: Surface = 'chat', key = 'a'): Question {
  const text = typeof given === 'string' ? given : JSON.stringify(given)
  const endpoint = endpointOf(surface)
  return understand(readQuestion(Buffer.from(text), endpoint), endpoint, there.runtime, there.key(key))
}

/** What is forwarded to the first target. */
const forwarded = (given: JsonObject | string, surface: Surface = 'chat') => ask(given, surface).targets[0]?.body as JsonObject

t.test('what is forwarded is a new object of what was understood', async t => {
  const messages = MESSAGES
  const rows: [name: string, given: JsonObject | string, expected: JsonObject][] = [
    ['the least', { model: 'up/m', messages }, { model: 'm', messages, max_completion_tokens: 100 }],
    ['an alias', { model: 'default', messages }, { model: 'm', messages, max_completion_tokens: 100 }],
    [
      "the provider's name, the model's spelling of the cap",
      { model: 'up/renamed', messages },
      { model: 'their-name', messages, max_tokens: 7 },
    ],
    ["the provider's spelling of the cap", { model: 'old/m', messages, max_completion_tokens: 5 }, { model: 'm', messages, max_tokens: 5 }],
    [
      'unknown fields',
      { model: 'up/m', messages, x: 1, max_output_tokens: 9, sse_ping_interval: 1 },
      { model: 'm', messages, max_completion_tokens: 100 },
    ],
    [
      'other cases',
      { model: 'up/m', messages, Temperature: 1, MAX_TOKENS: 9, Stream: true, N: 9 },
      { model: 'm', messages, max_completion_tokens: 100 },
    ],
    [
      'names of every object',
      '{"model":"up/m","messages":[{"role":"user","content":"Hello"}],"__proto__":{"n":5},"constructor":1,"toString":1,"hasOwnProperty":1}',
      {
        model: 'm',
        messages,
        max_completion_tokens: 100,
      },
    ],
    [
      'the last of two',
      '{"model":"up/few","n":9,"messages":[],"messages":[{"role":"user","content":"Hello"}],"n":2,"model":"up/m"}',
      {
        model: 'm',
        messages,
        n: 2,
        max_completion_tokens: 100,
      },
    ],
    [
      'null is absent',
      { model: 'up/m', messages, temperature: null, n: null, max_tokens: null, stream: null, stop: null },
      {
        model: 'm',
        messages,
        max_completion_tokens: 100,
      },
    ],
    [
      'null within is what it is',
      {
        model: 'up/m',
        messages: [
          { role: 'assistant', content: null, tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }] },
        ],
      },
      {
        model: 'm',
        messages: [
          { role: 'assistant', content: null, tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }] },
        ],
        max_completion_tokens: 100,
      },
    ],
    [
      'all that the model takes',
      { model: 'up/m', messages, temperature: 0, top_p: 1, seed: 3, user: 'u' },
      { model: 'm', messages, temperature: 0, top_p: 1, seed: 3, user: 'u', max_completion_tokens: 100 },
    ],
    [
      'only what the model takes',
      { model: 'up/few', messages, temperature: 0, top_p: 1, stop: 'x', n: 1 },
      { model: 'few', messages, temperature: 0, stop: 'x', n: 1, max_completion_tokens: 40 },
    ],
  ]
  for (const [name, given, expected] of rows) t.strictSame({ ...forwarded(given) }, expected, name)
})

t.test('the cap that is sent is the one that is held', async t => {
  const cap = (model: string, fields: JsonObject) => {
    const { targets } = ask({ model, messages: MESSAGES, ...fields })
    const body = targets[0]?.body
    return [body?.max_completion_tokens ?? body?.max_tokens, sizeOf(targets, UNTAUGHT).estimate.output]
  }
  t.strictSame(cap('up/m', {}), [100, 100], 'the default')
  t.strictSame(cap('up/m', { max_tokens: 9 }), [9, 9])
  t.strictSame(cap('up/m', { max_tokens: 9, max_completion_tokens: 7 }), [7, 7], 'the smaller of two')
  t.strictSame(cap('up/m', { max_tokens: 99_999 }), [4096, 4096], "never above the model's")
  t.strictSame(cap('up/m', { max_tokens: 9, n: 3 }), [9, 27], 'n of them')
  t.strictSame(cap('up/m', { max_tokens: 9, n: 3, stream: true }), [9, 27])
  t.strictSame(cap('up/few', { max_tokens: 60 }), [50, 50])
  const completion = ask({ model: 'up/m', prompt: ['a', 'b'], n: 2, best_of: 3, max_completion_tokens: 5 }, 'completions')
  t.strictSame(
    [completion.targets[0]?.body.max_tokens, sizeOf(completion.targets, UNTAUGHT).estimate.output],
    [5, 30],
    'prompts × best_of × cap',
  )
})

t.test('each target of a fallback has its own cap, and the dearest is held', async t => {
  const { model, targets } = ask({ model: 'up/falls', messages: MESSAGES, max_tokens: 3000, n: 2, stream: true })
  const { estimate, estimateRial } = sizeOf(targets, UNTAUGHT)
  t.equal(model.id, 'up/falls')
  t.strictSame(
    targets.map(({ model: { id }, body }) => [id, body.model, body.max_completion_tokens ?? body.max_tokens]),
    [
      ['up/falls', 'falls', 3000],
      ['old/m', 'm', 200],
      ['claude/c', 'c', 1000],
    ],
  )
  t.strictSame(
    targets.map(({ estimate: { output } }) => output),
    [6000, 400, 2000],
  )
  t.strictSame(estimate, { input: Math.max(...targets.map(target => target.estimate.input)), output: 6000 })
  const costs = targets.map(({ model: { price }, estimate: { input, output } }) => cost(price, { input, cached: 0, output }))
  t.equal(estimateRial, costs[1])
  t.ok((costs[1] as bigint) > (costs[0] as bigint))
  t.strictSame(
    targets.map(({ body }) => body.stream_options),
    [{ include_usage: true }, undefined, undefined],
  )
})

t.test('a stream asks for its usage where that must be asked for, whoever wants to see it', async t => {
  const options = (model: string, fields: JsonObject) => {
    const question = ask({ model, messages: MESSAGES, ...fields })
    const { stream, stream_options } = question.targets[0]?.body ?? {}
    return [question.stream, question.includeUsage, stream, stream_options]
  }
  t.strictSame(options('up/m', {}), [false, false, undefined, undefined])
  t.strictSame(options('up/m', { stream: false, stream_options: null }), [false, false, undefined, undefined])
  t.strictSame(options('up/m', { stream: true }), [true, false, true, { include_usage: true }])
  t.strictSame(options('up/m', { stream: true, stream_options: { include_usage: false } }), [true, false, true, { include_usage: true }])
  t.strictSame(options('up/m', { stream: true, stream_options: { include_usage: true, include_obfuscation: false } }), [
    true,
    true,
    true,
    { include_usage: true, include_obfuscation: false },
  ])
  t.strictSame(
    options('up/m', {
      stream: true,
      stream_options: { include_usage: false, include_obfuscation: null, chunk_include_usage: true, foo: 1 },
    }),
    [true, false, true, { include_usage: true }],
    'what is not known is not forwarded',
  )
  t.strictSame(options('old/m', { stream: true, stream_options: { include_usage: true } }), [true, true, true, undefined])
  t.strictSame(ask({ model: 'up/m', prompt: 'a', stream: true }, 'completions').stream, false, 'completions never stream')
  t.equal(forwarded({ model: 'up/m', prompt: 'a', stream: true, stream_options: {} }, 'completions').stream, undefined)
})

t.test('what may not be asked for', async t => {
  const rows: [given: JsonObject, surface: Surface, key: string, code: string, status: number, message: RegExp][] = [
    [{ model: 'up/none', messages: MESSAGES }, 'chat', 'a', 'model_not_found', 404, /^There is no model "up\/none"\./],
    [{ model: 'UP/M', messages: MESSAGES }, 'chat', 'a', 'model_not_found', 404, /"UP\/M"/],
    [{ model: '__proto__', messages: MESSAGES }, 'chat', 'a', 'model_not_found', 404, /"__proto__"/],
    [{ model: `a\n${'b'.repeat(500)}`, messages: MESSAGES }, 'chat', 'a', 'model_not_found', 404, /^There is no model "a\\nb{98}…"\./],
    [{ model: 'up/m', messages: MESSAGES }, 'chat', 'b', 'model_not_allowed', 403, /^Key b or its plan does not include "up\/m"/],
    [{ model: 'default', messages: MESSAGES }, 'chat', 'b', 'model_not_allowed', 403, /"default"/],
    [
      { model: 'up/chat-only', input: 'a' },
      'embeddings',
      'a',
      'unsupported_surface',
      400,
      /up\/chat-only does not answer \/v1\/embeddings/,
    ],
    [{ model: 'claude/c', input: 'a' }, 'embeddings', 'a', 'unsupported_surface', 400, /claude\/c does not answer/],
  ]
  for (const [given, surface, key, code, status, message] of rows)
    t.throws(() => ask(given, surface, key), { code, status, param: 'model', message })
  t.equal(ask({ model: 'sandbox/echo', messages: MESSAGES }, 'chat', 'b').model.id, 'sandbox/echo')
  for (const model of [undefined, null, 7, '', ['up/m']] as const) {
    t.throws(() => ask({ model, messages: MESSAGES } as JsonObject), { code: 'invalid_request', status: 400, param: 'model' })
  }
})

t.test('a fallback that does not answer the surface is no target', async t => {
  t.strictSame(
    ask({ model: 'up/falls', input: 'a' }, 'embeddings').targets.map(({ model }) => model.id),
    ['up/falls', 'old/m'],
  )
})

t.test('what a model does not take is dropped before the hold is computed', async t => {
  const tools = [{ type: 'function', function: { name: 'f', description: 'A long story about the weather. '.repeat(50), parameters: {} } }]
  const held = (model: string, fields: JsonObject) => {
    const { targets } = ask({ model, messages: MESSAGES, ...fields })
    const { estimate, estimateRial } = sizeOf(targets, UNTAUGHT)
    return { estimate, estimateRial, sent: 'tools' in (targets[0]?.body ?? {}) }
  }
  const dropped = held('up/few', { tools, tool_choice: 'auto', response_format: { type: 'json_object' } })
  t.strictSame(dropped, { ...held('up/few', {}), sent: false }, 'neither forwarded nor held for')
  const [taken, without] = [held('up/m', { tools }), held('up/m', {})]
  t.ok(taken.sent)
  t.ok(taken.estimateRial > without.estimateRial, `${taken.estimateRial} Rial with the tools, ${without.estimateRial} without`)
  t.ok(taken.estimate.input > without.estimate.input + 200)
})

t.test('the largest body that is read on the main thread, for five targets of different families: less than 2 ms', async t => {
  const families = ['o200k', 'cl100k', 'claude', 'gemini', 'llama']
  const several = asking(
    t,
    `
providers: {up: {kind: openai, api_key: sk-x}}
models:
  up/m:
    price: free
    default_max_tokens: 10
    fallback: [${families.slice(1).map(family => `up/${family}`)}]
    tokenizer: o200k
${families
  .slice(1)
  .map(family => `  up/${family}: {price: free, default_max_tokens: 10, tokenizer: ${family}}`)
  .join('\n')}
plans: {p: {}}
keys: {a: {plan: p, secret: mgk_test_key_a}}
`,
  )
  const endpoint = endpointOf('chat')
  for (const unit of [
    'for (const [i, x] of xs.entries()) { sum += x[i] * 2 } // as before\n',
    'a1B2c3 d4',
    'a!b?c.d,{"x":1}',
    'دستور زبان فارسی ',
  ]) {
    const content = unit.repeat(Math.ceil(INLINE_BYTES_MAX / Buffer.byteLength(unit))).slice(0, INLINE_BYTES_MAX / 2)
    const body = readQuestion(
      Buffer.from(JSON.stringify({ model: 'up/m', messages: [{ role: 'user', content: content + content }] })),
      endpoint,
    )
    let least = Number.POSITIVE_INFINITY
    for (let tries = 0; tries < 200 && (tries < 20 || least >= 2); tries++) {
      const start = performance.now()
      const { targets } = understand(body, endpoint, several.runtime, several.key())
      least = Math.min(least, performance.now() - start)
      if (new Set(targets.map(({ model }) => model.tokenizer)).size !== 5) throw new Error('these are not five families')
    }
    t.ok(least < 2, `${JSON.stringify(unit.slice(0, 9))}: ${least.toFixed(2)} ms`)
  }
})

t.test('a seed of 64 bits is forwarded as the nearest that there is, and never as one of more', async t => {
  const seed = (written: string) =>
    forwarded(JSON.parse(`{"model":"up/m","messages":[{"role":"user","content":"Hi"}],"seed":${written}}`)).seed
  const [most, least] = [2n ** 63n - 1n, -(2n ** 63n)]
  for (const written of [0n, 7n, 2n ** 53n + 1n, most - 512n, most, -most, least]) {
    const sent = BigInt(JSON.stringify(seed(String(written))))
    t.ok(sent >= least && sent <= most, `${written} as ${sent}`)
    t.ok(sent - written <= 1024n && written - sent <= 1024n, `${written} as ${sent}`)
  }
  t.equal(seed('9007199254740993'), 9007199254740992)
  t.throws(() => seed('9223372036854779000'), { code: 'invalid_request', param: 'seed' })
})
