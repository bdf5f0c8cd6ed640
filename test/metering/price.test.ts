import fc from 'fast-check'
import t from 'tap'
import type { Price } from '../../src/config/config.js'
import { cost } from '../../src/metering/price.js'

const price = (over: Partial<Price> = {}): Price => ({ input: 20000n, cached_input: 5000n, output: 60000n, request: 0n, ...over })

t.test('costs the exact sum, rounded up once', async t => {
  t.equal(cost(price(), { input: 19, cached: 0, output: 10 }), 1n, '0.38 + 0.6 Rial')
  t.equal(cost(price(), { input: 50, cached: 0, output: 0 }), 1n, 'exactly one Rial stays one')
  t.equal(cost(price(), { input: 51, cached: 0, output: 0 }), 2n)
  t.equal(cost(price(), { input: 1000, cached: 400, output: 100 }), 20n, '12 + 2 + 6')
  t.equal(cost(price(), { input: 1, cached: 0, output: 1 }, 1n), 1n, 'parts are not rounded one by one')
  t.equal(cost(price(), { input: 0, cached: 0, output: 0 }), 0n)
})

t.test('adds the price per request as often as asked', async t => {
  t.equal(cost(price({ request: 70n }), { input: 0, cached: 0, output: 0 }), 70n)
  t.equal(cost(price({ request: 70n }), { input: 25, cached: 0, output: 0 }, 3n), 211n)
  t.equal(cost(price({ request: 70n }), { input: 25, cached: 0, output: 0 }, 0n), 1n)
})

t.test('a free model costs nothing', async t => {
  t.equal(cost(null, { input: Number.MAX_SAFE_INTEGER, cached: 0, output: Number.MAX_SAFE_INTEGER }, 9n), 0n)
})

t.test('more cached than input counts as all of it cached', async t => {
  t.equal(cost(price(), { input: 1000, cached: 2000, output: 0 }), 5n)
})

t.test('is the least whole number that is not below the rational sum, far past 2^53', async () => {
  const tokens = fc.oneof(fc.nat(5000), fc.maxSafeNat())
  const rial = fc.oneof(fc.bigInt(0n, 100n), fc.bigInt(0n, 10n ** 18n))
  fc.assert(
    fc.property(
      tokens,
      fc.double({ min: 0, max: 1, noNaN: true }),
      tokens,
      rial,
      rial,
      rial,
      rial,
      fc.bigInt(0n, 5n),
      (input, share, output, i, c, o, r, n) => {
        const cached = Math.min(input, Math.floor(input * share))
        const got = cost({ input: i, cached_input: c, output: o, request: r }, { input, cached, output }, n)
        // Independent: decimal digits of each product, six places after the point, added up and carried by hand.
        const micro = [
          [input - cached, i],
          [cached, c],
          [output, o],
        ].reduce((sum, [count, each]) => sum + BigInt(String(count)) * BigInt(String(each)), 0n)
        const digits = micro.toString().padStart(7, '0')
        const whole = BigInt(digits.slice(0, -6))
        const expected = whole + (/[1-9]/.test(digits.slice(-6)) ? 1n : 0n) + n * r
        return got === expected
      },
    ),
    { numRuns: 2000 },
  )
})

t.test('never falls when a part grows', async () => {
  const tokens = fc.maxSafeNat()
  fc.assert(
    fc.property(tokens, tokens, tokens, tokens, (a, b, x, y) => {
      const low = cost(price(), { input: Math.min(a, b), cached: 0, output: Math.min(x, y) })
      return low <= cost(price(), { input: Math.max(a, b), cached: 0, output: Math.max(x, y) })
    }),
  )
})
