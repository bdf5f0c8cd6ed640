import fc from 'fast-check'
import t from 'tap'
import type { JsonObject } from '../../src/json.js'
import { patch } from '../../src/upstream/patch.js'
import { ContentTemplate } from '../../src/upstream/template.js'

const tell = (text: string): string => patch(text, { model: 'public/name', id: 'chatcmpl-x' })
const chunkOf = (content: string, more: object = {}, delta: object = {}): JsonObject =>
  ({
    id: 'c1',
    object: 'chat.completion.chunk',
    model: 'm',
    choices: [{ index: 0, delta: { content, ...delta }, logprobs: null, finish_reason: null }],
    ...more,
  }) as unknown as JsonObject

/** A template that has learned `chunk`, written so. */
function learned(chunk: JsonObject, written = JSON.stringify(chunk)): ContentTemplate {
  const template = new ContentTemplate()
  template.learn(written, chunk, tell)
  return template
}

const texts = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.string({ unit: 'grapheme', maxLength: 20 }),
  fc.constantFrom('', '"', '\\', '\\"', '\n', '","role":"x', '"content":"', '}', 'ریال', '\ud800'),
)
/** As different servers write it: with and without spaces, with everything that can be escaped escaped. */
const writers = fc.constantFrom<(value: unknown) => string>(
  value => JSON.stringify(value),
  value => JSON.stringify(value).replaceAll('":', '": ').replaceAll(',"', ', "'),
  value => JSON.stringify(value).replace(/[\u0080-\uffff]/g, c => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`),
)
const extras = fc.record(
  { created: fc.nat(), system_fingerprint: texts, usage: fc.constantFrom(null), content: texts, choice: fc.constant({ content: 'no' }) },
  { requiredKeys: [] },
)

t.test('a chunk that differs in its content alone is what parsing and patching would have made of it', async t => {
  let matched = 0
  fc.assert(
    fc.property(texts, fc.array(texts, { minLength: 1, maxLength: 5 }), extras, writers, (first, contents, more, write) => {
      const template = learned(chunkOf(first, more), write(chunkOf(first, more)))
      for (const content of contents) {
        const written = write(chunkOf(content, more))
        const found = template.match(written)
        if (found === null) continue
        matched++
        if (JSON.stringify(found.chunk) !== JSON.stringify(JSON.parse(written))) throw new Error(written)
        if (found.told !== tell(written)) throw new Error(`${found.told} is not ${tell(written)}`)
      }
    }),
    { numRuns: 2000 },
  )
  t.ok(matched > 1000, `${matched} were told without being parsed`)
})

t.test('whatever is changed in a chunk: it is told as it would be, or it has to be parsed', async () => {
  const piece = fc.oneof(texts, fc.constantFrom('"', '\\', '{', '}', ',', ' ', '\t', '\u0000', '"finish_reason":"stop",', '"content":"b",'))
  fc.assert(
    fc.property(texts, extras, fc.nat(400), fc.nat(6), piece, (content, more, at, cut, put) => {
      const template = learned(chunkOf('first', more))
      const whole = JSON.stringify(chunkOf(content, more))
      const text = whole.slice(0, at) + put + whole.slice(at + cut)
      const found = template.match(text)
      if (found === null) return true
      // JSON.parse throws where it is none.
      return JSON.stringify(found.chunk) === JSON.stringify(JSON.parse(text)) && found.told === tell(text)
    }),
    { numRuns: 5000 },
  )
})

t.test('the usual stream is not parsed after its second text', async t => {
  const template = learned(chunkOf('Hel'))
  t.match(template.match(JSON.stringify(chunkOf('lo "you"\n'))), {
    chunk: { model: 'm', choices: [{ delta: { content: 'lo "you"\n' } }] },
    told: /"id":"chatcmpl-x",.*"model":"public\/name",.*lo \\"you\\"\\n/,
  })
})

t.test('what says more than a content is no template', async t => {
  const finished = chunkOf('x')
  Object.assign((finished.choices as unknown as JsonObject[])[0] as object, { finish_reason: 'stop' })
  for (const chunk of [
    finished,
    chunkOf('x', { usage: { prompt_tokens: 1 } }),
    chunkOf('x', { x_groq: {} }),
    chunkOf('x', {}, { role: 'assistant' }),
    chunkOf('x', {}, { tool_calls: [] }),
    chunkOf('x', { choices: [] }),
    chunkOf('x', { choices: [{ delta: { reasoning_content: 'x' } }] }),
  ]) {
    t.equal(learned(chunk).match(JSON.stringify(chunk)), null, JSON.stringify(chunk))
  }
  // Of two members of one name the last counts.
  const twice = '{"choices":[{"index":0,"delta":{"content":"a","content":"b"},"finish_reason":null}]}'
  t.equal(learned(JSON.parse(twice), twice).match(twice), null)
})

t.test('a stream whose chunks differ in more is not tried for ever', async t => {
  const template = new ContentTemplate()
  let told = 0
  for (let i = 0; i < 20; i++) {
    const chunk = chunkOf('x', { obfuscation: `o${i}` })
    template.learn(JSON.stringify(chunk), chunk, text => {
      told++
      return tell(text)
    })
  }
  t.equal(told, 4)
})
