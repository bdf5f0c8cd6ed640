import fc from 'fast-check'
import t from 'tap'
import { prefixOf, requestIds, TIME_MAX, timeOf, ulids } from '../src/ids.js'

const filled = (byte: number) => ulids(bytes => void bytes.fill(byte))

t.test('an id is a ULID: the time, then chance', async t => {
  t.equal(filled(0)(0), '0'.repeat(26))
  t.equal(filled(255)(0), `${'0'.repeat(10)}${'Z'.repeat(16)}`)
  // The example of the specification.
  t.equal(filled(0)(1_469_918_176_385).slice(0, 10), '01ARYZ6S41')
  t.equal(filled(7)(2 ** 48 - 1), `7ZZZZZZZZZ${'7'.repeat(16)}`)
  t.match(requestIds(ulids())(Date.now()), /^req_[0-9A-HJKMNP-TV-Z]{26}$/)
})

t.test('within one millisecond, and while the clock goes back, ids count on', async t => {
  const next = filled(0)
  t.strictSame(
    [next(5), next(5), next(4), next(0), next(6)].map(id => id.slice(-18)),
    ['5', '5', '5', '5', '6'].map((time, i) => `0${time}${String(i % 4).padStart(16, '0')}`),
  )
})

t.test('chance that is used up carries into the time, and still sorts', async t => {
  const next = filled(255)
  const first = next(5)
  const second = next(5)
  t.equal(second, `0000000006${'0'.repeat(16)}`)
  t.ok(second > first)
  t.ok(next(5) > second)
})

t.test('whatever the clock does, ids of one maker rise and never repeat', async () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 50 }), { maxLength: 200 }), times => {
      const next = ulids()
      let last = ''
      for (const at of times) {
        const id = next(1_700_000_000_000 + at)
        if (id.length !== 26 || id <= last) throw new Error(`${id} after ${last}`)
        last = id
      }
    }),
  )
})

t.test('a hundred thousand in one millisecond', async t => {
  const next = ulids()
  t.equal(new Set(Array.from({ length: 100_000 }, () => next(1_700_000_000_000))).size, 100_000)
})

t.test('the time that a request id begins with is found again, and ids of that time and later ones sort behind its prefix', async t => {
  const id = requestIds(filled(0))
  for (const at of [0, 1, 1_469_918_176_385, TIME_MAX]) {
    t.equal(timeOf(id(at)), at)
    t.equal(prefixOf(at), id(at).slice(0, 14))
  }
  t.ok(prefixOf(1000.5) > requestIds(filled(255))(1000), 'rounded up')
  t.strictSame([prefixOf(-1), prefixOf(TIME_MAX + 1)], [prefixOf(0), prefixOf(TIME_MAX)])
  for (const other of ['', 'c1', 'req_', `${id(5)}0`, id(5).toLowerCase(), id(TIME_MAX).replace('req_7', 'req_8')])
    t.equal(timeOf(other), null)
})
