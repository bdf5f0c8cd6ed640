import fc from 'fast-check'
import t from 'tap'
import { openDatabase } from '../../src/ledger/database.js'
import { digest, sumOf } from '../../src/ledger/digest.js'

t.test('it can be told by hand: the first 8 bytes of the SHA-256 of each value behind its kind and its length', async t => {
  // printf 'string 2 c1 bigint 4 1000 ' | sha256sum
  t.equal(digest('c1', 1000n), BigInt.asIntN(64, 0x17bb087c9e556650n))
  t.not(digest('c1', '1000'), digest('c1', 1000n))
  t.not(digest('c1', -1000n), digest('c1', 1000n))
})

t.test('one character more or less, or on the other side of a border, is another digest', async () => {
  fc.assert(
    fc.property(fc.array(fc.string(), { maxLength: 3 }), fc.array(fc.string(), { maxLength: 3 }), (one, other) => {
      return (digest(...one) === digest(...other)) === (JSON.stringify(one) === JSON.stringify(other))
    }),
    {
      examples: [
        [['a', 'b'], ['a b']],
        [['a', ''], ['a']],
        [
          ['1 a', 'b'],
          ['1', 'a 1 b'],
        ],
      ],
    },
  )
})

t.test('what SQLite gives back has the digest of what it was given, whatever well-formed text it is', async t => {
  const db = openDatabase(':memory:')
  t.teardown(() => db.close())
  const back = db
    .prepare<[string, bigint, bigint], { text: string; amount: bigint; at: bigint }>('SELECT ? AS text, ? AS amount, ? AS at')
    .safeIntegers()
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.bigInt(-(2n ** 53n), 2n ** 53n), fc.maxSafeInteger(), (text, amount, at) => {
      const row = back.get(text, amount, BigInt(at)) as { text: string; amount: bigint; at: bigint }
      return digest(row.text, row.amount, row.at) === digest(text, amount, BigInt(at))
    }),
    { examples: [['\u0000a\ufffd', 1n, -0]] },
  )
})

t.test('sums of digests go by what is in them, not by its order, and let go of what is taken away', async t => {
  const whole = fc.array(fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n))
  fc.assert(
    fc.property(whole, whole, (some, others) => {
      const sum = sumOf(...some, ...others)
      return (
        sum === sumOf(sumOf(...others), sumOf(...some)) &&
        sumOf(sum, -sumOf(...others)) === sumOf(...some) &&
        BigInt.asIntN(64, sum) === sum
      )
    }),
  )
  t.equal(sumOf(), 0n)
})
