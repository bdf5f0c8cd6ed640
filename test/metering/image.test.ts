import fc from 'fast-check'
import t from 'tap'
import { base64Bytes, dataUrl } from '../../src/metering/data-url.js'
import { imageSize, imageTokens } from '../../src/metering/image.js'

/** Headers as the formats define them; what follows is of no account. */
const png = (width: number, height: number) => {
  const bytes = Buffer.alloc(64)
  bytes.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52])
  bytes.writeUInt32BE(width, 16)
  bytes.writeUInt32BE(height, 20)
  return bytes
}
const gif = (width: number, height: number, frame = [width, height] as const) => {
  const bytes = Buffer.from('GIF89a'.padEnd(64, '\0'), 'latin1')
  bytes.writeUInt16LE(width, 6)
  bytes.writeUInt16LE(height, 8)
  // Two colours, an extension, and a frame of the whole screen.
  bytes[10] = 0x80
  bytes.set([0x21, 0xf9, 4, 0, 0, 0, 0, 0, 0x2c], 19)
  bytes.writeUInt16LE(frame[0], 32)
  bytes.writeUInt16LE(frame[1], 34)
  return bytes
}
const webp = (kind: string, write: (bytes: Buffer) => void) => {
  const bytes = Buffer.from(`RIFF\0\0\0\0WEBP${kind}`.padEnd(64, '\0'), 'latin1')
  write(bytes)
  return bytes
}
const lossy = (width: number, height: number) =>
  webp('VP8 ', bytes => {
    bytes.writeUInt16LE(width | 0x4000, 26)
    bytes.writeUInt16LE(height, 28)
  })
const lossless = (width: number, height: number) => webp('VP8L', bytes => bytes.writeUInt32LE((width - 1 + (height - 1) * 16384) >>> 0, 21))
const extended = (width: number, height: number) =>
  webp('VP8X', bytes => {
    bytes.writeUIntLE(width - 1, 24, 3)
    bytes.writeUIntLE(height - 1, 27, 3)
  })
/** With a preview of `before` bytes in front of the frame header, as cameras write it. */
const jpeg = (width: number, height: number, before = 0, frame = 0xc0) => {
  const segments: number[] = [0xff, 0xd8]
  for (let left = before; left > 0; left -= 60_000) {
    const size = Math.min(left, 60_000)
    segments.push(0xff, 0xe1, (size + 2) >> 8, (size + 2) & 255, ...new Array<number>(size).fill(0xff))
  }
  segments.push(0xff, 0xff, frame, 0, 17, 8, height >> 8, height & 255, width >> 8, width & 255, 3, 0, 0, 0)
  return Buffer.from(segments)
}
const url = (bytes: Buffer, type = 'image/png') => `data:${type};base64,${bytes.toString('base64')}`

t.test('width and height are read from the first bytes of each format', async t => {
  for (const [name, make] of Object.entries({ png, gif, lossy, lossless, extended, jpeg })) {
    const bytes = base64Bytes(make(1023, 517).toString('base64'))
    t.strictSame(imageSize(bytes), { width: 1023, height: 517 }, name)
  }
  t.strictSame(
    imageSize(base64Bytes(jpeg(4000, 3000, 200_000, 0xc2).toString('base64'))),
    { width: 4000, height: 3000 },
    'progressive, behind a preview',
  )
})

t.test('what is no image, or is cut off, has no size', async t => {
  for (const bytes of [
    png(0, 5),
    png(5, 5).subarray(0, 20),
    jpeg(5, 5, 100).subarray(0, 90),
    Buffer.from('BM'),
    Buffer.alloc(0),
    Buffer.alloc(80),
  ]) {
    t.equal(imageSize(base64Bytes(bytes.toString('base64'))), null)
  }
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 80 }),
      fc.constantFrom(png(9, 9), gif(9, 9), jpeg(9, 9), lossy(9, 9), Buffer.alloc(0)),
      (noise, start) => {
        const size = imageSize(base64Bytes(Buffer.concat([start.subarray(0, 3), noise]).toString('base64')))
        return size === null || (size.width > 0 && size.height > 0)
      },
    ),
  )
})

