import { deepStrictEqual } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import type { SseEvent } from '../../src/upstream/providers/provider.js'
import { EVENT_BYTES_MAX, SseParser } from '../../src/upstream/sse.js'
import { heap } from '../support/garbage.js'
import { sseEvents } from '../support/sse-reference.js'

interface Read {
  readonly events: SseEvent[]
  readonly comments: string[]
}

function read(pieces: Iterable<Uint8Array>, ended = true): Read {
  const parser = new SseParser()
  const events: SseEvent[] = []
  const comments: string[] = []
  for (const piece of pieces)
    parser.push(
      Buffer.from(piece),
      event => events.push(event),
      text => comments.push(text),
    )
  if (ended) parser.end(event => events.push(event))
  return { events, comments }
}

/** The bytes, cut after each of the given lengths. */
function cut(bytes: Buffer, lengths: readonly number[]): Buffer[] {
  const pieces: Buffer[] = []
  let from = 0
  for (const length of lengths) {
    pieces.push(bytes.subarray(from, from + length))
    from += length
  }
  return [...pieces, bytes.subarray(from)]
}

const line = fc.oneof(
  fc.constantFrom('', 'data', 'data:', 'data: ', 'data:  x', 'event: message', 'event', 'id: 7', 'retry: 10', ':', ': ping', 'unknown: x'),
  fc.string({ unit: 'grapheme' }).map(text => `data: ${text.replace(/[\r\n]/g, '')}`),
  fc.string().map(text => text.replace(/[\r\n]/g, '')),
)
const ending = fc.constantFrom('\n', '\r\n', '\r')
const stream = fc
  .tuple(fc.boolean(), fc.array(fc.tuple(line, ending), { maxLength: 30 }))
  .map(([mark, lines]) => Buffer.from((mark ? '\uFEFF' : '') + lines.map(([text, end]) => text + end).join('')))

t.test('events are those of the standard, wherever the network cuts the bytes', async () => {
  fc.assert(
    fc.property(stream, fc.array(fc.nat(9)), (bytes, lengths) => {
      // The standard also tells events without data, which clients of this format can not read.
      // An unfinished line at the end, so that the reader does not take the end for a blank line.
      const expected = sseEvents([bytes, Buffer.from('x')]).filter(({ data }) => data !== '')
      const whole = read([bytes], false)
      deepStrictEqual(whole.events, expected)
      deepStrictEqual(read(cut(bytes, lengths), false), whole)
      deepStrictEqual(
        read(
          Array.from(bytes, byte => Uint8Array.of(byte)),
          false,
        ),
        whole,
      )
    }),
    { numRuns: 300 },
  )
})

t.test('what each line means', async t => {
  const rows: [string, SseEvent[], string[]?][] = [
    ['data: a\n\n', [{ data: 'a' }]],
    ['data:a\r\n\r\n', [{ data: 'a' }]],
    ['data: a\r\r', [{ data: 'a' }]],
    ['\uFEFFdata: a\n\n', [{ data: 'a' }]],
    ['data: a\ndata: b\ndata\n\n', [{ data: 'a\nb\n' }]],
    ['data:  a \n\n', [{ data: ' a ' }]],
    ['event: error\ndata: a\n\ndata: b\n\n', [{ event: 'error', data: 'a' }, { data: 'b' }]],
    ['event: ping\n\ndata: a\n\n', [{ data: 'a' }]],
    ['id: 1\nretry: 5\ndata: a\n\n', [{ data: 'a' }]],
    ['id: 1\n\nretry: 5\n\n', []],
    ['data:\n\ndata: \n\n', []],
    ['database: a\n\n', []],
    [': one\n:\ndata: a\n: two\n\n', [{ data: 'a' }], [' one', '', ' two']],
    ['data: \uFEFFa\n\n', [{ data: '\uFEFFa' }]],
  ]
  for (const [text, events, comments = []] of rows) t.strictSame(read([Buffer.from(text)]), { events, comments }, JSON.stringify(text))
})

t.test('an event is told with the very byte that ends it, whatever the line endings', async t => {
  for (const text of ['data: a\n\n', 'data: a\r\n\r', 'data: a\r\r']) t.strictSame(read([Buffer.from(text)], false).events, [{ data: 'a' }])
  t.strictSame(read([Buffer.from('data: a\r\n\r'), Buffer.from('\ndata: b\r\r'), Buffer.from('\n')], false).events, [
    { data: 'a' },
    { data: 'b' },
  ])
})

t.test('at the end, an event that lacks its blank line or its line ending counts all the same', async t => {
  for (const text of ['data: a', 'data: a\n', 'data: a\r', '\uFEFFdata: a']) t.strictSame(read([Buffer.from(text)]).events, [{ data: 'a' }])
  t.strictSame(read([Buffer.from('data: a\n\nda')]).events, [{ data: 'a' }])
  t.strictSame(read([]).events, [])
})

t.test('an event without end is cut off at its bound, in linear time', async t => {
  const began = process.cpuUsage()
  const endless: [string, Buffer][] = [
    ['one line', Buffer.alloc(1000, 'x')],
    ['many data lines', Buffer.from('data: xxxxxxxxxx\n'.repeat(64))],
    ['data lines with nothing in them', Buffer.from('data\n'.repeat(200))],
    ['data lines that end with CR', Buffer.from('data: xxxxxxxxxx\r'.repeat(64))],
  ]
  for (const [name, chunk] of endless) {
    let pushed = 0
    const parser = new SseParser()
    const never = () => t.fail('nothing is complete')
    t.throws(
      () => {
        for (; pushed < 2 * EVENT_BYTES_MAX; pushed += chunk.length) parser.push(chunk, never, never)
      },
      RangeError,
      name,
    )
    t.ok(pushed >= 0.8 * EVENT_BYTES_MAX, `${name}: ${pushed} bytes`)
  }
  const single = new SseParser()
  t.throws(() => single.push(Buffer.from(`data: ${'x'.repeat(EVENT_BYTES_MAX)}\n`), Boolean, Boolean), RangeError)
  const blanks = Buffer.alloc(4 * 1024 * 1024, '\r')
  t.strictSame(read([blanks]).events, [])
  const { user, system } = process.cpuUsage(began)
  t.ok(user + system < 20_000_000, `${(user + system) / 1000} ms`)
})

t.test('a line that comes byte by byte takes the memory of the line', t => {
  const parser = new SseParser()
  const never = () => t.fail('nothing is complete')
  const before = heap()
  // As undici cuts a read into HTTP chunks: each a view of it.
  for (let reads = 0; reads < 50; reads++) {
    const read = Buffer.alloc(64 * 1024, 'x')
    for (let i = 0; i < 10_000; i++) parser.push(read.subarray(i, i + 1), never, never)
  }
  const kept = heap() - before
  t.ok(kept < 4_000_000, `${kept} bytes are kept of a line of 500,000`)
  const events: SseEvent[] = []
  parser.push(Buffer.from('\ndata: a\n\n'), event => events.push(event), never)
  t.strictSame(events, [{ data: 'a' }])
  t.end()
})

t.test('what is bounded is one event, not the stream', async t => {
  const parser = new SseParser()
  const event = Buffer.from(`data: ${'x'.repeat(1024 * 1024)}\n\n`)
  let told = 0
  for (let i = 0; i < 20; i++) parser.push(event, () => told++, Boolean)
  t.equal(told, 20)
})
