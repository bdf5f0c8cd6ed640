import t from 'tap'
import type { JsonObject } from '../../../src/json.js'
import { Chunks } from '../../../src/upstream/chat/chunks.js'
import { callOf } from '../../support/calls.js'
import { brokenRules } from '../../support/stream-rules.js'

const call = callOf('a/b', {})
const HEAD = { id: `chatcmpl-${call.id}`, object: 'chat.completion.chunk', created: 1_700_000_000, model: 'a/b' }

t.test('is named by the provider until something has been told', async t => {
  const chunks = new Chunks(call)
  chunks.name('one')
  chunks.name('two')
  chunks.open(0)
  chunks.name('three')
  chunks.finish(0, 'stop')
  t.strictSame(
    chunks.take().map(({ id }) => id),
    ['chatcmpl-two', 'chatcmpl-two'],
  )
})

t.test('tells the role first, whatever comes first', async t => {
  for (const begin of [
    (chunks: Chunks) => chunks.text(0, 'x'),
    (chunks: Chunks) => chunks.reasoning(0, 'x'),
    (chunks: Chunks) => chunks.tool(0, { id: 'c', name: 'f', arguments: '' }),
    (chunks: Chunks) => chunks.finish(0, 'stop'),
  ]) {
    const chunks = new Chunks(call)
    begin(chunks)
    t.strictSame(brokenRules(chunks.take(), { whole: false }), [])
  }
})

t.test('tells nothing of empty text, and finishes a choice once', async t => {
  const chunks = new Chunks(call)
  chunks.text(0, '')
  chunks.reasoning(0, '')
  t.equal(chunks.begun, false)
  chunks.finish(0, 'length')
  chunks.finish(0, 'stop')
  t.strictSame(chunks.take(), [
    { ...HEAD, choices: [{ index: 0, delta: { role: 'assistant', content: '' }, logprobs: null, finish_reason: null }] },
    { ...HEAD, choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: 'length' }] },
  ])
  t.strictSame(chunks.take(), [])
})

t.test('adds arguments to no call but those that were begun', async t => {
  const chunks = new Chunks(call)
  t.throws(() => chunks.toolArguments(1, 0, 'x'), RangeError)
  t.equal(chunks.tool(1, { id: 'c', name: 'f', arguments: '' }), 0)
  t.throws(() => chunks.toolArguments(1, 1, 'x'), RangeError)
})

/** The reader of the rules must itself be able to say no: one way to break each of them. */
const choice = (delta: unknown, more: JsonObject = {}) => ({ ...HEAD, choices: [{ index: 0, delta, finish_reason: null, ...more }] })
const first = choice({ role: 'assistant', content: '' })
const last = choice({}, { finish_reason: 'stop' })
const usage = { ...HEAD, choices: [], usage: { prompt_tokens: 1 } }
const toolCall = (fields: JsonObject) =>
  choice({ tool_calls: [{ index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '' }, ...fields }] })
for (const [name, chunks] of [
  ['no role', [choice({ content: 'x' }), last]],
  ['the role twice', [first, first, last]],
  ['an empty role', [choice({ role: '' }), last]],
  ['no end', [first]],
  ['two ends', [first, last, last]],
  ['text after the end', [first, last, choice({ content: 'x' })]],
  ['an unknown end', [first, choice({}, { finish_reason: 'done' })]],
  ['no choices', [{ ...HEAD, usage: {} }, first, last]],
  ['neither choices nor usage', [first, last, { ...HEAD, choices: [] }]],
  ['no delta', [first, choice(undefined, { finish_reason: 'stop' })]],
  ['a choice without index', [first, last, { ...HEAD, choices: [{ delta: {} }] }]],
  ['text that is none', [first, choice({ content: 7 }), last]],
  ['usage before the end', [first, usage, last]],
  ['usage twice', [first, last, usage, usage]],
  ['negative usage', [first, last, { ...usage, usage: { prompt_tokens: -1 } }]],
  ['usage in fractions', [first, last, { ...usage, usage: { completion_tokens_details: { reasoning_tokens: 0.5 } } }]],
  ['another id', [first, { ...last, id: 'chatcmpl-other' }]],
  ['another model', [first, { ...last, model: 'other' }]],
  [
    'an id of another shape',
    [
      { ...first, id: 'msg_1' },
      { ...last, id: 'msg_1' },
    ],
  ],
  ['a call without an index', [first, toolCall({ index: undefined }), last]],
  ['calls that begin at 1', [first, toolCall({ index: 1 }), last]],
  ['a call without type', [first, toolCall({ type: undefined }), last]],
  ['a call without id', [first, toolCall({ id: undefined }), last]],
  ['a call begun twice', [first, toolCall({}), toolCall({}), last]],
  ['arguments that are an object', [first, toolCall({ function: { name: 'f', arguments: {} } }), last]],
  ['a call without function', [first, toolCall({ function: null }), last]],
  ['calls that are no array', [first, choice({ tool_calls: {} }), last]],
  ['a chunk that is none', [first, 'x', last]],
] as const) {
  t.test(`the rules do not allow ${name}`, async t => t.not(brokenRules(chunks).length, 0))
}

t.test('the rules allow what keeps them', async t => {
  t.strictSame(
    brokenRules([
      first,
      toolCall({}),
      choice({ tool_calls: [{ index: 0, function: { arguments: '{}' } }] }),
      toolCall({ index: 1 }),
      last,
      usage,
    ]),
    [],
  )
})
