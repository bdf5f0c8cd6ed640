import { deepStrictEqual, strictEqual } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import chatCompletions from '../../src/endpoints/chat-completions.js'
import { GatewayError } from '../../src/errors.js'
import type { JsonObject } from '../../src/json.js'
import { familyOf, textTokens } from '../../src/metering/estimate.js'
import { Tally } from '../../src/metering/tally.js'
import anthropic from '../../src/upstream/providers/anthropic.js'
import cohere from '../../src/upstream/providers/cohere.js'
import gemini from '../../src/upstream/providers/gemini.js'
import mistral from '../../src/upstream/providers/mistral.js'
import { type Provider, ProviderFailure, type Wire } from '../../src/upstream/providers/provider.js'
import { type AnswerStream, ErrorEvent } from '../../src/upstream/stream.js'
import { CALL, CHAT, chunksIn, framed, tell, telling } from '../support/answer-stream.js'
import { inTwo, singly } from '../support/sse-reference.js'
import { fixture } from '../support/sse-split.js'
import { brokenRules } from '../support/stream-rules.js'

const MODEL = CALL.model.id
const FAMILY = familyOf(CALL.model)
const HEAD = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1_700_000_000, model: MODEL }
const USAGE = { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 }

const choice = (delta: unknown, finish_reason: string | null = null, index = 0) => ({ index, delta, logprobs: null, finish_reason })
const chunk = (...choices: unknown[]) => ({ ...HEAD, choices })
const usage = (counts: object = USAGE) => ({ ...HEAD, choices: [], usage: counts })
const START = chunk(choice({ role: 'assistant', content: '' }))
const STOP = chunk(choice({}, 'stop'))

/** As a server that obeys the rules writes it, with all that a rewriting gateway would lose. */
const LAWFUL = `: OPENROUTER PROCESSING

data: {"choices":[{"delta":{"role":"assistant","content":null},"index":0,"finish_reason":null}],"created":1700000000, "id":"chatcmpl-abc" ,"model":"NAME","object":"chat.completion.chunk","system_fingerprint":null}

data: {"id":"chatcmpl-abc","object":"chat.completion.chunk","created":1700000000,"model":"NAME","choices":[{"index":0,"delta":{"content":"\\u0633لام 👋 \\"model\\":\\"x\\""},"logprobs":{"content":[{"token":"a","logprob":-1.0,"bytes":[1]}]},"finish_reason":null}],"obfuscation":"x\\/y","big":12345678901234567890,"huge":1e400}

data: {"id":"chatcmpl-abc","object":"chat.completion.chunk","created":1700000000,"model":"NAME","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":""}}]},"finish_reason":null}],"usage":null}

data: {"id":"chatcmpl-abc","object":"chat.completion.chunk","created":1700000000,"model":"NAME","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"a\\":1.0}"}}]},"finish_reason":null}]}

data: {"id":"chatcmpl-abc","object":"chat.completion.chunk","created":1700000000,"model":"NAME","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"x_more":{"model":"inner","id":7}}

: two

data: {"id":"chatcmpl-abc","object":"chat.completion.chunk","created":1700000000,"model":"NAME","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"cost":0.10}}

`

t.test('a stream that obeys the rules passes byte for byte, with nothing changed but the model', async t => {
  const sent = Buffer.from(`${LAWFUL.replaceAll('NAME', 'model-1')}data: [DONE]\n\n`)
  const expected = LAWFUL.replaceAll('NAME', MODEL)
  const whole = tell([sent])
  t.equal(whole.text, expected)
  t.equal(whole.ended, 'done')
  t.strictSame(brokenRules(chunksIn(whole.text)), ['chunk 5 reports cost as 0.1'], 'but for what the provider adds')
  t.equal(tell([LAWFUL.replaceAll('NAME', MODEL)]).text, expected, 'not even the model where it is right, nor is [DONE] needed')
  t.strictSame(tell(singly(sent)), whole, 'byte by byte')
  let same = 0
  for (const pieces of inTwo(sent)) if (JSON.stringify(tell(pieces)) === JSON.stringify(whole)) same++
  t.equal(same, sent.length + 1, 'cut in two at every byte')
})

