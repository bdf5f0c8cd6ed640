import fc from 'fast-check'
import t from 'tap'
import chatCompletions from '../../src/endpoints/chat-completions.js'
import embeddings from '../../src/endpoints/embeddings.js'
import type { Endpoint } from '../../src/endpoints/endpoint.js'
import moderations from '../../src/endpoints/moderations.js'
import rerank from '../../src/endpoints/rerank.js'
import { FlatText } from '../../src/flat-text.js'
import type { JsonObject } from '../../src/json.js'
import { familyOf, textTokens } from '../../src/metering/estimate.js'
import { Tally } from '../../src/metering/tally.js'
import { NO_USAGE } from '../../src/metering/usage.js'
import { heap } from '../support/garbage.js'
import { sampleModel } from '../support/sample-call.js'

const FAMILY = familyOf(sampleModel())
const said = (content: string): JsonObject => ({ choices: [{ index: 0, delta: { content }, finish_reason: null }] })
const reported = (counts: object): JsonObject => ({ choices: [], usage: counts as JsonObject })

/** The usage after these chunks, of an input that was estimated at 50 tokens; `factor`: what the model's counts are off by. */
function usage(chunks: readonly JsonObject[], whole: boolean, endpoint: Endpoint = chatCompletions, factor = 1) {
  const tally = new Tally(endpoint, FAMILY, false)
  for (const chunk of chunks) tally.add(chunk)
  return tally.usage({ input: 50, factor }, whole)
}

t.test('what was received is counted as the model counts, as far as its provider has taught it', async t => {
  const text = 'The quick brown fox jumps over the lazy dog. '
  const output = Math.round(1.3 * textTokens(text, FAMILY))
  t.match(usage([said(text)], true, chatCompletions, 1.3), { source: 'counted', input: 50, output })
  const told = reported({ prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 })
  t.match(usage([said(text), told], false, chatCompletions, 1.3), { source: 'counted', input: 9, output })
  t.match(usage([said(text), told], true, chatCompletions, 1.3), { source: 'provider', input: 9, output: 3 })
})

t.test('what is charged, by what was reported and whether the answer was whole', async t => {
  const text = 'The quick brown fox jumps over the lazy dog. '
  const counted = textTokens(text.repeat(2), FAMILY)
  const rows: [name: string, ReturnType<typeof usage>, object][] = [
    [
      'reported',
      usage([said(text), reported({ prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 })], true),
      {
        source: 'provider',
        input: 9,
        cached: 0,
        output: 3,
        reasoning: 0,
      },
    ],
    [
      'reported as nothing',
      usage([said(text), reported({ prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 })], true),
      {
        source: 'provider',
        input: 0,
        cached: 0,
        output: 0,
        reasoning: 0,
      },
    ],
    ['not reported', usage([said(text), said(text)], true), { source: 'counted', input: 50, cached: 0, output: counted, reasoning: 0 }],
    [
      'a report that can not be',
      usage([said(text), said(text), reported({ prompt_tokens: -1 })], true),
      { source: 'counted', input: 50, output: counted },
    ],
    ['cut off', usage([said(text), said(text)], false), { source: 'counted', input: 50, output: counted }],
    ['cut off before anything', usage([], false), { source: 'estimate', input: 50, output: 0 }],
    [
      'cut off behind an early report',
      usage([reported({ prompt_tokens: 9, completion_tokens: 1 }), said(text), said(text)], false),
      {
        source: 'counted',
        input: 9,
        output: counted,
      },
    ],
    [
      'cut off behind a report of more',
      usage([said('a'), reported({ prompt_tokens: 9, completion_tokens: 700 })], false),
      { source: 'counted', input: 9, output: 700 },
    ],
    ['an output that no reranker has', usage([reported({ prompt_tokens: 10, total_tokens: 25 })], true, rerank), { input: 10, output: 0 }],
    [
      'an output that no embedding has',
      usage([reported({ prompt_tokens: 8, total_tokens: 20 })], true, embeddings),
      { input: 8, output: 0 },
    ],
    ['nothing to report, nothing to pay', usage([{ results: [] }], true, moderations), NO_USAGE],
  ]
  for (const [name, got, expected] of rows) t.match(got, expected, name)
})

t.test('a long answer is counted as it comes, and not kept', async t => {
  const tally = new Tally(chatCompletions, FAMILY, false)
  const piece = 'The quick brown fox jumps over the lazy dog. '
  for (let i = 0; i < 20_000; i++) tally.add(said(piece))
  const { output } = tally.usage({ input: 1, factor: 1 }, true)
  const atOnce = textTokens(piece.repeat(20_000), FAMILY)
  t.ok(output >= atOnce && output <= 1.01 * atOnce, `${output} of ${atOnce}`)
})

t.test('of the events that a text came in, none is kept with it, and of those that came last a few', t => {
  for (const [answers, events, most] of [
    [20, 1_000, 80],
    [1_000, 15, 200],
  ] as const) {
    const tallies = Array.from({ length: answers }, () => new Tally(chatCompletions, FAMILY, false))
    const before = heap()
    for (let i = 0; i < events; i++) {
      for (const tally of tallies) {
        // A text of 20 characters, cut from an event of 320.
        const event = Buffer.from(`${'x'.repeat(300)}${String(i).padStart(20, ' text ')}`).toString()
        tally.add(said(event.slice(300)))
      }
    }
    const kept = (heap() - before) / (answers * events)
    t.ok(kept < most, `${kept} bytes are kept for 20 characters, after ${events} events`)
    t.ok(tallies.every(tally => tally.usage({ input: 1, factor: 1 }, true).output > events))
  }
  t.end()
})

t.test('a text that is kept is what was added since it was last taken', t => {
  const steps = fc.array(fc.oneof({ weight: 30, arbitrary: fc.string({ unit: 'grapheme', maxLength: 4 }) }, fc.constant(null)), {
    maxLength: 120,
  })
  fc.assert(
    fc.property(steps, all => {
      const kept = new FlatText()
      let expected = ''
      for (const piece of all) {
        if (piece === null) {
          t.equal(kept.take(), expected)
          expected = ''
        } else {
          kept.add(piece)
          expected += piece
        }
        if (kept.length !== expected.length) return false
      }
      return kept.take() === expected && kept.length === 0 && kept.take() === ''
    }),
  )
  t.end()
})
