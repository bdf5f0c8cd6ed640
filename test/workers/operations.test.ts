import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import t from 'tap'
import type { AdmissionRecord, Claim, EndingRecord, Hold, Settlement } from '../../src/ledger/ledger.js'
import { type Operation, OperationReader, OperationWriter } from '../../src/workers/operations.js'
import { admissionRecord, endingRecord } from '../ledger/figures.js'

const PLAIN = { noNullPrototype: true } as const
const text = fc.oneof(fc.constantFrom('a', 'acme', 'up/m', '', '\n\t"\\', 'کلید', '\ud800'), fc.string({ unit: 'binary', maxLength: 8 }))
const maybe = fc.option(text, { nil: null })
const whole = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER })
/** Of any size: what is too large is for the ledger to refuse. */
const amount = fc.oneof(fc.bigInt({ min: 0n, max: 1000n }), fc.bigInt({ min: -(1n << 70n), max: 1n << 70n }))
/** What no type allows, and a policy without types may give all the same. */
const wrong = fc.constantFrom(undefined, null, Number.NaN, Number.POSITIVE_INFINITY, 1.5, 7, '7', true)
const rarely = <T>(right: fc.Arbitrary<T>): fc.Arbitrary<T> =>
  fc.oneof({ weight: 60, arbitrary: right }, { weight: 1, arbitrary: wrong as unknown as fc.Arbitrary<T> })

const window = fc.constantFrom(
  { kind: 'minute', start: 0, end: 60_000 } as const,
  { kind: 'minute', start: 60_000, end: 120_000 } as const,
  { kind: 'day', start: 0, end: 86_400_000 } as const,
  { kind: 'all', start: 0, end: Number.POSITIVE_INFINITY } as const,
)
const claim: fc.Arbitrary<Claim> = fc.record(
  {
    counter: fc.record(
      { meter: fc.constantFrom('requests', 'tokens', 'rial'), subject: fc.constantFrom('key:a', 'key:b', 'account:acme'), window },
      PLAIN,
    ),
    amount: rarely(amount),
    ceiling: rarely(fc.oneof(fc.constant(null), fc.constant('credits' as const), fc.bigInt({ min: 0n, max: 1n << 60n }))),
    code: text,
    ends: fc.constantFrom('measured', 'counted', 'released'),
  },
  { ...PLAIN, requiredKeys: ['counter', 'amount', 'ceiling', 'code'] },
)
const admission: fc.Arbitrary<AdmissionRecord> = fc.record(
  {
    key: rarely(maybe),
    account: maybe,
    plan: maybe,
    surface: rarely(text),
    model: text,
    provider: text,
    stream: rarely(fc.boolean()),
    client_request_id: maybe,
    trace_id: maybe,
    held_tokens: rarely(whole),
    held_rial: rarely(amount),
    price: text,
  },
  PLAIN,
)
const ending: fc.Arbitrary<EndingRecord> = fc.record(
  {
    ended_at: rarely(whole),
    ended_by: fc.constantFrom('provider', 'client', 'upstream_error', 'drain', 'recovery'),
    usage_source: fc.constantFrom('provider', 'counted', 'estimate', 'none'),
    input_tokens: rarely(whole),
    cached_input_tokens: whole,
    output_tokens: whole,
    reasoning_tokens: whole,
    cost_rial: rarely(amount),
    overrun_rial: amount,
    status: whole,
    code: rarely(maybe),
    provider: text,
    price: text,
    upstream_request_id: maybe,
    attempts: rarely(text),
    ttft_ms: fc.option(fc.double({ noNaN: true, noDefaultInfinity: true, min: 0 }), { nil: null }),
    duration_ms: rarely(fc.double({ noNaN: true, noDefaultInfinity: true, min: 0 })),
  },
  PLAIN,
)
const actual = fc.dictionary(fc.constantFrom('requests', 'tokens', 'rial', 'own_meter'), rarely(amount), PLAIN)
const hold: fc.Arbitrary<Hold> = fc.record(
  { id: text, at: rarely(whole), claims: fc.array(claim, { maxLength: 9 }), record: admission },
  PLAIN,
)
const settlement: fc.Arbitrary<Settlement> = fc.record({ state: fc.constantFrom('settled', 'partial'), actual, record: ending }, PLAIN)
const operation: fc.Arbitrary<Operation> = fc.oneof(
  fc.record({ kind: fc.constant('hold' as const), hold }, PLAIN),
  fc.record({ kind: fc.constant('settle' as const), id: text, settlement }, PLAIN),
  fc.record({ kind: fc.constant('void' as const), id: text, record: ending }, PLAIN),
  fc.record(
    { kind: fc.constant('call' as const), name: fc.constantFrom('read', 'wallet'), given: fc.array(fc.oneof(amount, text, wrong)) },
    PLAIN,
  ),
)