t.test('an id of the wrong shape is replaced, the same in every chunk; nothing else changes', async t => {
  const id = `chatcmpl-${CALL.id}`
  const given = LAWFUL.replaceAll('NAME', MODEL)
  t.equal(tell([given.replaceAll('chatcmpl-abc', 'gen-17')]).text, given.replaceAll('chatcmpl-abc', id))
  for (const first of [null, 7, '', 'chatcmpl-', 'cmpl-1', undefined]) {
    const told = chunksIn(
      tell([
        framed([
          { ...START, id: first },
          { ...STOP, id: 'chatcmpl-late' },
        ]),
      ]).text,
    )
    t.strictSame(
      told.map(chunk => chunk.id),
      [id, id],
    )
  }
  const changing = chunksIn(
    tell([
      framed([
        { ...START, id: 'chatcmpl-a' },
        { ...STOP, id: 'chatcmpl-b' },
      ]),
    ]).text,
  )
  t.strictSame(
    changing.map(chunk => chunk.id),
    ['chatcmpl-a', 'chatcmpl-a'],
  )
})

t.test('any line endings, several data lines and named events are told as one line each', async t => {
  const expected = framed([START, STOP], false)
  t.equal(tell([framed([START, STOP]).replaceAll('\n', '\r\n')]).text, expected)
  t.equal(tell([framed([START, STOP]).replaceAll('\n', '\r')]).text, expected)
  t.equal(tell([`\uFEFF${framed([START, STOP])}`]).text, expected)
  t.equal(tell([`id: 1\nretry: 3\nevent: message\n${framed([START, STOP])}`]).text, expected)
  const pretty = JSON.stringify(START, null, 1)
  t.equal(
    tell([`${pretty.replaceAll(/^/gm, 'data: ')}\n\n${framed([STOP])}`]).text,
    framed([pretty.replaceAll('\n', ' '), STOP], false),
    'the line breaks become spaces',
  )
})

t.test('the usage chunk: last, for who asked for it, and for nobody else', async t => {
  const rows: [name: string, sent: unknown[], includeUsage: boolean, told: unknown[]][] = [
    ['asked for', [START, STOP, usage()], true, [START, STOP, usage()]],
    ['not asked for', [START, STOP, usage()], false, [START, STOP]],
    ['usage beside choices stays', [START, { ...STOP, usage: USAGE }], false, [START, { ...STOP, usage: USAGE }]],
    ['null everywhere stays', [{ ...START, usage: null }, STOP], false, [{ ...START, usage: null }, STOP]],
    [
      'no choices and no usage passes',
      [{ ...HEAD, choices: [], prompt_filter_results: [] }, START, STOP],
      false,
      [{ ...HEAD, choices: [], prompt_filter_results: [] }, START, STOP],
    ],
    ['before the last choice has finished', [START, usage({ early: 1 }), STOP], true, [START, STOP, usage({ early: 1 })]],
    ['twice: the last counts', [START, usage({ early: 1 }), STOP, usage()], true, [START, STOP, usage()]],
    [
      'something behind it',
      [START, STOP, usage(), { ...HEAD, choices: [], late: 1 }],
      true,
      [START, STOP, { ...HEAD, choices: [], late: 1 }, usage()],
    ],
    [
      'where Groq tells it',
      [START, { ...STOP, x_groq: { id: 'req_1', usage: USAGE } }],
      true,
      [START, { ...STOP, x_groq: { id: 'req_1', usage: USAGE } }, usage()],
    ],
    [
      'where Groq tells it, not asked for',
      [START, { ...STOP, x_groq: { usage: USAGE } }],
      false,
      [START, { ...STOP, x_groq: { usage: USAGE } }],
    ],
    [
      'there and in a chunk of its own',
      [START, { ...STOP, x_groq: { usage: {} } }, usage()],
      true,
      [START, { ...STOP, x_groq: { usage: {} } }, usage()],
    ],
    ['choices missing', [START, STOP, { ...HEAD, usage: USAGE }], true, [START, STOP, { ...HEAD, usage: USAGE, choices: [] }]],
    ['choices missing, not asked for', [START, STOP, { ...HEAD, usage: USAGE }], false, [START, STOP]],
  ]
  for (const [name, sent, includeUsage, expected] of rows) {
    const told = tell([framed(sent)], { includeUsage })
    t.equal(told.text, framed(expected, false), name)
    t.equal(told.ended, 'done', name)
    t.equal(told.metered.length, sent.length, `${name}: all of it is metered`)
  }
})

