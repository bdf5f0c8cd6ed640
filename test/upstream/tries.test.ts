import t from 'tap'
import { GatewayError } from '../../src/errors.js'
import type { Target } from '../../src/understand.js'
import { Health } from '../../src/upstream/health.js'
import { refusalOf } from '../../src/upstream/refusal.js'
import { type Step, Tries, type TriesFacts } from '../../src/upstream/tries.js'
import { TargetFailure } from '../../src/upstream/trouble.js'

const target = (name: string): Target => ({ name, weight: 1, rank: 0 }) as Target
const status = (code: number, retryAfter?: number) =>
  refusalOf({ status: code, ...(retryAfter === undefined ? {} : { retryAfter }) }, () => false)
const UNKNOWN = new TargetFailure('upstream_error', 'Broke.', { against: 'firm', passing: false })
const PATIENT = { provider: 'p', settings: { failures: 1, ejection: 1000 } }

function tries(names: string, facts: Partial<TriesFacts> = {}) {
  return new Tries({ targets: [...names].map(target), attempts: 3, deadline: 100_000, health: new Health(), random: () => 1, ...facts })
}

/** What follows each failure: the target and the pause, or the code that the client gets. */
function run(one: Tries, failures: readonly GatewayError[], now = 0): string[] {
  const told: string[] = []
  for (const failure of [...failures, null]) {
    const step: Step | null = one.next(now)
    if (step === null) return [...told, one.error(now).code]
    told.push(step.waitMs === 0 ? step.target.name : `${step.target.name} after ${step.waitMs}`)
    if (failure === null) return told
    now += step.waitMs
    if (!one.failed(step, failure, now)) return [...told, 'no more']
  }
  return told
}

t.test('each target has its turn; then those whose trouble may pass are asked again', async t => {
  const rows: [name: string, names: string, failures: GatewayError[], expected: string[]][] = [
    ['it answers', 'a', [], ['a']],
    ['500 says nothing of the next moment', 'a', [status(500)], ['a', 'upstream_error']],
    [
      '503 passes, and the pause grows',
      'a',
      [status(503), status(503), status(503)],
      ['a', 'a after 250', 'a after 500', 'upstream_error'],
    ],
    ['529 here, 500 there', 'ab', [status(529), status(500)], ['a', 'b', 'a after 250']],
    ['no more than attempts', 'abcd', [status(500), status(500), status(500)], ['a', 'b', 'c', 'upstream_error']],
    ['retry-after is obeyed', 'a', [status(429, 2)], ['a', 'a after 2000']],
    ['but not for ever', 'a', [status(429, 6)], ['a', 'upstream_rate_limited']],
    ['the soonest first', 'ab', [status(429, 3), status(429, 1)], ['a', 'b', 'b after 1000']],
    ['it may have run', 'ab', [UNKNOWN], ['a', 'no more']],
    ["the client's own fault", 'ab', [status(400)], ['a', 'no more']],
    ['the operator has to mend it', 'ab', [status(401), status(404)], ['a', 'b', 'upstream_error']],
  ]
  for (const [name, names, failures, expected] of rows) t.strictSame(run(tries(names), failures), expected, name)
})

t.test('who can not be asked is passed over; the first refusal counts where nothing else does', async t => {
  const refusal = (message: string) => new GatewayError('invalid_request', message)
  const all = tries('ab', { attempts: 1 })
  for (const name of ['a', 'b']) {
    t.equal(all.next(0)?.target.name, name, 'that was no try')
    all.passOver(refusal(name))
  }
  t.equal(all.next(0), null)
  t.match(all.error(0), { code: 'invalid_request', message: 'a' })
  const some = tries('abc')
  some.next(0)
  some.passOver(refusal('a'))
  t.ok(some.failed(some.next(0) as Step, status(500), 0))
  some.next(0)
  some.passOver(refusal('c'))
  t.equal(some.next(0), null)
  t.match(some.error(0), { code: 'upstream_error' }, 'a provider that failed could have answered')
  const health = new Health()
  health.enter({ ...PATIENT, name: 'b' }, 0).leave({ against: 'firm', passing: false }, 0)
  const out = tries('ab', { health })
  out.next(0)
  out.passOver(refusal('a'))
  t.equal(out.next(0), null)
  t.match(out.error(0), { code: 'overloaded' }, 'who is left alone will be able to answer')
})

t.test('no try begins after the deadline, nor a pause that would end there', async t => {
  t.strictSame(run(tries('a', { deadline: 250 }), [status(503)]), ['a', 'upstream_error'])
  const slow = tries('ab', { deadline: 100 })
  const step = slow.next(0) as Step
  t.ok(slow.failed(step, status(500), 100))
  t.equal(slow.next(100), null)
})

t.test('a pause is between half and all of its time', async t => {
  for (const [random, waitMs] of [
    [0, 125],
    [0.5, 187.5],
  ] as const) {
    const one = tries('a', { random: () => random })
    one.failed(one.next(0) as Step, status(503), 0)
    t.equal(one.next(0)?.waitMs, waitMs)
  }
})

t.test('who is left alone is passed over; in doubt, it comes last', async t => {
  const health = new Health()
  const ill = (name: string, against: 'firm' | 'faint') => health.enter({ ...PATIENT, name }, 0).leave({ against, passing: false }, 0)
  ill('a', 'firm')
  ill('b', 'faint')
  t.strictSame(run(tries('abc', { health }), [status(500), status(500)]), ['c', 'b', 'upstream_error'])
  t.strictSame(run(tries('ab', { health }), [], 1000), ['a'], 'its time is over: it has its turn')
})

t.test('when all are left alone, that is told at once, with the soonest moment of another try', async t => {
  const health = new Health()
  const leave = (name: string, waitS: number) => health.enter({ ...PATIENT, name }, 0).leave({ against: 'limit', passing: true, waitS }, 0)
  leave('a', 30)
  leave('b', 70)
  const limited = tries('ab', { health })
  t.equal(limited.next(100), null)
  t.match(limited.error(100), { code: 'upstream_rate_limited', status: 429, retryAfter: 30, shouldRetry: undefined })
  const long = tries('b', { health })
  t.equal(long.next(0), null)
  t.match(long.error(0), { code: 'upstream_rate_limited', retryAfter: 70, shouldRetry: false })
  health.enter({ ...PATIENT, name: 'c' }, 0).leave({ against: 'firm', passing: false }, 0)
  const out = tries('ac', { health })
  t.equal(out.next(0), null)
  t.match(out.error(0), { code: 'overloaded', status: 503, retryAfter: 1, message: /^All 2 targets/, origin: 'upstream' })
})

t.test('429 is the answer only where every target is at its limit', async t => {
  const all = tries('ab')
  for (const waitS of [9, 7]) all.failed(all.next(0) as Step, status(429, waitS), 0)
  t.equal(all.next(0), null)
  t.match(all.error(0), { code: 'upstream_rate_limited', retryAfter: 7 })
  const mixed = tries('ab')
  mixed.failed(mixed.next(0) as Step, status(429, 9), 0)
  mixed.failed(mixed.next(0) as Step, status(500), 0)
  t.match(mixed.error(0), { code: 'upstream_error', retryAfter: undefined })
})