t.test('a size that a decoder might read otherwise is none', async t => {
  const sized = (bytes: Buffer) => imageSize(base64Bytes(bytes.toString('base64')))
  t.equal(sized(Buffer.concat([png(1, 1), Buffer.alloc(20_000_000, 7)])), null, 'twenty megabytes of one pixel')
  t.equal(sized(Buffer.concat([jpeg(5, 5), Buffer.alloc(2_000_000, 7)])), null)
  t.strictSame(sized(gif(1, 1, [4000, 3000])), { width: 4000, height: 3000 }, 'a frame beyond the screen')
  const noHeader = png(9, 9)
  noHeader[12] = 0
  t.equal(sized(noHeader), null, 'no IHDR')
  const small = jpeg(9, 9)
  const marked = (marker: number) => Buffer.concat([small.subarray(0, 2), Buffer.from([0xff, marker, 0, 2]), small.subarray(2)])
  for (const marker of [0x01, 0xd0, 0xd7, 0xd8, 0xda])
    t.equal(sized(marked(marker)), null, `marker ${marker.toString(16)}: not all see a length`)
  t.strictSame(sized(marked(0xfe)), { width: 9, height: 9 }, 'a remark')
  const base64 = jpeg(9, 9, 300).toString('base64')
  t.equal(imageSize(base64Bytes(`${base64.slice(0, 100)}\n   ${base64.slice(100)}`)), null, 'blanks in the base64')
})

t.test('base64 is read at any place without decoding what is before', async () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.nat(220), fc.nat(40), fc.nat(9), (bytes, offset, count, start) => {
      const whole = Buffer.from(bytes)
      const text = 'x'.repeat(start) + whole.toString('base64')
      const read = base64Bytes(text, start)
      return read.length === bytes.length && Buffer.compare(read.at(offset, count), whole.subarray(offset, offset + count)) === 0
    }),
  )
})

t.test('data URLs are told from addresses', async t => {
  t.equal(dataUrl('data:IMAGE/PNG;name=a;base64,AAAA')?.type, 'image/png')
  t.strictSame(dataUrl('data:image/png;base64,AAAA')?.bytes.length, 3)
  for (const other of ['https://host.example/a.png', 'data:text/plain,hello', 'data:', '', `data:${'x'.repeat(300)};base64,AAAA`])
    t.equal(dataUrl(other), null)
})

const model = (upstream: string, kind = 'openai') => ({ upstream, provider: { kind } }) as Parameters<typeof imageTokens>[2]

t.test('each family counts by its own rule', async t => {
  const rows: readonly [upstream: string, width: number, height: number, detail: string | undefined, tokens: number, kind?: string][] = [
    ['gpt-4o', 512, 512, undefined, 85 + 170],
    ['gpt-4o', 1024, 1024, 'high', 85 + 170 * 4],
    ['gpt-4o', 2048, 4096, 'auto', 85 + 170 * 6],
    ['gpt-4o', 4096, 8192, 'low', 85],
    ['gpt-4o-mini', 512, 512, undefined, 2833 + 5667],
    ['gpt-5', 1024, 1024, undefined, 70 + 140 * 4],
    ['gpt-4.1-mini', 1024, 1024, undefined, 1659],
    ['gpt-4.1-mini', 4000, 3000, undefined, 2489],
    ['gpt-4.1-nano', 4000, 3000, undefined, 3779],
    ['gpt-6', 1024, 1024, undefined, 1229],
    ['gpt-6', 1920, 1080, undefined, 2448],
    ['claude-sonnet-4-6', 280, 280, undefined, 100, 'anthropic'],
    ['claude-sonnet-4-6', 4000, 4000, undefined, 1600, 'anthropic'],
    ['claude-opus-4-7', 4000, 4000, undefined, 4784, 'anthropic'],
    ['house-model', 4000, 4000, undefined, 4784, 'anthropic'],
    ['gemini-2.5-flash', 384, 384, undefined, 258, 'gemini'],
    ['gemini-2.5-flash', 1536, 769, undefined, 258 * 4, 'gemini'],
    ['gemini-3-pro', 4000, 3000, undefined, 1120, 'gemini'],
    ['qwen2.5-vl', 280, 560, undefined, 200],
  ]
  for (const [upstream, width, height, detail, tokens, kind] of rows) {
    t.equal(imageTokens(url(png(width, height)), detail, model(upstream, kind)), tokens, `${upstream} ${width}×${height} ${detail ?? ''}`)
  }
})

t.test('an image that can not be measured counts as the most', async t => {
  const address = 'https://host.example/photo.jpg'
  for (const [upstream, most] of [
    ['gpt-4o', 1445],
    ['gpt-4.1-mini', 2489],
    ['gpt-6', 15_000],
    ['claude-haiku-4-5', 1600],
    ['claude-opus-5', 4784],
    ['gemini-2.5-flash', 258 * 64],
    ['gemini-3-pro', 1120],
    ['qwen2.5-vl', 16_384],
  ] as const) {
    t.equal(imageTokens(address, undefined, model(upstream)), most, upstream)
    t.equal(imageTokens('data:image/bmp;base64,Qk0AAAAA', undefined, model(upstream)), most, upstream)
  }
})

t.test('the size of the data is of no account', async t => {
  const small = url(png(800, 600))
  const large = url(Buffer.concat([png(800, 600), Buffer.alloc(3_000_000, 7)]))
  t.equal(imageTokens(large, 'auto', model('gpt-4o')), imageTokens(small, 'auto', model('gpt-4o')))
})