t.test('where usage is reported choice by choice, what all came to is told, as it is billed; other figures stay as they came', async t => {
  const two = [chunk(choice({ role: 'assistant', content: 'b' }, null, 1)), START]
  const [first, second] = [STOP, chunk(choice({}, 'stop', 1))]
  const details = { prompt_tokens_details: { cached_tokens: 4, audio_tokens: 0 }, completion_tokens_details: { reasoning_tokens: 1 } }
  const each = tell([framed([...two, first, usage({ ...USAGE, ...details }), second, usage({ ...USAGE, ...details, cost: 3 })])])
  t.strictSame(
    chunksIn(each.text).at(-1),
    usage({
      prompt_tokens: 9,
      completion_tokens: 4,
      total_tokens: 13,
      prompt_tokens_details: { cached_tokens: 4, audio_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 2 },
      cost: 3,
    }),
    'llama.cpp, n = 2',
  )
  t.strictSame(chunksIn(each.text).length, 5, 'once')
  const plain = tell([framed([...two, first, usage(), second, usage()])])
  t.strictSame(chunksIn(plain.text).at(-1), usage({ prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 }))
  const together = tell([framed([...two, first, second, usage()])])
  t.strictSame(chunksIn(together.text).at(-1), usage(), 'one for both')
  const running = tell([framed([...two, usage({ prompt_tokens: 9, completion_tokens: 1 }), first, usage(), second, usage()])])
  t.strictSame(chunksIn(running.text).at(-1), usage(), 'running totals')
})

