import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import t from 'tap'
import { FAMILIES, isFamily } from '../../src/config/tokenizer-families.js'
import { familyOf, promptTokens, textTokens, tokenIds } from '../../src/metering/estimate.js'
import { FEATURES } from '../../src/metering/features.js'
import { scan } from '../../src/metering/scan.js'
import { TextSum } from '../../src/metering/text.js'
import { type Family, LETTERS } from '../../src/metering/tokenizers.js'
import { INLINE_BYTES_MAX } from '../../src/pieces.js'

const root = new URL('../../../', import.meta.url)

interface Sample {
  readonly class: string
  readonly half: 'tune' | 'judge'
  readonly o200k: number
  readonly cl100k: number
  readonly text: string
}

const lines = (name: string) =>
  readFileSync(new URL(`test/fixtures/estimate/${name}`, root), 'utf8')
    .trimEnd()
    .split('\n')
const samples = lines('texts.jsonl').map(line => JSON.parse(line) as Sample)
const judged = samples.filter(sample => sample.half === 'judge')

/** Composed of the judged samples, some kilobytes each, by a generator that always gives the same. */
function composed(count: number): Sample[] {
  let seed = 20_241
  const next = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
    return Math.floor((seed / 2 ** 31) * below)
  }
  return Array.from({ length: count }, () => {
    const parts = Array.from({ length: 4 + next(30) }, () => judged[next(judged.length)] as Sample)
    // A part counts as it does alone, but for the two line breaks: one token each time, in both.
    const sum = (name: 'o200k' | 'cl100k') => parts.reduce((total, part) => total + part[name] + 1, -1)
    return { class: 'composed', half: 'judge', text: parts.map(part => part.text).join('\n\n'), o200k: sum('o200k'), cl100k: sum('cl100k') }
  })
}

function errors(all: readonly Sample[], family: 'o200k' | 'cl100k') {
  const ratios = all.map(sample => textTokens(sample.text, family) / sample[family])
  return {
    mean: ratios.reduce((sum, ratio) => sum + Math.abs(ratio - 1), 0) / ratios.length,
    tooLow: ratios.filter(ratio => ratio < 0.9).length / ratios.length,
    bias: ratios.reduce((sum, ratio) => sum + ratio, 0) / ratios.length - 1,
  }
}

t.test('texts have the features that the rates were measured by: who changes them measures the rates again', async t => {
  const texts = samples.map(sample => sample.text)
  const text = texts.join('\n') + texts.join(' ')
  // Each feature has a rate of its own, so that one that moves shows.
  const rates = Uint16Array.from({ length: FEATURES }, (_, feature) => (feature * 7919) % 509)
  const digest = createHash('sha256')
    .update(String(scan(text, rates, LETTERS)))
    .digest('hex')
  t.equal(digest.slice(0, 16), '6d8d45f949ed5432')
})

t.test('the fixture is large, and split in two halves of the same classes', async t => {
  t.ok(samples.length >= 450)
  const classes = (half: string) => [...new Set(samples.filter(sample => sample.half === half).map(sample => sample.class))].sort()
  t.strictSame(classes('tune'), classes('judge'))
  t.ok(classes('judge').length >= 20)
})

for (const family of ['o200k', 'cl100k'] as const) {
  t.test(`${family}: texts that it was not tuned on are estimated within 15 %, rarely too low`, async t => {
    const { mean, tooLow, bias } = errors(judged, family)
    t.ok(mean <= 0.15, `mean absolute error ${(mean * 100).toFixed(1)} %`)
    t.ok(tooLow <= 0.02, `${(tooLow * 100).toFixed(1)} % of texts more than 10 % too low`)
    t.ok(bias > 0 && bias < 0.15, `slightly too many: ${(bias * 100).toFixed(1)} %`)
  })

  t.test(`${family}: long texts are estimated within 15 %, never more than 5 % too low`, async t => {
    for (const sample of composed(60)) {
      const ratio = textTokens(sample.text, family) / sample[family]
      t.ok(ratio > 0.95 && ratio < 1.15, `${sample.text.length} characters: ${ratio.toFixed(3)}`)
    }
  })
}

const adversarial: readonly (readonly [name: string, text: string, least: number])[] = [
  ['base64 without a break', Buffer.from(Array.from({ length: 3000 }, (_, i) => (i * 7919) & 255)).toString('base64'), 4000 / 1.75],
  ['hex', Buffer.from(Array.from({ length: 1000 }, (_, i) => (i * 7919) & 255)).toString('hex'), 1000],
  ['digits', '8675309'.repeat(300), 700],
  ['letters that no word has', 'zqxjkvbw'.repeat(100), 280],
  ['Cyrillic without spaces', 'щыэюжфцъ'.repeat(100), 320],
  ['rare Chinese', '\u9f98\u9ea4\u7c72\u9f49'.repeat(100), 700],
  ['hieroglyphs', '\u{13000}\u{13001}\u{13002}'.repeat(50), 400],
  ['lines of one space', '\n '.repeat(300), 250],
]

