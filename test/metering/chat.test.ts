import { readFileSync } from 'node:fs'
import t from 'tap'
import type { JsonObject } from '../../src/json.js'
import { audioTokens } from '../../src/metering/audio.js'
import { chatTokens } from '../../src/metering/chat.js'
import { fileText, fileTokens } from '../../src/metering/media.js'
import { TextSum } from '../../src/metering/text.js'
import { toolTokens } from '../../src/metering/tools.js'
import { sampleModel } from '../support/sample-call.js'

const gpt = sampleModel({ upstream: 'gpt-4o' })
const tokens = (body: JsonObject, model = gpt) => chatTokens(body, model).input
const said = (content: JsonObject['content'], more: JsonObject = {}) => ({ messages: [{ role: 'user', content, ...more }] })

interface Row {
  readonly o200k: number
  readonly cl100k: number
  readonly tools: readonly JsonObject[]
}
const root = new URL('../../../', import.meta.url)
const rows = readFileSync(new URL('test/fixtures/estimate/tools.jsonl', root), 'utf8')
  .trimEnd()
  .split('\n')
  .map(line => JSON.parse(line) as Row)

t.test('messages cost what was measured of the wire', async t => {
  const hello = { role: 'user', content: 'Hello' }
  for (const [n, measured] of [8, 13, 18, 23, 28].entries()) {
    const over = tokens({ messages: new Array<JsonObject>(n + 1).fill(hello) }) - measured
    t.ok(over === 0 || over === 1, `${n + 1} messages: ${over} too many`)
  }
})

t.test('definitions of tools are never too low, and at most 25 % too high', async t => {
  for (const family of ['o200k', 'cl100k'] as const) {
    for (const [i, row] of rows.entries()) {
      const sum = new TextSum(family)
      const ratio = (toolTokens(row.tools, sum) + sum.tokens) / row[family]
      t.ok(ratio >= 1 && ratio <= 1.25, `${family} ${i}: ${ratio.toFixed(2)}`)
    }
  }
})

t.test('a schema counts wherever its text stands', async t => {
  const words = 'The address of the customer including street, number, floor and postal code. '.repeat(40)
  const address: JsonObject = {
    type: 'object',
    description: words,
    properties: Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`field_${i}`, { type: 'string', description: words }])),
  }
  const tool = (parameters: JsonObject): JsonObject => ({
    ...said('Hi'),
    tools: [{ type: 'function', function: { name: 'save', description: 'd', parameters } }],
  })
  const inline = tokens(tool({ type: 'object', properties: { address } }))
  const places: Readonly<Record<string, JsonObject>> = {
    definitions: { $defs: { Address: address }, properties: { address: { $ref: '#/$defs/Address' } } },
    'alternatives at the root': { anyOf: [address] },
    'other fields': { properties: { a: { type: 'object', additionalProperties: address } } },
    'items by place': { properties: { a: { type: 'array', prefixItems: [address] } } },
    'a list of items': { properties: { a: { type: 'array', items: [address] } } },
    conditions: { if: { properties: {} }, else: address },
    patterns: { patternProperties: { '^a': address } },
    'no schema': { properties: { a: [address] as unknown as JsonObject } },
    prototypes: { properties: JSON.parse(JSON.stringify({ proto: address }).replace('proto', '__proto__')) as JsonObject },
  }
  for (const [place, schema] of Object.entries(places)) {
    const held = tokens(tool({ type: 'object', ...schema }))
    t.ok(held > 0.95 * inline && held < 1.5 * inline, `${place}: ${held}, inline ${inline}`)
  }
  const shallow = tokens(tool({ type: 'object', properties: { a: { type: 'string' } } }))
  for (const keyword of ['default', 'examples', 'title', 'const', 'pattern', 'format', '$comment', 'constructor', 'x'.repeat(9000)]) {
    const held = tokens(tool({ type: 'object', properties: { a: { type: 'string', [keyword]: words.repeat(10) } } }))
    t.ok(held > shallow + 5000, `${keyword.slice(0, 20)}: ${held}`)
  }
  const known = { type: 'object', properties: { a: { type: 'string', format: 'date', minLength: 1 } }, additionalProperties: false }
  t.equal(tokens(tool({ ...known, required: ['a'] })), shallow, 'what a declaration does not show is nothing')
  t.ok(tokens(tool({ ...known, required: ['a', 'a', words] })) > shallow + 500, 'but what is required and no field is')
})

