import fc from 'fast-check'
import t from 'tap'
import { Pulse, quantile, SAMPLES, SECONDS } from '../../src/admin/pulse.js'
import type { RecentExchange } from '../../src/telemetry/recent.js'

const AT = 1_795_300_000_000

interface Given {
  readonly state?: string
  readonly code?: string | null
  readonly stream?: boolean
  readonly attempts?: RecentExchange['attempts']
  readonly marks?: Partial<RecentExchange['marks']>
  readonly output?: number
}

function ended({ state = 'settled', code = null, stream = false, attempts = [], marks = {}, output = 20 }: Given = {}): RecentExchange {
  return {
    state,
    attempts,
    marks: { read: 1, sent: 2, first: null, answered: null, ...marks },
    line: { code, stream, time: AT, input_tokens: 10, output_tokens: output, cost_rial: 7n },
  } as unknown as RecentExchange
}

t.test('seconds: what ended in each of the last two minutes', async t => {
  const pulse = new Pulse()
  pulse.add(ended(), AT)
  pulse.add(ended({ state: 'refused', code: 'rate_limit_rpm' }), AT)
  pulse.add(ended({ state: 'voided', code: 'upstream_error' }), AT + 1000)
  const seconds = pulse.seconds(AT + 2500)
  t.equal(seconds.length, SECONDS)
  t.same(seconds.slice(-3), [
    { requests: 2, refused: 1, failed: 0, tokens: 60, rial: 14n },
    { requests: 1, refused: 0, failed: 1, tokens: 30, rial: 7n },
    { requests: 0, refused: 0, failed: 0, tokens: 0, rial: 0n },
  ])
  t.equal(
    pulse.seconds(AT + SECONDS * 1000).reduce((sum, { requests }) => sum + requests, 0),
    1,
    'the first second has passed out of it',
  )
  t.equal(
    pulse.seconds(AT + 3_600_000).reduce((sum, { requests }) => sum + requests, 0),
    0,
  )
})

t.test('seconds: all that came in the last two minutes, and never more than came, whatever the clock does', async t => {
  const times = fc.array(fc.integer({ min: 0, max: 300_000 }), { maxLength: 40 })
  fc.assert(
    fc.property(times, fc.integer({ min: 0, max: 300_000 }), (times, last) => {
      const pulse = new Pulse()
      for (const time of times) pulse.add(ended(), AT + time)
      const seconds = pulse.seconds(AT + last)
      const sum = seconds.reduce((all, { requests }) => all + requests, 0)
      const newest = Math.floor((AT + Math.max(last, ...times)) / 1000)
      const kept = times.filter(time => Math.floor((AT + time) / 1000) > newest - SECONDS).length
      return seconds.length === SECONDS && sum <= times.length && sum >= kept
    }),
  )
  t.pass()
})

t.test('samples: each try at its target, with the time until it began and until it ended', async t => {
  const pulse = new Pulse()
  const attempts = [
    { target: 'a/1', result: 'upstream_error', ms: 30 },
    { target: 'b/1', result: 'answered', ms: 100 },
  ]
  pulse.add(ended({ stream: true, attempts, marks: { first: 140, answered: 540 }, output: 200 }), AT)
  t.same(pulse.samples('a/1'), [{ at: AT, result: 'upstream_error', ms: 30, first_ms: null, pace: null }])
  t.same(pulse.samples('b/1'), [{ at: AT, result: 'answered', ms: 500, first_ms: 100, pace: 500 }])
  t.same(pulse.samples('c/1'), [])
})

t.test('samples: what took too short says nothing of the pace', async t => {
  const pulse = new Pulse()
  const attempts = [{ target: 'a/1', result: 'answered', ms: 5 }]
  pulse.add(ended({ attempts, marks: { first: 7, answered: 7 } }), AT)
  pulse.add(ended({ attempts, marks: { sent: 0, first: 100, answered: 100 }, output: 1 }), AT)
  t.same(
    pulse.samples('a/1').map(({ pace, first_ms }) => [pace, first_ms]),
    [
      [null, null],
      [null, null],
    ],
  )
})

t.test('memory is bounded, by target and in all', async t => {
  const pulse = new Pulse()
  for (let i = 0; i < 1000; i++) pulse.add(ended({ attempts: [{ target: 'a/1', result: 'answered', ms: i }] }), AT)
  t.equal(pulse.samples('a/1').length, SAMPLES)
  t.equal(pulse.samples('a/1').at(-1)?.ms, 999)
  for (let i = 0; i < 600; i++) pulse.add(ended({ attempts: [{ target: `b/${i}`, result: 'answered', ms: 1 }] }), AT)
  t.same(pulse.samples('a/1'), [], 'asked longest ago')
  t.same(pulse.samples('b/99'), [])
  t.equal(pulse.samples('b/100').length, 1)
})

t.test('quantiles', async t => {
  t.equal(quantile([], 0.5), null)
  t.equal(quantile([5], 0.95), 5)
  t.equal(quantile([3, 1, 2], 0.5), 2)
  const hundred = Array.from({ length: 100 }, (_, i) => 100 - i)
  t.equal(quantile(hundred, 0.95), 95)
  t.equal(quantile(hundred, 0.5), 50)
})
