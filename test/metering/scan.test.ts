import { readFileSync } from 'node:fs'
import { type Profiler, Session } from 'node:inspector'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import t from 'tap'
import { CLASSES, LETTERS as PLACES, UPPER } from '../../src/metering/characters.js'
import { FEATURES } from '../../src/metering/features.js'
import { scan, scanForAll } from '../../src/metering/scan.js'
import { LETTERS } from '../../src/metering/tokenizers.js'
import { textSamples } from '../support/estimate-samples.js'
import { plainScan } from '../support/plain-scan.js'

const texts = textSamples().map(sample => sample.text)
// Each feature has a rate of its own, so that one that is counted for another shows.
const [rates, others] = [7919, 104_729].map(factor =>
  Uint16Array.from({ length: FEATURES }, (_, feature) => (feature * factor) % 65_521),
) as [Uint16Array, Uint16Array]

function same(text: string): boolean {
  const costs = Float64Array.of(0, 17)
  scanForAll(text, [rates, others], LETTERS, costs)
  const [first, second] = [rates, others].map(by => plainScan(text, by, LETTERS)) as [number, number]
  return scan(text, rates, LETTERS) === first && costs[0] === first && costs[1] === second + 17
}

const of = (units: string) => fc.constantFrom(...units)
const piece = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 30 }),
  fc.string({ unit: 'binary-ascii', maxLength: 60 }),
  fc.integer({ min: 0, max: 0xffff }).map(unit => String.fromCharCode(unit)),
  fc.tuple(fc.constantFrom(...texts), fc.nat(2000), fc.nat(60)).map(([text, at, length]) => text.slice(at, at + length)),
  fc.string({ unit: of('abcXYZ019+/=_- é.Ж'), maxLength: 90 }),
  fc.string({ unit: of('aB1'), minLength: 20, maxLength: 90 }),
  fc.string({ unit: of(' \n\t\r.='), maxLength: 40 }),
  fc.tuple(of(' \n\t\r=-aA1!Ж漢"🙂\u0301٣'), fc.nat(80)).map(([unit, times]) => unit.repeat(times)),
  fc.string({ unit: of('aB9 \n\t.éÉжی\u200c漢か가🙂\ud800\udc00\u0301ހሀﷺ٣๓\r=_-'), maxLength: 80 }),
)
const mixed = fc.array(piece, { maxLength: 14 }).map(pieces => pieces.join(''))

/** What the compiler makes one loop of, and what that calls. */
const WAYS = [
  'scanStretch',
  'longWord',
  'followsSign',
  'inRunAt',
  'countSigns',
  'countOther',
  'encodedEnd',
  'countEncoded',
  'count',
  'note',
]

t.test('before the first scan each way of it is gone, so that none is left out when it is compiled', async t => {
  const ways = covered(() => scan('', rates, LETTERS))
    .filter(({ url }) => /\/src\/metering\/(scan|signs|encoded|counts)\.js$/.test(url))
    .flatMap(({ url, functions }) => {
      const source = readFileSync(fileURLToPath(url), 'utf8')
      return functions.map(({ functionName, ranges }) => ({
        name: functionName,
        left: ranges.filter(({ count }) => count === 0).map(({ startOffset, endOffset }) => source.slice(startOffset, endOffset)),
      }))
    })
    .filter(({ name }) => WAYS.includes(name))
  t.same(ways.map(({ name }) => name).sort(), [...WAYS].sort())
  t.same(
    ways.flatMap(({ left }) => left),
    ['continue;'],
    'but the one that no text takes',
  )
})

function covered(work: () => void): readonly Profiler.ScriptCoverage[] {
  const session = new Session()
  session.connect()
  session.post('Profiler.enable')
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  work()
  let scripts: readonly Profiler.ScriptCoverage[] = []
  session.post('Profiler.takePreciseCoverage', (error, { result }) => {
    if (error !== null) throw error
    scripts = result
  })
  session.post('Profiler.stopPreciseCoverage')
  session.disconnect()
  return scripts
}

t.test('costs to the hundredth what a plain scan says: the texts of the fixture, alone and together', async t => {
  for (const text of texts) t.ok(same(text), text.slice(0, 40))
  for (const joint of ['', ' ', '\n', '\n\n', 'x', '9']) t.ok(same(texts.join(joint)), JSON.stringify(joint))
})

t.test('and any mixture of texts, signs, blanks, scripts and what looks encoded', async () => {
  fc.assert(fc.property(mixed, same), { numRuns: 3000 })
})

t.test('and texts of several pieces, wherever these are cut', async () => {
  fc.assert(
    fc.property(mixed, fc.integer({ min: 30_000, max: 100_000 }), (text, length) =>
      same(text === '' ? '' : text.repeat(Math.ceil(length / text.length)).slice(0, length)),
    ),
    { numRuns: 30 },
  )
})

t.test('other letters than those of the last scan are looked up anew', async t => {
  const word = 'Wonderful words.'
  const none = { triples: new Uint8Array(32_768).fill(15), rare: new Uint8Array(65_536) }
  const before = scan(word, rates, LETTERS)
  t.equal(scan(word, rates, none), plainScan(word, rates, none))
  t.not(scan(word, rates, none), before)
  t.equal(scan(word, rates, LETTERS), before)
})

t.test('the place of a lower-case letter is its class, so that a word is followed by either', async t => {
  t.ok(CLASSES.every((kind, unit) => kind >= UPPER || PLACES[unit] === kind))
})
