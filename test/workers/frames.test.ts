import { Duplex, PassThrough } from 'node:stream'
import fc from 'fast-check'
import t from 'tap'
import { Frames } from '../../src/workers/frames.js'

/** What one end writes, as bytes. */
function bytesOf(messages: readonly (readonly [kind: number, text: string])[]): Buffer {
  const written: Buffer[] = []
  const stream = new Duplex({
    read() {},
    write(chunk, _encoding, done) {
      written.push(chunk)
      done()
    },
  })
  const frames = new Frames(stream, () => {})
  for (const [i, [kind, text]] of messages.entries()) {
    if (i % 2 === 0) frames.text(kind, text)
    else frames.bytes(kind, Buffer.from(text))
  }
  return Buffer.concat(written)
}

t.test('each message arrives whole and in order, however its bytes are cut', async t => {
  const message = fc.tuple(fc.integer({ min: 1, max: 5 }), fc.string({ unit: 'grapheme', maxLength: 40 }))
  await fc.assert(
    fc.asyncProperty(
      fc.array(message, { maxLength: 8 }),
      fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1 }),
      async (messages, cuts) => {
        const bytes = bytesOf(messages)
        const stream = new PassThrough()
        const found: [number, string][] = []
        new Frames(stream, (kind, payload) => found.push([kind, payload.toString('utf8')]))
        for (let at = 0, i = 0; at < bytes.length; i++) {
          const size = cuts[i % cuts.length] as number
          stream.write(bytes.subarray(at, at + size))
          at += size
        }
        stream.end()
        await new Promise(resolve => stream.once('end', resolve))
        if (!t.strictSame(found, messages)) throw new Error('not the same')
      },
    ),
    { numRuns: 200 },
  )
})

t.test('it is told when the system has taken a message', async t => {
  const stream = new PassThrough()
  const frames = new Frames(stream, () => {})
  await new Promise<void>(resolve => frames.text(3, 'a line\n', resolve))
  t.pass('told')
})
