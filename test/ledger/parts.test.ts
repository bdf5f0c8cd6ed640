import t from 'tap'
import { AMOUNT_MAX, type Cell } from '../../src/ledger/cells.js'
import type { Ends } from '../../src/ledger/ledger.js'
import { checkAmount, claimed, cutToRoom, type Part, postedBy } from '../../src/ledger/parts.js'
import { claim, counter } from './script.js'

function cell(name: string, posted = 0n): Cell {
  return { id: 1, key: name, counter: counter(name), posted, pending: 0n, holds: 0, stored: true, dirty: false }
}

const part = (of: Cell, amount: bigint, ends: Ends = 'measured'): Part => ({ cell: of, amount, ends })

t.test('claims of one kind on one counter add up; of another kind, or on another counter, they stay apart', async t => {
  const [a, b] = [cell('tokens/a/day@0'), cell('tokens/b/day@0')]
  const parts: Part[] = []
  claimed(parts, a, claim('tokens/a/day@0=5'))
  claimed(parts, a, claim('tokens/a/day@0=3:counted'))
  claimed(parts, a, claim('tokens/a/day@0=2:measured'))
  claimed(parts, b, claim('tokens/b/day@0=7'))
  claimed(parts, a, claim('tokens/a/day@0=1:counted'))
  t.strictSame(parts, [part(a, 7n), part(a, 4n, 'counted'), part(b, 7n)])
})

t.test('what a part leaves behind', async t => {
  const of = cell('tokens/a/day@0')
  const rows: [Ends, Record<string, bigint> | null, bigint][] = [
    ['measured', { tokens: 3n }, 3n],
    ['measured', { tokens: 0n }, 0n],
    ['measured', { rial: 3n }, 5n],
    ['measured', null, 0n],
    ['counted', { tokens: 3n }, 5n],
    ['counted', null, 5n],
    ['released', { tokens: 3n }, 0n],
    ['released', null, 0n],
  ]
  for (const [ends, actual, expected] of rows)
    t.equal(postedBy('r1', part(of, 5n, ends), actual), expected, `${ends} ${String(actual?.tokens)}`)
  t.throws(() => postedBy('r1', part(of, 5n), { tokens: -1n }), { message: /^r1: tokens: an amount is a bigint from 0 to/ })
})

t.test('an amount is a bigint from 0 to 2^53 - 1', async t => {
  for (const amount of [0n, 1n, AMOUNT_MAX]) t.doesNotThrow(() => checkAmount('r1', 'x', amount))
  for (const amount of [-1n, AMOUNT_MAX + 1n, 1, null]) {
    t.throws(() => checkAmount('r1', 'x', amount as bigint), {
      name: 'RangeError',
      message: `r1: x: an amount is a bigint from 0 to 9007199254740991, not ${amount}`,
    })
  }
})

t.test('what all parts of a hold leave on one counter is cut to what it can still keep', async t => {
  const full = cell('tokens/a/day@0', AMOUNT_MAX - 5n)
  const parts = [part(full, 0n), part(cell('tokens/b/day@0'), 0n), part(full, 0n, 'counted')]
  const cut = (...amounts: bigint[]) => {
    cutToRoom(parts, amounts)
    return amounts
  }
  t.strictSame(cut(2n, AMOUNT_MAX, 3n), [2n, AMOUNT_MAX, 3n], 'up to it, and each counter for itself')
  t.strictSame(cut(3n, 0n, 3n), [3n, 0n, 2n])
  t.strictSame(cut(6n, 0n, 3n), [5n, 0n, 0n])
})