t.test('each rule of the stream is kept where a provider breaks it', async t => {
  const call = (fields: object) => chunk(choice({ tool_calls: [fields] }))
  const calls = (...fields: object[]) => [START, ...fields.map(call), chunk(choice({}, 'tool_calls'))]
  const made = (index: number) => `call_${CALL.id}_0_${index}`
  const rows: [name: string, sent: unknown[], told: unknown[]][] = [
    [
      'the role is added to the first delta',
      [chunk(choice({ content: 'a' })), STOP],
      [chunk(choice({ content: 'a', role: 'assistant' })), STOP],
    ],
    ['an empty role is none', [chunk(choice({ role: '' })), STOP], [chunk(choice({ role: 'assistant' })), STOP]],
    [
      'the role is told once',
      [START, chunk(choice({ role: 'assistant', content: 'a' })), STOP],
      [START, chunk(choice({ content: 'a' })), STOP],
    ],
    ['a null role too', [START, chunk(choice({ role: null })), STOP], [START, chunk(choice({})), STOP]],
    [
      'no delta',
      [START, { ...HEAD, choices: [{ index: 0, finish_reason: 'stop' }] }],
      [START, { ...HEAD, choices: [{ index: 0, finish_reason: 'stop', delta: {} }] }],
    ],
    [
      'no index',
      [{ ...HEAD, choices: [{ delta: { role: 'assistant' } }] }, STOP],
      [{ ...HEAD, choices: [{ delta: { role: 'assistant' }, index: 0 }] }, STOP],
    ],
    ['one finish', [START, STOP, STOP], [START, STOP, chunk(choice({}))]],
    ['"" is no finish', [chunk(choice({ role: 'assistant' }, '')), STOP], [chunk(choice({ role: 'assistant' })), STOP]],
    [
      'id, type and name once',
      calls(
        { index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '' } },
        { index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } },
      ),
      calls({ index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '' } }, { index: 0, function: { arguments: '{}' } }),
    ],
    [
      'a name that comes in pieces',
      calls(
        { index: 0, id: 'c', type: 'function', function: { name: 'get_', arguments: '' } },
        { index: 0, function: { name: 'weather', arguments: '' } },
        { index: 0, function: { name: 'get_weather', arguments: '{}' } },
      ),
      calls(
        { index: 0, id: 'c', type: 'function', function: { name: 'get_', arguments: '' } },
        { index: 0, function: { name: 'weather', arguments: '' } },
        { index: 0, function: { arguments: '{}' } },
      ),
    ],
    [
      'no index: each id is a call',
      calls(
        { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } },
        { id: 'd', type: 'function', function: { name: 'f', arguments: '{' } },
        { function: { arguments: '}' } },
      ),
      calls(
        { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' }, index: 0 },
        { id: 'd', type: 'function', function: { name: 'f', arguments: '{' }, index: 1 },
        { function: { arguments: '}' }, index: 1 },
      ),
    ],
    [
      'neither index nor id: each name is a call',
      calls(
        { type: 'function', function: { name: 'f', arguments: '{' } },
        { function: { arguments: '}' } },
        { type: 'function', function: { name: 'g', arguments: '{}' } },
      ),
      calls(
        { type: 'function', function: { name: 'f', arguments: '{' }, index: 0, id: made(0) },
        { function: { arguments: '}' }, index: 0 },
        { type: 'function', function: { name: 'g', arguments: '{}' }, index: 1, id: made(1) },
      ),
    ],
    [
      'all calls are numbered 0',
      calls(
        { index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } },
        { index: 0, id: 'd', type: 'function', function: { name: 'g', arguments: '{' } },
        { index: 0, function: { arguments: '}' } },
      ),
      calls(
        { index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } },
        { index: 1, id: 'd', type: 'function', function: { name: 'g', arguments: '{' } },
        { index: 1, function: { arguments: '}' } },
      ),
    ],
    [
      'a new id in every delta of one call',
      calls(
        { index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '{' } },
        { index: 0, id: 'd', type: 'function', function: { arguments: '}' } },
      ),
      calls({ index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '{' } }, { index: 0, function: { arguments: '}' } }),
    ],
    [
      'indices from 1, with gaps',
      calls(
        { index: 1, id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } },
        { index: 5, id: 'd', type: 'function', function: { name: 'g', arguments: '' } },
        { index: 5, function: { arguments: '{}' } },
      ),
      calls(
        { index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } },
        { index: 1, id: 'd', type: 'function', function: { name: 'g', arguments: '' } },
        { index: 1, function: { arguments: '{}' } },
      ),
    ],
    [
      'no id, no type, no arguments',
      calls({ index: 0, function: { name: 'f' } }),
      calls({ index: 0, function: { name: 'f', arguments: '' }, id: made(0), type: 'function' }),
    ],
    [
      'arguments that are an object',
      calls({ index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: { a: [1] } } }),
      calls({ index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '{"a":[1]}' } }),
    ],
  ]
  for (const [name, sent, expected] of rows) {
    const told = tell([framed(sent)])
    t.strictSame(chunksIn(told.text), expected, name)
    t.strictSame(
      brokenRules(chunksIn(told.text)).filter(rule => !rule.endsWith('after its finish_reason')),
      [],
      name,
    )
  }
  const late = tell([
    framed(
      calls({ index: 0, id: 'c', type: 'function', function: { arguments: '' } }, { index: 0, function: { name: 'f', arguments: '{}' } }),
    ),
  ])
  t.match(
    chunksIn(late.text)[2],
    { choices: [{ delta: { tool_calls: [{ index: 0, function: { name: 'f' } }] } }] },
    'a late name is not lost',
  )
})

t.test('several choices, each with its own role, calls and finish', async t => {
  const named = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }
  const sent = [
    chunk(choice({ role: 'assistant' }, null, 1), choice({ role: 'assistant' }, null, 0)),
    chunk(choice({ tool_calls: [{ index: 3, ...named }] }, null, 1)),
    chunk(choice({}, 'tool_calls', 1)),
    usage({ prompt_tokens: 1 }),
    chunk(choice({ role: 'assistant', tool_calls: [{ index: 0, ...named }] }, null, 0)),
    chunk(choice({}, 'stop', 0)),
    usage(),
  ]
  const told = tell([framed(sent)])
  t.equal(told.ended, 'done')
  t.strictSame(brokenRules(chunksIn(told.text)), [])
  t.strictSame(chunksIn(told.text).at(-1), usage())
})

