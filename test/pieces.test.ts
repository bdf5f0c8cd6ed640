import { equal, ok } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { INLINE_BYTES_MAX, joined, Pieces, sharedBytes } from '../src/pieces.js'

t.test('property: however bytes come, they are the same again, and many of them are shared', t => {
  const size = fc.oneof(fc.integer({ min: 0, max: 100 }), fc.integer({ min: 0, max: 2 * INLINE_BYTES_MAX }), fc.constant(INLINE_BYTES_MAX))
  fc.assert(
    fc.property(fc.array(size, { maxLength: 6 }), sizes => {
      const pieces = new Pieces()
      const all: Buffer[] = []
      for (const one of sizes) {
        const bytes = Buffer.alloc(one, `${sizes.length} ${all.length} some bytes`)
        all.push(Buffer.from(bytes))
        pieces.add(bytes)
        // Shared bytes are a copy: what is done to the others shows nowhere.
        if (pieces.many) bytes.fill(0)
      }
      const before = Buffer.concat(all)
      equal(pieces.length, before.length)
      equal(pieces.many, before.length > INLINE_BYTES_MAX)
      ok(pieces.many ? pieces.list.every(({ buffer }) => buffer instanceof SharedArrayBuffer) : true)
      ok(pieces.joined().equals(before))
    }),
    { numRuns: 60 },
  )
  t.end()
})

t.test('bytes that come after the list was read do not change it', t => {
  const pieces = Pieces.of(Buffer.alloc(INLINE_BYTES_MAX + 1, 'a'))
  const before = pieces.list
  pieces.add(Buffer.from('b'))
  t.equal(joined(before).length, INLINE_BYTES_MAX + 1)
  t.equal(pieces.joined().toString(), `${'a'.repeat(INLINE_BYTES_MAX + 1)}b`)
  t.end()
})

t.test('property: bytes that are taken are the same after they have changed hands', t => {
  const size = fc.oneof(fc.integer({ min: 0, max: 100 }), fc.integer({ min: 0, max: INLINE_BYTES_MAX }), fc.constant(16 * 1024))
  fc.assert(
    fc.property(fc.array(fc.tuple(size, fc.boolean()), { maxLength: 12 }), sizes => {
      const pieces = new Pieces()
      const all: Buffer[] = []
      for (const [one, whole] of sizes) {
        const bytes = Buffer.from(new ArrayBuffer(one + (whole ? 0 : 1)), 0, one).fill(`${all.length} some bytes`)
        all.push(Buffer.from(bytes))
        pieces.take(bytes)
      }
      const before = Buffer.concat(all)
      equal(pieces.length, before.length)
      ok(pieces.joined().equals(before))
      const { list, owned } = pieces
      const handed = structuredClone(list, { transfer: owned })
      equal(pieces.many, before.length > INLINE_BYTES_MAX)
      ok(owned.length === 0 || pieces.many)
      ok(owned.every(({ byteLength }) => byteLength === 0))
      const back = sharedBytes(handed)
      ok(back.buffer instanceof SharedArrayBuffer)
      ok(back.equals(before))
      pieces.giveBack(handed)
      ok(pieces.joined().equals(before))
      equal(pieces.length, before.length)
    }),
    { numRuns: 60 },
  )
  t.end()
})