function write(writer: OperationWriter, place: number, operation: Operation): void {
  if (operation.kind === 'hold') writer.hold(place, operation.hold)
  else if (operation.kind === 'settle') writer.settle(place, operation.id, operation.settlement)
  else if (operation.kind === 'void') writer.void(place, operation.id, operation.record)
  else writer.call(place, operation.name, operation.given)
}

t.test('what goes over arrives as it was given, right or wrong, however much was said before', async t => {
  const turns = fc.array(fc.array(operation, { minLength: 1, maxLength: 12 }), { minLength: 1, maxLength: 12 })
  fc.assert(
    fc.property(turns, fc.integer({ min: 1, max: 30 }), (turns, known) => {
      const writer = new OperationWriter(known)
      const reader = new OperationReader()
      for (const turn of turns) {
        for (const [place, one] of turn.entries()) write(writer, place, one)
        const found: Operation[] = []
        reader.read(writer.take(), (place, one) => {
          if (place !== found.length) throw new Error(`place ${place} in the place of ${found.length}`)
          found.push(one)
        })
        if (!isDeepStrictEqual(found, turn)) throw new Error('not the same')
      }
    }),
    { numRuns: 100 },
  )
  t.pass('100 conversations')
})

t.test('what holds have in common goes over once', async t => {
  const writer = new OperationWriter()
  const claims: Claim[] = [
    {
      counter: { meter: 'requests', subject: 'key:a', window: { kind: 'day', start: 0, end: 9 } },
      amount: 1n,
      ceiling: 10n,
      code: 'rate_limit_rpd',
    },
  ]
  const bytes = (id: string): number => {
    writer.hold(0, { id, at: 1, claims: claims.map(one => ({ ...one })), record: admissionRecord() })
    writer.settle(1, id, { state: 'settled', actual: { tokens: 3n }, record: endingRecord() })
    return writer.take().length
  }
  const first = bytes('r1')
  t.ok(bytes('r2') < first / 2, 'the second time')
  t.equal(bytes('r3'), bytes('r4'))
})

t.test('a claim that can not go over fails alone', async t => {
  const writer = new OperationWriter()
  const reader = new OperationReader()
  const base = { meter: 'x', subject: 'key:a' }
  const broken = { counter: { ...base, window: { kind: () => {}, start: 0, end: 1 } }, amount: 1n, ceiling: null, code: 'x' } as never
  t.throws(() => writer.hold(0, { id: 'r1', at: 1, claims: [broken], record: admissionRecord() }))
  const right: Hold = {
    id: 'r2',
    at: 1,
    claims: [{ counter: { ...base, window: { kind: 'day', start: 0, end: 1 } }, amount: 1n, ceiling: null, code: 'x' }],
    record: admissionRecord(),
  }
  writer.hold(1, right)
  const found: unknown[] = []
  reader.read(writer.take(), (place, one) => found.push([place, one]))
  t.strictSame(found, [[1, { kind: 'hold', hold: right }]])
})