t.test('each thing that a provider counts adds to the estimate', async t => {
  const plain = tokens(said('What is the weather in Tehran?'))
  const schema = { type: 'object', properties: { city: { type: 'string', description: 'Where' } } }
  const tool = { type: 'function', function: { name: 'get_weather', description: 'Tells the weather', parameters: schema } }
  const call = { id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: '{"city":"Tehran"}' } }
  const more: readonly (readonly [name: string, body: JsonObject, least: number])[] = [
    ['name', said('What is the weather in Tehran?', { name: 'mina' }), 2],
    ['a tool', { ...said('What is the weather in Tehran?'), tools: [tool] }, 30],
    [
      'a custom tool',
      { ...said('What is the weather in Tehran?'), tools: [{ type: 'custom', custom: { name: 'sql', description: 'Runs SQL' } }] },
      15,
    ],
    ['a legacy function', { ...said('What is the weather in Tehran?'), functions: [tool.function] }, 30],
    [
      'a forced tool',
      { ...said('What is the weather in Tehran?'), tool_choice: { type: 'function', function: { name: 'get_weather' } } },
      5,
    ],
    [
      'an answer schema',
      { ...said('What is the weather in Tehran?'), response_format: { type: 'json_schema', json_schema: { name: 'w', schema } } },
      20,
    ],
    [
      'a call',
      { messages: [...said('What is the weather in Tehran?').messages, { role: 'assistant', content: null, tool_calls: [call] }] },
      14,
    ],
    [
      'a result',
      { messages: [...said('What is the weather in Tehran?').messages, { role: 'tool', tool_call_id: 'call_1', content: '14 °C' }] },
      7,
    ],
    [
      'reasoning handed back',
      {
        messages: [
          ...said('What is the weather in Tehran?').messages,
          { role: 'assistant', content: 'a', reasoning_content: 'I must look it up first.' },
        ],
      },
      11,
    ],
    [
      'an image',
      said([
        { type: 'text', text: 'What is the weather in Tehran?' },
        { type: 'image_url', image_url: { url: 'https://a.example/b.png', detail: 'low' } },
      ]),
      85,
    ],
    [
      'a part of a new kind',
      said([
        { type: 'text', text: 'What is the weather in Tehran?' },
        { type: 'note', note: { body: 'bring an umbrella' } },
      ]),
      4,
    ],
  ]
  for (const [name, body, least] of more) t.ok(tokens(body) >= plain + least, `${name}: ${tokens(body) - plain}`)
  t.equal(tokens({ ...said('Hello'), response_format: { type: 'text' } }), tokens(said('Hello')))
  t.equal(tokens({ ...said('Hello'), tools: [] }), tokens(said('Hello')))
  t.equal(tokens({ ...said('Hello'), tool_choice: 'auto' }), tokens(said('Hello')))
})

t.test('what images, audio and files are is told apart: no text, and no words around it', async t => {
  const image = { type: 'image_url', image_url: { url: 'https://acme.example/lamp.png', detail: 'low' } }
  const audio = { type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' } }
  const pdf = { type: 'file', file: { file_id: 'file-1' } }
  const words = { type: 'text', text: 'What is this?' }
  const text = { type: 'file', file: { file_data: `data:text/plain;base64,${Buffer.from('a lamp').toString('base64')}` } }
  t.strictSame(chatTokens(said([words, text]), gpt).fixed, 0)
  for (const part of [image, audio, pdf]) {
    const { input, fixed = 0 } = chatTokens(said([words, part]), gpt)
    t.ok(fixed > 0, part.type)
    t.equal(input - fixed, tokens(said([words])), part.type)
  }
})

t.test('base64 is never counted as text', async t => {
  const data = Buffer.alloc(300_000, 'lamp').toString('base64')
  const parts: readonly JsonObject[] = [
    { type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } },
    { type: 'image_url', image_url: `data:image/png;base64,${data}` },
    { type: 'image', source: `data:image/webp;base64,${data}` },
  ]
  for (const part of parts) t.ok(tokens(said([part])) < 2000)
})

t.test('other providers wrap more around messages and tools', async t => {
  const body = { ...said('Hello'), tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } }] }
  const claude = sampleModel({ upstream: 'claude-sonnet-5' }, { kind: 'anthropic' })
  t.ok(tokens(body, claude) > 600, 'Claude gets a hidden text about tools')
  for (const upstream of ['gemini-3-flash', 'llama-3.3-70b']) t.ok(tokens(body, sampleModel({ upstream })) > tokens(body))
  t.ok(tokens(body, sampleModel({ tokenizer: 'bytes' })) >= JSON.stringify(body.tools).length)
})