t.test('choices and calls without end are a failure', async t => {
  const many = (count: number, one: (i: number) => object) => Array.from({ length: count }, (_, i) => one(i))
  const candidate = (index: number) => ({ candidates: [{ index }] })
  const rows: [name: string, ended: 'done' | 'failed', sent: object[], provider?: Provider][] = [
    ['as many choices as can be asked for', 'done', many(128, i => chunk(choice({}, 'stop', i)))],
    ['one more', 'failed', many(129, i => chunk(choice({}, 'stop', i)))],
    ['one below', 'failed', [START, chunk(choice({}, 'stop', -1)), STOP]],
    ['calls', 'failed', [START, ...many(1025, i => chunk(choice({ tool_calls: [{ index: i }] }))), STOP]],
    ['calls by their ids', 'failed', [START, ...many(1025, i => chunk(choice({ tool_calls: [{ id: `c${i}` }] }))), STOP]],
    ['candidates that say nothing', 'failed', many(129, i => candidate(i)), gemini],
  ]
  for (const [name, ended, sent, provider] of rows) {
    const { stream, told } = telling(provider === undefined ? {} : { wire: provider.wires.chat as Wire })
    stream.push(Buffer.from(framed(sent, false)))
    t.equal(told.ended, ended === 'failed' ? 'failed' : null, name)
    stream.push(Buffer.from(framed([])))
    t.equal(told.ended, ended, name)
  }
})

t.test('whatever a provider sends, what the client gets obeys the rules', async () => {
  const some = <T>(value: T) => fc.constantFrom(value)
  const toolCall = fc.record(
    {
      index: fc.constantFrom(0, 1, 2, 5, null),
      id: fc.constantFrom('a', 'b', '', null),
      type: fc.constantFrom('function', null),
      function: fc.record(
        { name: fc.constantFrom('f', 'g', '', null), arguments: fc.constantFrom('', '{', '}', { a: 1 }, null) },
        { requiredKeys: [] },
      ),
    },
    { requiredKeys: ['function'] },
  )
  const delta = fc.record(
    {
      role: fc.constantFrom('assistant', '', null),
      content: fc.constantFrom('', 'x', null),
      tool_calls: fc.array(toolCall, { maxLength: 3 }),
    },
    { requiredKeys: [] },
  )
  const choices = fc.array(
    fc.record(
      { index: fc.constantFrom(0, 1), delta: fc.oneof(delta, some(null)), finish_reason: fc.constantFrom(null, null, '') },
      { requiredKeys: ['index'] },
    ),
    { minLength: 1, maxLength: 2 },
  )
  const body = fc.oneof(
    { weight: 8, arbitrary: choices.map(given => ({ ...HEAD, choices: given }) as JsonObject) },
    { weight: 1, arbitrary: some(usage() as JsonObject) },
  )
  const sent = fc.array(body, { maxLength: 12 }).map(chunks => [...chunks, chunk(choice({}, 'stop'), choice({}, 'length', 1)), usage()])
  // A name that comes late, or never, can not be told in time; and arguments may be missing behind the first delta.
  const known = /begins a call without id, type and name|has arguments that are no string|repeats the id, type or name of a call/
  fc.assert(
    fc.property(sent, chunks => {
      const told = tell([framed(chunks)])
      strictEqual(told.ended, 'done')
      deepStrictEqual(
        brokenRules(chunksIn(told.text)).filter(rule => !known.test(rule)),
        [],
      )
      deepStrictEqual(repeated(chunksIn(told.text)), [])
    }),
    { numRuns: 1000 },
  )
})

/** Calls whose id, type or whole name are told more than once. */
function repeated(chunks: readonly JsonObject[]): string[] {
  const told: string[] = []
  const names = new Map<string, string>()
  for (const { choices } of chunks as unknown as { choices: { index: number; delta: { tool_calls?: JsonObject[] } }[] }[]) {
    for (const { index, delta } of choices) {
      for (const { index: place, id, type, function: fn } of delta.tool_calls ?? []) {
        const call = `choice ${index} call ${place}`
        if (id !== undefined) told.push(`${call} id`)
        if (type !== undefined) told.push(`${call} type`)
        const name = (fn as JsonObject | undefined)?.name
        if (name === undefined) continue
        if (name === names.get(call)) told.push(`${call} name`, `${call} name`)
        names.set(call, (names.get(call) ?? '') + name)
      }
    }
  }
  return told.filter((one, position) => told.indexOf(one) !== position)
}