t.test('what no one writes is not estimated far too low', async t => {
  for (const [name, text, least] of adversarial) t.ok(textTokens(text, 'cl100k') >= least, `${name}: ${textTokens(text, 'cl100k')}`)
})

t.test('a path, a long name or a rule of dashes is no base64', async t => {
  t.ok(textTokens('/usr/share/documentation/packages/examples/index', 'o200k') < 16)
  t.ok(textTokens('maximum_number_of_concurrent_connections_per_host', 'o200k') < 16)
  t.ok(textTokens('-'.repeat(120), 'o200k') < 10)
})

const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 300 }),
  fc.string({ unit: 'grapheme', maxLength: 200 }),
  fc.array(fc.constantFrom(...samples.map(sample => sample.text)), { maxLength: 3 }).map(parts => parts.join('')),
  fc
    .array(
      fc.constantFrom(
        'a',
        'B',
        '9',
        ' ',
        '\n',
        '\t',
        '.',
        '{"',
        'é',
        'ж',
        'ی',
        '\u200c',
        '漢',
        'か',
        '가',
        '🙂',
        '\ud800',
        '\u0301',
        'ހ',
        'ሀ',
        'ﷺ',
        '٣',
        '๓',
      ),
      { maxLength: 200 },
    )
    .map(parts => parts.join('')),
)

t.test('is a whole number, from 0 to the bytes of the text', async () => {
  fc.assert(
    fc.property(anyText, fc.constantFrom(...FAMILIES), (text, family) => {
      const tokens = textTokens(text, family)
      return (
        Number.isSafeInteger(tokens) &&
        tokens >= 0 &&
        tokens <= Buffer.byteLength(text) &&
        (family !== 'bytes' || tokens === Buffer.byteLength(text))
      )
    }),
    { numRuns: 3000 },
  )
})

t.test(
  'falls by no more than two tokens when something is added, and the whole is no more than its parts, where their bytes are no bound',
  async () => {
    fc.assert(
      fc.property(anyText, anyText, fc.constantFrom(...FAMILIES), (a, b, family) => {
        const whole = textTokens(`${a} ${b}`, family)
        const [first, second] = [textTokens(a, family), textTokens(b, family)]
        // A part that is counted as its bytes would come to more; in the whole there may be room for it.
        const cut = first === Buffer.byteLength(a) || second === Buffer.byteLength(b)
        return whole >= first - 2 && (cut || whole <= (first + second) * 1.03 + 6)
      }),
      { numRuns: 3000 },
    )
  },
)

t.test('several texts together are no word across their edges, and cost less chance than one by one', async t => {
  const sum = new TextSum('o200k')
  for (const word of ['get', 'Weather', 'of', 'Tehran']) sum.add(word)
  t.ok(sum.tokens >= 4)
  const many = judged.slice(0, 50)
  const together = new TextSum('o200k')
  for (const sample of many) together.add(sample.text)
  t.ok(together.tokens < many.reduce((total, sample) => total + textTokens(sample.text, 'o200k'), 0))
})

/** Milliseconds: the least of several, since other processes are busy, too. */
function least(rounds: number, text: string): number {
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < rounds; round++) {
    const start = performance.now()
    textTokens(text, 'o200k')
    best = Math.min(best, performance.now() - start)
  }
  return best
}

const filled = (unit: string, length: number) => unit.repeat(Math.ceil(length / unit.length)).slice(0, length)

/** Runs that a scan could look at more than once. */
const RUNS = [
  'a',
  'aB3',
  '\u0436',
  '漢',
  ' ',
  '\n',
  '\n ',
  '! ',
  '=',
  '🙂',
  '\u0301',
  `${'x'.repeat(31)}.`,
  '٣',
  'aB3dE5',
  '-_',
  '\t ',
  'A',
  '; \n',
]

t.test('takes time in proportion to the text, whatever it is: two, four and eight times as much take so many times as long', async t => {
  const length = 50_000
  for (const unit of RUNS) {
    for (const times of [2, 4, 8]) {
      // Twice the proportion, for the noise; a square would be four times as much at the least, and 64 times at the most.
      let ratio = Number.POSITIVE_INFINITY
      for (let tries = 0; tries < 20 && ratio > 1.6 * times; tries++)
        ratio = least(5, filled(unit, times * length)) / least(5, filled(unit, length))
      t.ok(ratio < 1.6 * times, `${JSON.stringify(unit.slice(0, 6))} × ${times}: ${ratio.toFixed(1)}`)
    }
  }
})

