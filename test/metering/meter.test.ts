import fc from 'fast-check'
import t from 'tap'
import type { JsonObject } from '../../src/json.js'
import { inputOf, StreamUsage, usageOf } from '../../src/metering/meter.js'
import { heap } from '../support/garbage.js'

const usage = (input: number, output: number, cached = 0, reasoning = 0) => ({ source: 'provider', input, cached, output, reasoning })
const tokens = (prompt_tokens: number, completion_tokens: number, total_tokens = prompt_tokens + completion_tokens) => ({
  prompt_tokens,
  completion_tokens,
  total_tokens,
})

t.test('reads what providers report', async t => {
  const rows: readonly [name: string, reported: unknown, expected: unknown, strict?: boolean][] = [
    ['plain', tokens(19, 10), usage(19, 10)],
    ['Gemini through a proxy: thoughts only in the total', tokens(20, 198, 623), usage(20, 603)],
    ['output only in the total', tokens(21, 0, 81), usage(21, 60)],
    ['the same, strict', tokens(20, 198, 623), usage(20, 198), true],
    ['a total below the parts', tokens(20, 198, 100), usage(20, 198)],
    ['no total', { prompt_tokens: 5, completion_tokens: 7 }, usage(5, 7)],
    ['no completion, strict', { prompt_tokens: 5, total_tokens: 9 }, usage(5, 4), true],
    ['embeddings', { prompt_tokens: 8, total_tokens: 8 }, usage(8, 0)],
    ['rerankers that tell the total alone', { total_tokens: 50 }, usage(50, 0)],
    ['completion and total alone', { completion_tokens: 10, total_tokens: 50 }, usage(40, 10)],
    ['an explicit 0 is a count', tokens(0, 0, 0), usage(0, 0)],
    ['null is missing', { prompt_tokens: 4, completion_tokens: null, total_tokens: null, prompt_tokens_details: null }, usage(4, 0)],
    ['cached', { ...tokens(100, 5), prompt_tokens_details: { cached_tokens: 60 } }, usage(100, 5, 60)],
    ['DeepSeek', { ...tokens(100, 5), prompt_cache_hit_tokens: 60, prompt_cache_miss_tokens: 40 }, usage(100, 5, 60)],
    ['Mistral', { ...tokens(100, 5), num_cached_tokens: 60 }, usage(100, 5, 60)],
    [
      'details before the other spellings',
      { ...tokens(9, 5), prompt_tokens_details: { cached_tokens: 0 }, num_cached_tokens: 6 },
      usage(9, 5),
    ],
    ['all of it cached', { ...tokens(100, 5), prompt_tokens_details: { cached_tokens: 100 } }, usage(100, 5, 100)],
    ['cached beside the prompt', { ...tokens(10, 5), prompt_tokens_details: { cached_tokens: 60 } }, usage(70, 5, 60)],
    ['cached beside the prompt and in the total', { ...tokens(10, 5, 75), prompt_tokens_details: { cached_tokens: 60 } }, usage(70, 5, 60)],
    [
      'cached and reasoning beside',
      { ...tokens(10, 5, 45), prompt_tokens_details: { cached_tokens: 60 }, completion_tokens_details: { reasoning_tokens: 30 } },
      usage(70, 35, 60, 30),
    ],
    ['reasoning inside', { ...tokens(10, 50), completion_tokens_details: { reasoning_tokens: 30 } }, usage(10, 50, 0, 30)],
    ['reasoning beside (xAI)', { ...tokens(10, 20, 60), completion_tokens_details: { reasoning_tokens: 30 } }, usage(10, 50, 0, 30)],
    ['reasoning never above output', { ...tokens(10, 20), completion_tokens_details: { reasoning_tokens: 30 } }, usage(10, 20, 0, 20)],
  ]
  for (const [name, reported, expected, strict = false] of rows) t.strictSame(usageOf(reported, { strict }), expected, name)
})

t.test('where nothing is generated, only input is billed', async t => {
  const rows: readonly [reported: JsonObject, input: number | null][] = [
    [tokens(8, 0), 8],
    [tokens(8, 12), 8],
    [tokens(8, 0, 20), 8],
    [{ total_tokens: 25 }, 25],
    [{ completion_tokens: 5, total_tokens: 25 }, 25],
    [{ completion_tokens: 5 }, null],
    [tokens(-1, 0, 25), null],
  ]
  for (const [reported, input] of rows) {
    const expected = input === null ? null : usage(input, 0)
    t.strictSame(usageOf(reported, { strict: false, inputOnly: true }), expected, JSON.stringify(reported))
    t.equal(inputOf(reported), input)
  }
})

t.test('a usage that can not be is none', async t => {
  const rows: readonly unknown[] = [
    undefined,
    null,
    7,
    'usage',
    [],
    {},
    { cost: 0.2 },
    tokens(-1, 5),
    tokens(5, -1, 9),
    tokens(5, 5, -10),
    tokens(5.5, 5),
    tokens(5, 0.1),
    { prompt_tokens: '5', completion_tokens: 5 },
    JSON.parse('{"prompt_tokens": 1e400, "completion_tokens": 5}'),
    { prompt_tokens: Number.NaN, completion_tokens: 5 },
    tokens(2 ** 53, 5),
    // Two of these would be more than a counter holds, and the second could never be settled.
    tokens(Number.MAX_SAFE_INTEGER, 5),
    tokens(5, 1_000_000_001),
    tokens(5, 5, 1_000_000_001),
    { prompt_tokens: [5], completion_tokens: 5 },
    { prompt_tokens: true, completion_tokens: 5 },
    { ...tokens(5, 5), prompt_tokens_details: { cached_tokens: -1 } },
    { ...tokens(5, 5), completion_tokens_details: { reasoning_tokens: 'many' } },
    { ...tokens(2, 5), prompt_tokens_details: { cached_tokens: Number.MAX_SAFE_INTEGER } },
  ]
  for (const reported of rows) t.equal(usageOf(reported, { strict: false }), null, JSON.stringify(reported))
})