t.test('how a stream ends', async t => {
  const told = framed([START, STOP], false)
  const rows: [name: string, sent: string, ended: 'done' | 'failed', told: string][] = [
    ['[DONE]', framed([START, STOP]), 'done', told],
    ['no [DONE], but a finish', told, 'done', told],
    ['[DONE] with spaces', `${told}data:  [DONE] \n\n`, 'done', told],
    ['[DONE] without its blank line', `${told}data: [DONE]`, 'done', told],
    ['a second completion after [DONE]', framed([START, STOP]) + framed([{ ...START, id: 'chatcmpl-2' }, STOP]), 'done', told],
    ['comments after [DONE]', `${framed([START, STOP])}: bye\n\n`, 'done', told],
    ['an error after [DONE]', framed([START, STOP]) + framed([{ error: { message: 'x' } }]), 'done', told],
    ['no finish', framed([START], false), 'failed', framed([START], false)],
    ['no finish, but [DONE]', framed([START]), 'failed', framed([START], false)],
    [
      'one choice of two has no finish',
      framed([START, chunk(choice({}, 'stop', 1))]),
      'failed',
      framed([START, chunk(choice({ role: 'assistant' }, 'stop', 1))], false),
    ],
    ['nothing at all', '', 'failed', ''],
    ['only [DONE]', framed([]), 'failed', ''],
    ['only comments', ': a\n\n: b\n\n', 'failed', ': a\n\n: b\n\n'],
    ['an event that is no JSON', framed([START, '{"id":']), 'failed', framed([START], false)],
    ['an event that is no object', framed([START, '[1]']), 'failed', framed([START], false)],
    ['no JSON, behind the last finish', framed([START, STOP, 'bye']), 'done', told],
    ['[done], behind the last finish', framed([START, STOP, '[done]'], false), 'done', told],
    ['a string, behind the last finish', `${told}event: done\ndata: "[DONE]"\n\n`, 'done', told],
    ['no JSON, but named error', `${told}event: error\ndata: no\n\n`, 'failed', told],
    ['half an event, behind the last finish', `${told}data: {"id":`, 'done', told],
    [
      'no JSON, before the last of two has finished',
      framed([chunk(choice({ role: 'assistant' }), choice({ role: 'assistant' }, 'stop', 1)), 'bye', STOP]),
      'failed',
      framed([chunk(choice({ role: 'assistant' }), choice({ role: 'assistant' }, 'stop', 1))], false),
    ],
    ['an error event behind the last finish', framed([START, STOP, { error: { message: 'x' } }]), 'failed', told],
    ['an error event', framed([START, { error: { message: 'x' } }]), 'failed', framed([START], false)],
    ['an error beside choices', framed([START, { ...STOP, error: { message: 'x' } }]), 'failed', framed([START], false)],
    ['an event that is named error', `${framed([START], false)}event: error\ndata: {"message":"x"}\n\n`, 'failed', framed([START], false)],
    ...[null, false, ''].map((error): [string, string, 'done', string] => {
      const chunks = [
        { ...START, error },
        { ...STOP, error },
      ]
      return [`error: ${JSON.stringify(error)} is none`, framed(chunks), 'done', framed(chunks, false)]
    }),
    [
      'error: {} beside choices is none, and not told',
      framed([
        { ...START, error: {} },
        { ...STOP, error: {} },
      ]),
      'done',
      told,
    ],
    ['error: {} alone', framed([START, { error: {} }]), 'failed', framed([START], false)],
  ]
  for (const [name, sent, ended, text] of rows) {
    for (const pieces of [[Buffer.from(sent)], [...singly(Buffer.from(sent))]]) {
      const { ended: how, text: got, error } = tell(pieces)
      t.strictSame([how, got], [ended, text], name)
      if (how === 'failed') t.ok(error instanceof ProviderFailure || error instanceof ErrorEvent, name)
    }
  }
})