t.test('takes time in proportion to texts of any pieces', async () => {
  const piece = fc.oneof(
    fc.constantFrom(...RUNS),
    fc.constantFrom(...RUNS).map(unit => filled(unit, 40)),
    fc.string({ unit: 'binary', maxLength: 8 }),
  )
  fc.assert(
    fc.property(fc.array(piece, { minLength: 1, maxLength: 6 }), pieces => {
      const unit = pieces.join('') || 'a'
      for (let tries = 0; tries < 20; tries++) if (least(3, filled(unit, 320_000)) < 16 * least(3, filled(unit, 40_000))) return true
      return false
    }),
    { numRuns: 60 },
  )
})

t.test('what is estimated on the main thread takes less than a fifth of the 50 ms by which it may delay others', async t => {
  for (const unit of [...RUNS, ...samples.filter((_, i) => i % 20 === 0).map(sample => sample.text)]) {
    const text = filled(unit, INLINE_BYTES_MAX)
    let best = Number.POSITIVE_INFINITY
    for (let tries = 0; tries < 20 && best > 10; tries++) best = Math.min(best, least(5, text))
    t.ok(best < 10, `${JSON.stringify(unit.slice(0, 20))}: ${best.toFixed(2)} ms`)
  }
})

t.test('a text that is scanned in pieces counts as it does in one', async t => {
  const words = 'The quick brown fox jumps over the lazy dog '.repeat(3000)
  const parts = words.match(/.{1,22000}/gs) ?? []
  const apart = new TextSum('o200k')
  for (const part of parts) apart.add(part)
  t.ok(Math.abs(textTokens(words, 'o200k') - apart.tokens) <= parts.length)
  for (const unit of ['🙂', 'x'.repeat(40), 'aGVsbG8gd29ybGQ9', '漢字']) {
    const long = textTokens(unit.repeat(40_000), 'o200k')
    const tenth = textTokens(unit.repeat(4000), 'o200k')
    t.ok(Math.abs(long / (10 * tenth) - 1) < 0.02, `${unit.slice(0, 4)}: ${long}, ${tenth}`)
  }
})

t.test('prompts: texts are estimated, token ids counted', async t => {
  t.equal(promptTokens('Hello', 'o200k'), 1)
  t.equal(promptTokens([1, 2, 3], 'o200k'), 3)
  t.equal(promptTokens([[1, 2, 3], [4]], 'o200k'), 4)
  t.equal(promptTokens(['Hello', 'Hello'], 'bytes'), 10)
  t.equal(promptTokens(undefined, 'o200k'), 0)
  t.equal(promptTokens('', 'o200k'), 0)
  t.strictSame(
    [
      undefined,
      'Hello',
      [1, 2, 3],
      [
        [1, 2],
        ['Hello', 4],
      ],
    ].map(tokenIds),
    [0, 0, 3, 3],
  )
})

t.test('the tokenizer of a model: its setting, its name, the kind of its provider', async t => {
  const rows: readonly [name: string, kind: string, expected: Family][] = [
    ['gpt-4o-mini', 'openai', 'o200k'],
    ['gpt-4.1-nano', 'openai', 'o200k'],
    ['gpt-5', 'openai', 'o200k'],
    ['o3-mini', 'openai', 'o200k'],
    ['openai/o1', 'openai', 'o200k'],
    ['gpt-oss-120b', 'openai', 'o200k'],
    ['chatgpt-4o-latest', 'openai', 'o200k'],
    ['gpt-4', 'openai', 'cl100k'],
    ['gpt-4-turbo', 'openai', 'cl100k'],
    ['gpt-4-0613', 'openai', 'cl100k'],
    ['gpt-3.5-turbo', 'openai', 'cl100k'],
    ['text-embedding-3-small', 'openai', 'cl100k'],
    ['claude-sonnet-5', 'anthropic', 'claude'],
    ['anthropic.claude-opus-4-8-v1:0', 'openai', 'claude'],
    ['gemini-3-flash', 'gemini', 'gemini'],
    ['Meta-Llama-3.1-70B-Instruct', 'openai', 'llama'],
    ['deepseek-chat', 'openai', 'llama'],
    ['mistral-large-latest', 'mistral', 'llama'],
    ['echo', 'sandbox', 'o200k'],
    ['house-model', 'anthropic', 'claude'],
    ['house-model', 'openai', 'cl100k'],
  ]
  const model = (upstream: string, kind: string, tokenizer?: string | null) =>
    ({ id: `p/${upstream}`, upstream, provider: { kind }, ...(tokenizer === undefined ? {} : { tokenizer }) }) as Parameters<
      typeof familyOf
    >[0]
  for (const [name, kind, expected] of rows) t.equal(familyOf(model(name, kind)), expected, name)
  t.equal(familyOf(model('gpt-4o', 'openai', 'bytes')), 'bytes')
  t.equal(familyOf(model('gpt-4o', 'openai', null)), 'o200k')
  t.throws(() => familyOf(model('gpt-4o', 'openai', 'word')), /Unknown tokenizer "word"; one of o200k/)
  t.ok(FAMILIES.every(isFamily))
  t.notOk(isFamily('constructor'))
})