t.test('whatever is reported, a usage is whole, and its parts fit in it', async () => {
  const count = fc.oneof(fc.nat(1000), fc.maxSafeNat(), fc.constant(undefined), fc.constant(null), fc.double(), fc.integer(), fc.string())
  const reported = fc.record({
    prompt_tokens: count,
    completion_tokens: count,
    total_tokens: count,
    num_cached_tokens: count,
    prompt_tokens_details: fc.option(fc.record({ cached_tokens: count })),
    completion_tokens_details: fc.option(fc.record({ reasoning_tokens: count })),
  })
  fc.assert(
    fc.property(reported, fc.boolean(), (value, strict) => {
      const got = usageOf(value, { strict })
      if (got === null) return true
      const whole = [got.input, got.cached, got.output, got.reasoning].every(n => Number.isSafeInteger(n) && n >= 0)
      const told = typeof value.completion_tokens === 'number' ? value.completion_tokens : 0
      return whole && got.cached <= got.input && got.reasoning <= got.output && got.output >= told
    }),
    { numRuns: 3000 },
  )
})

const delta = (index = 0, finish_reason: string | null = null) => ({ index, delta: { content: 'x' }, finish_reason })
const collected = (chunks: readonly JsonObject[], strict = false) => {
  const stream = new StreamUsage({ strict })
  for (const chunk of chunks) stream.add(chunk)
  return stream.usage
}

t.test('of a stream the last usage counts', async t => {
  const rows: readonly [name: string, chunks: readonly JsonObject[], expected: unknown][] = [
    ['none', [{ choices: [delta()] }, { choices: [delta(0, 'stop')], usage: null }], null],
    [
      'null on every chunk but the last',
      [
        { choices: [delta()], usage: null },
        { choices: [delta(0, 'stop')], usage: null },
        { choices: [], usage: tokens(19, 10) },
      ],
      usage(19, 10),
    ],
    [
      'zeros first (Ollama)',
      [
        { choices: [delta()], usage: tokens(0, 0) },
        { choices: [delta(0, 'stop')], usage: tokens(19, 10) },
      ],
      usage(19, 10),
    ],
    [
      'running totals (vLLM)',
      [
        { choices: [delta()], usage: tokens(19, 1) },
        { choices: [delta(0, 'stop')], usage: tokens(19, 2) },
        { choices: [], usage: tokens(19, 2) },
      ],
      usage(19, 2),
    ],
    ['x_groq', [{ choices: [delta(0, 'stop')], x_groq: { id: 'r', usage: tokens(19, 10) } }], usage(19, 10)],
    [
      'a null after it takes nothing away',
      [
        { choices: [], usage: tokens(19, 10) },
        { choices: [], usage: null },
      ],
      usage(19, 10),
    ],
    [
      'nor does one that can not be',
      [
        { choices: [], usage: tokens(19, 10) },
        { choices: [], usage: tokens(-1, 2) },
      ],
      usage(19, 10),
    ],
    [
      'the same usage twice',
      [{ choices: [delta(0, 'stop')] }, { choices: [], usage: tokens(19, 10) }, { choices: [], usage: tokens(19, 10) }],
      usage(19, 10),
    ],
    ['a chunk without choices', [{ usage: tokens(19, 10) }], usage(19, 10)],
  ]
  for (const [name, chunks, expected] of rows) t.strictSame(collected(chunks), expected, name)
})

t.test('usage-only chunks that each close one choice are added up', async t => {
  t.strictSame(
    collected([
      { choices: [delta(1)] },
      { choices: [delta(0)] },
      { choices: [delta(1, 'stop')] },
      { choices: [], usage: { ...tokens(19, 10), prompt_tokens_details: { cached_tokens: 4 } } },
      { choices: [delta(0)] },
      { choices: [delta(0, 'length')] },
      { choices: [], usage: { ...tokens(19, 32), prompt_tokens_details: { cached_tokens: 18 } } },
    ]),
    usage(19, 42, 18),
    'llama.cpp, n = 2',
  )
  t.strictSame(
    collected([{ choices: [delta(0, 'stop')] }, { choices: [delta(1, 'stop')] }, { choices: [], usage: tokens(19, 42) }]),
    usage(19, 42),
    'one for all choices',
  )
  t.strictSame(
    collected([
      { choices: [delta(0), delta(1)] },
      { choices: [], usage: tokens(19, 2) },
      { choices: [delta(0, 'stop')] },
      { choices: [], usage: tokens(19, 3) },
      { choices: [delta(1, 'stop')] },
      { choices: [], usage: tokens(19, 9) },
    ]),
    usage(19, 9),
    'running totals of all choices in chunks of their own',
  )
})

t.test('what comes to a sum is not kept, however often it is reported', async t => {
  const stream = new StreamUsage({ strict: false })
  const chunk = { choices: [], usage: tokens(19, 10) }
  stream.add(chunk)
  const before = heap()
  for (let i = 0; i < 100_000; i++) stream.add(chunk)
  const more = heap() - before
  t.ok(more < 1_000_000, `${more} bytes`)
  t.strictSame(stream.usage, usage(19, 10))
})