t.test('cut off from outside, a stream has failed; unless every choice had finished', async t => {
  const broken = new GatewayError('upstream_error', 'The connection broke.')
  const running = telling()
  running.stream.push(Buffer.from(framed([START], false)))
  running.stream.fail(broken)
  t.strictSame([running.told.ended, running.told.error], ['failed', broken])
  const finished = telling()
  finished.stream.push(Buffer.from(`${framed([START, STOP, usage()], false)}data: {"half`))
  finished.stream.fail(broken)
  t.strictSame([finished.told.ended, finished.told.text], ['done', framed([START, STOP, usage()], false)])
  const cut = telling()
  cut.stream.push(Buffer.from(framed([START, STOP], false)))
  cut.stream.fail(new GatewayError('client_closed', 'Gone.'))
  t.equal(cut.told.ended, 'failed', 'not where we cut it ourselves')
  for (const { stream, told } of [running, finished, cut]) {
    stream.push(Buffer.from(framed([START])))
    stream.end()
    stream.fail(new Error('again'))
    t.ok(told.ended, 'the end comes once')
  }
})

t.test('a translated stream ends when its provider says so, whatever its body does', async t => {
  const rows: [Provider, string][] = [
    [anthropic, 'anthropic/tools.stream.provider.sse'],
    [cohere, 'cohere/chat-tools.provider.sse'],
  ]
  for (const [provider, name] of rows) {
    const wire = provider.wires.chat as Wire
    const { stream, told } = telling({ wire })
    stream.push(fixture(name))
    t.equal(told.ended, 'done', provider.kind)
    stream.push(Buffer.from('event: ping\ndata: {"type": "ping"}\n\n'))
    stream.end()
    t.equal(told.text, tell([fixture(name)], { wire }).text)
    t.match(chunksIn(told.text).at(-1), { choices: [], usage: { total_tokens: Number } })
  }
})