/** A WAV file of 16 bits, two channels, 8 kHz: 32,000 bytes a second, whatever it says itself. */
const wav = (said = 32_000, before = Buffer.alloc(0)) => {
  const fmt = Buffer.from('fmt \x10\0\0\0\x01\0\x02\0'.padEnd(24, '\0'), 'latin1')
  fmt.writeUInt32LE(8000, 12)
  fmt.writeUInt32LE(said, 16)
  fmt.writeUInt16LE(4, 20)
  fmt.writeUInt16LE(16, 22)
  return Buffer.concat([Buffer.from('RIFF\0\0\0\0WAVE', 'latin1'), before, fmt], 320_044)
}
/** Frames of an MP3 of 44.1 kHz; `index` 9 is 128 kbit/s. */
const mp3 = (frames: number, index = 9) => {
  const length = Math.floor((144_000 * ([0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320][index] as number)) / 44_100)
  return Buffer.concat(new Array<Buffer>(frames).fill(Buffer.from([0xff, 0xfb, index << 4, 0, ...Buffer.alloc(length - 4)])))
}
const spoken = (frames: number) => Math.ceil(((frames * 1152) / 44_100) * 32)
const tag = (...length: number[]) => Buffer.from([0x49, 0x44, 0x33, 4, 0, 0, ...length])

t.test('audio counts by its length', async t => {
  t.equal(audioTokens(wav().toString('base64')), Math.ceil((320_044 / 32_000) * 32))
  t.equal(audioTokens(wav(32_000, Buffer.from('JUNK\x04\0\0\0abcd', 'latin1')).toString('base64')), 321, 'behind another chunk')
  t.equal(audioTokens(mp3(384).toString('base64')), spoken(384), '128 kbit/s: ten seconds')
  t.equal(audioTokens(Buffer.concat([tag(0, 0, 1, 0), Buffer.alloc(128), mp3(384)]).toString('base64')), spoken(384), 'behind a tag')
  t.equal(audioTokens(`data:audio/mpeg;base64,${mp3(384).toString('base64')}`, 'mp3'), spoken(384), 'a data URL')
  t.equal(audioTokens(Buffer.alloc(20_000, 1).toString('base64')), 320, 'unknown: the thinnest speech')
  t.equal(audioTokens(''), 0)
})

t.test('audio that lies about its length counts as what is played, or as the thinnest speech', async t => {
  const noise = Buffer.alloc(200_000, 7)
  const thinnest = 3200
  const lies: readonly (readonly [what: string, bytes: Buffer, least: number, format?: string])[] = [
    ['a tag longer than the file', Buffer.concat([tag(127, 127, 127, 127), noise]), thinnest],
    ['a tag whose length is none', Buffer.concat([tag(0, 0, 0, 255), noise]), thinnest],
    ['a WAV file with a rate of 2^32-1', wav(0xffff_ffff), 321],
    ['a first frame of 320 kbit/s before others of 32', Buffer.concat([mp3(1, 14), mp3(1000, 1)]), spoken(1000)],
    ['one frame before noise', Buffer.concat([mp3(1, 14), noise]), thinnest],
    ['a WAV header before an MP3', Buffer.concat([wav().subarray(0, 44), mp3(1000, 1)]), spoken(1000), 'mp3'],
    ['MP3 in a WAV file', Buffer.concat([wav().subarray(0, 20), Buffer.from([0x55]), wav().subarray(21, 44), mp3(1000, 1)]), spoken(1000)],
  ]
  for (const [what, bytes, least, format] of lies) {
    const tokens = audioTokens(bytes.toString('base64'), format)
    t.ok(tokens >= least && tokens < 1.1 * least + 50, `${what}: ${tokens}`)
  }
  const fast = wav()
  fast.writeUInt32LE(0xffff_ffff, 24)
  t.equal(audioTokens(fast.toString('base64')), Math.ceil((320_044 / 384_000) * 32), 'no sound is fatter than 48 kHz')
  const slow = wav()
  slow.writeUInt32LE(1, 24)
  t.equal(audioTokens(slow.toString('base64')), 34_200 * 32, 'nor longer than a prompt takes')
  t.equal(audioTokens('https://acme.example/speech.wav'), 34_200 * 32, 'elsewhere it may be any')
  const said_ = said([{ type: 'input_audio', input_audio: { data: slow.toString('base64'), format: 'wav' } }])
  t.equal(chatTokens(said_, sampleModel({ context: 8000 })).fixed, 8000, 'nor than the context')
})