t.test('a translated stream that is cut off is billed by what its provider had reported until then', async t => {
  const hi = { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello there' } }
  const start = (usage: object) => ({ type: 'message_start', message: { id: 'msg_1', usage } })
  const said = (usageMetadata?: object) => ({ candidates: [{ content: { parts: [{ text: 'Hello there' }] }, index: 0 }], usageMetadata })
  const beside = { ...START, usage: { prompt_tokens: 60, completion_tokens: 3000, total_tokens: 3060 } }
  const counted = textTokens('Hello there', FAMILY)
  const rows: [name: string, provider: Provider, events: object[], expected: object][] = [
    [
      'input at its start',
      anthropic,
      [start({ input_tokens: 50_000, cache_read_input_tokens: 400, output_tokens: 1 }), hi],
      { input: 50_400, cached: 400, output: counted, source: 'counted' },
    ],
    ['nothing at its start', anthropic, [start({}), hi], { input: 7, output: counted }],
    ['a start that can not be', anthropic, [start({ input_tokens: -1 }), hi], { input: 7, output: counted }],
    [
      'thoughts on its way',
      gemini,
      [said({ promptTokenCount: 60, candidatesTokenCount: 2, thoughtsTokenCount: 3000, totalTokenCount: 3062 }), said()],
      { input: 60, output: 3002, reasoning: 3000, source: 'counted' },
    ],
    ['input alone', gemini, [said({ promptTokenCount: 60, totalTokenCount: 60 })], { input: 60, output: counted }],
    ['figures without input', gemini, [said({})], { input: 7, output: counted }],
    ['running totals', mistral, [beside], { input: 60, output: 3000, source: 'counted' }],
  ]
  for (const [name, provider, events, expected] of rows) {
    const billed = (end: (stream: AnswerStream) => void) => {
      const { stream, told } = telling({ wire: provider.wires.chat as Wire })
      for (const event of events) stream.push(Buffer.from(framed([event], false)))
      end(stream)
      t.equal(told.ended, 'failed')
      const tally = new Tally(chatCompletions, FAMILY, false)
      for (const chunk of told.metered) tally.add(chunk)
      return tally.usage({ input: 7, factor: 1 }, false)
    }
    t.match(
      billed(stream => stream.fail(new GatewayError('client_closed', 'Gone.'))),
      expected,
      `${provider.kind}: ${name}, left`,
    )
    t.match(
      billed(stream => stream.end()),
      expected,
      `${provider.kind}: ${name}, ended early`,
    )
  }
})

t.test('until a sink is there, what is ready waits but for comments, and whether it has begun can be asked', async t => {
  const silent = telling({ attached: false })
  t.equal(silent.stream.begun, false)
  silent.stream.push(Buffer.from(': ping\n\n'))
  t.equal(silent.stream.begun, false, 'a comment is no beginning')
  silent.stream.push(Buffer.from(framed([START], false)))
  t.equal(silent.stream.begun, true)
  t.equal(silent.stream.failedAtOnce, null)
  silent.stream.push(Buffer.from(framed([STOP])))
  t.equal(silent.told.text, '')
  silent.attach()
  t.strictSame(silent.told, {
    text: framed([START, STOP], false),
    ended: 'done',
    error: null,
    observed: [START, STOP],
    metered: [START, STOP],
  })
  const failing = telling({ attached: false })
  failing.stream.push(Buffer.from(`: ping\n\n${framed([{ error: { message: 'x' } }])}`))
  t.ok(failing.stream.begun && failing.stream.over)
  t.ok(failing.stream.failedAtOnce instanceof ErrorEvent)
  const failingLate = telling({ attached: false })
  failingLate.stream.push(Buffer.from(framed([START, { error: { message: 'x' } }])))
  t.equal(failingLate.stream.failedAtOnce, null, 'something can be told before the failure')
})

t.test('a whole answer is retold as a stream', async t => {
  const message = {
    role: 'assistant',
    content: null,
    refusal: null,
    tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
  }
  const { stream, told } = telling()
  stream.retell({
    id: 'chatcmpl-9',
    object: 'chat.completion',
    created: 5,
    model: MODEL,
    choices: [{ index: 0, message, logprobs: null, finish_reason: 'tool_calls' }, { message: { content: 'b', reasoning_content: 'r' } }],
    usage: USAGE,
  })
  const chunks = chunksIn(told.text)
  t.strictSame(brokenRules(chunks), [])
  t.equal(told.ended, 'done')
  const head = { id: 'chatcmpl-9', object: 'chat.completion.chunk', created: 5, model: MODEL }
  const { refusal: _, ...delta } = message
  t.strictSame(chunks, [
    { ...head, choices: [choice({ ...delta, tool_calls: [{ index: 0, ...message.tool_calls[0] }] })] },
    { ...head, choices: [choice({}, 'tool_calls')] },
    { ...head, choices: [choice({ content: 'b', reasoning_content: 'r', role: 'assistant' }, null, 1)] },
    { ...head, choices: [choice({}, 'stop', 1)] },
    { ...head, choices: [], usage: USAGE },
  ])
})

t.test('a translated stream: the chunks of the translation, its end, its failures', async t => {
  const events: Wire['events'] = () => ({
    event: ({ event, data }) => (event === 'text' ? [{ choices: [choice({ content: data })] } as JsonObject] : []),
    end: () => [{ choices: [choice({}, 'stop')] } as JsonObject, { choices: [], usage: USAGE }],
  })
  const wire: Wire = { ...CHAT, events }
  const told = tell(['event: text\ndata: a\n\nevent: other\ndata: b\n\n'], { wire })
  const head = { id: `chatcmpl-${CALL.id}`, object: 'chat.completion.chunk', created: CALL.created, model: MODEL }
  const expected = [
    { choices: [choice({ content: 'a', role: 'assistant' })], ...head },
    { choices: [choice({}, 'stop')], ...head },
    { choices: [], usage: USAGE, ...head },
  ]
  t.strictSame([told.ended, chunksIn(told.text)], ['done', expected])
  t.strictSame(tell(['event: text\ndata: a\n\ndata: [DONE]\n\nevent: text\ndata: c\n\n'], { wire }).text, told.text)
  const failure = new ProviderFailure({ status: 529, message: 'busy' })
  const failing: Wire = {
    ...CHAT,
    events: () => ({
      event: () => [],
      end: () => {
        throw failure
      },
    }),
  }
  t.strictSame(tell(['data: x\n\n'], { wire: failing }).error, failure)
})