t.test('files count as pages, text files as text', async t => {
  const pdf = (bytes: number) => `data:application/pdf;base64,${Buffer.alloc(bytes).toString('base64')}`
  t.equal(fileText(pdf(100)), null)
  t.equal(fileTokens(pdf(100), sampleModel()), 3000)
  t.equal(fileTokens(pdf(10_000), sampleModel()), 9000)
  t.equal(fileTokens(pdf(9_000_000), sampleModel()), 300_000)
  t.equal(fileTokens(null, sampleModel()), 300_000, 'a file that the provider already has')
  t.equal(fileTokens(null, sampleModel({ context: 128_000 })), 128_000)
  const note = 'The bakery closes at seven. '.repeat(40)
  const file = `data:text/plain;base64,${Buffer.from(note).toString('base64')}`
  t.equal(fileTokens(file, sampleModel()), 0)
  t.equal(fileText(file), note)
  const content = [{ type: 'file', file: { file_data: file } }]
  const [written, attached] = [note, content].map(content => chatTokens({ messages: [{ role: 'user', content }] }, sampleModel()))
  t.strictSame(attached, written)
})

t.test('media count as what they are, whatever a client calls them', async t => {
  const gemini = sampleModel({ upstream: 'gemini-3-flash', context: 1_048_576 }, { kind: 'gemini' })
  const film = `data:video/mp4;base64,${Buffer.alloc(1_000_000).toString('base64')}`
  const speech = `data:audio/ogg;base64,${Buffer.alloc(200_000).toString('base64')}`
  const paper = `data:application/pdf;base64,${Buffer.alloc(100_000).toString('base64')}`
  const note = 'The bakery closes at seven. '.repeat(400)
  const base64 = Buffer.from(note).toString('base64')
  const rows: readonly (readonly [what: string, part: JsonObject, least: number])[] = [
    ['a film as an image', { type: 'image_url', image_url: { url: film } }, 30_000],
    ['speech as an image', { type: 'image_url', image_url: { url: speech } }, 3200],
    ['a document as an image', { type: 'image_url', image_url: { url: paper } }, 75_000],
    ['a document elsewhere as an image', { type: 'image_url', image_url: { url: 'https://acme.example/a.PDF?x' } }, 300_000],
    ['text as an image', { type: 'image_url', image_url: { url: `data:text/plain;base64,${base64}` } }, 2400],
    ['a film of a new kind', { type: 'video_url', video_url: { url: film } }, 30_000],
    ['a film elsewhere', { type: 'video_url', video_url: { url: 'https://acme.example/watch' } }, 1_048_576],
    ['speech elsewhere', { type: 'audio_url', audio_url: { url: 'https://acme.example/hear' } }, 1_048_576],
    ['a document of a new kind', { type: 'document_url', document_url: 'https://acme.example/read' }, 300_000],
    ['an image of a new kind', { type: 'input_image', image_url: 'https://acme.example/see' }, 1120],
    ['text of a new kind', { type: 'note', note: `data:text/plain;base64,${base64}` }, 2400],
    ['a file elsewhere', { type: 'file', file: { file_data: 'https://acme.example/a' } }, 300_000],
    ['a file that is known, and data', { type: 'file', file: { file_id: 'file-1', file_data: '' } }, 300_000],
    ['a film as a file', { type: 'file', file: { file_data: film } }, 30_000],
    ['text whose type says nothing', { type: 'file', file: { file_data: `data:application/octet-stream;base64,${base64}` } }, 2400],
    ['text as base64 alone', { type: 'file', file: { file_data: base64 } }, 2400],
    ['text as it is', { type: 'file', file: { file_data: note } }, 2400],
    ['text in an address', { type: 'file', file: { file_data: `data:text/plain,${note}` } }, 2400],
  ]
  for (const [what, part, least] of rows) {
    const held = tokens(said([part]), gemini)
    t.ok(held >= least && held < 1.2 * least + 3000, `${what}: ${held}`)
  }
  const spoken = { messages: [...said('Hi').messages, { role: 'assistant', content: null, audio: { id: 'audio_1' } }] }
  t.equal(chatTokens(spoken, gpt).fixed, 4096, 'an answer that the model has spoken')
})
