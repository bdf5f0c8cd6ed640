/*
 * How good and how fast the estimate of tokens is: `npm run build && node dist/test/bench/estimate.js`. Prints a table by class of text, for
 * the half of the fixture that the rates were not tuned on. With gpt-tokenizer at hand (`npm install --no-save gpt-tokenizer`) it counts the
 * fixture's texts again, and says so where they differ; without it, it takes the counts that are stored. Then the same after calibration: each
 * class as a model of its own, which 50 prompts of the tuned half have taught, in the frame that a chat has around them.
 */
import { readFileSync } from 'node:fs'
import { Calibration } from '../../src/metering/calibration.js'
import { textTokens } from '../../src/metering/estimate.js'
import { FAMILIES } from '../../src/metering/tokenizers.js'

interface Sample {
  readonly class: string
  readonly half: string
  readonly text: string
  readonly o200k: number
  readonly cl100k: number
}

/** What a chat has around a message and before its answer. */
const FRAME = 7
/** So often the prompts are drawn: figures are of all draws. */
const DRAWS = 10

const root = new URL('../../../', import.meta.url)
const samples = readFileSync(new URL('test/fixtures/estimate/texts.jsonl', root), 'utf8')
  .trimEnd()
  .split('\n')
  .map(line => JSON.parse(line) as Sample)

for (const family of ['o200k', 'cl100k'] as const) {
  const count = await tokenizer(family)
  if (count === null) console.log(`${family}: stored counts (npm install --no-save gpt-tokenizer to count again)`)
  else {
    const differing = samples.filter(sample => count(sample.text) !== sample[family]).length
    console.log(`${family}: counted again, ${differing === 0 ? 'all as stored' : `${differing} differ from what is stored`}`)
  }
  const judged = samples.filter(sample => sample.half === 'judge')
  console.log(row(['class', 'texts', 'error', 'bias', '> 10 % low', 'worst low', 'worst high']))
  for (const name of [...new Set(judged.map(sample => sample.class))].sort()) {
    table(
      name,
      judged.filter(sample => sample.class === name),
      family,
    )
  }
  table('all', judged, family)
  console.log()
  calibrated('one text each', family, 1, 1)
  calibrated('two to eight texts joined', family, 2, 8)
}

const mebibyte = repeated(samples.map(sample => sample.text).join('\n'), 1024 * 1024)
const english = repeated(
  samples
    .filter(sample => sample.class === 'english')
    .map(sample => sample.text)
    .join('\n'),
  1024 * 1024,
)
for (const family of FAMILIES)
  console.log(`1 MiB in ${family}: ${speed(mebibyte, family)} ms of all classes, ${speed(english, family)} ms of English`)

function table(name: string, of: readonly Sample[], family: 'o200k' | 'cl100k'): void {
  const ratios = of.map(sample => textTokens(sample.text, family) / sample[family])
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
  const percent = (value: number) => `${(value * 100).toFixed(1)} %`
  console.log(
    row([
      name,
      String(of.length),
      percent(mean(ratios.map(ratio => Math.abs(ratio - 1)))),
      percent(mean(ratios) - 1),
      percent(ratios.filter(ratio => ratio < 0.9).length / ratios.length),
      Math.min(...ratios).toFixed(2),
      Math.max(...ratios).toFixed(2),
    ]),
  )
}

/** Prompts of so many texts each, which count as they do alone, but for what joins them: one token. Always the same ones. */
function prompts(of: readonly Sample[], count: number, least: number, most: number, next: (below: number) => number): Sample[] {
  return Array.from({ length: count }, () => {
    const parts = Array.from({ length: least + next(most - least + 1) }, () => of[next(of.length)] as Sample)
    const sum = (name: 'o200k' | 'cl100k') => parts.reduce((total, part) => total + part[name] + 1, -1)
    return { ...(parts[0] as Sample), text: parts.map(part => part.text).join('\n\n'), o200k: sum('o200k'), cl100k: sum('cl100k') }
  })
}

function generator(seed: number): (below: number) => number {
  let state = seed
  return below => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31
    return Math.floor((state / 2 ** 31) * below)
  }
}

interface Judged {
  readonly raw: number
  readonly typical: number
  readonly held: number
}

function calibrated(title: string, family: 'o200k' | 'cl100k', least: number, most: number): void {
  console.log(`${family}, after calibration, ${title}; all figures over actual input`)
  console.log(row(['class', 'prompts', 'raw error', 'error', 'held', 'held low', 'held > 1.5']))
  const all: Judged[] = []
  for (const name of [...new Set(samples.map(sample => sample.class))].sort()) {
    const half = (which: string) => samples.filter(sample => sample.class === name && sample.half === which)
    const next = generator(20_241)
    const judged: Judged[] = []
    for (let draw = 0; draw < DRAWS; draw++) {
      const calibration = new Calibration()
      for (const { text, [family]: actual } of prompts(half('tune'), 50, least, most, next))
        calibration.learn((actual + FRAME) / (textTokens(text, family) + FRAME))
      const { typical, upper } = calibration.correction
      for (const { text, [family]: actual } of most === 1 ? half('judge') : prompts(half('judge'), 50, least, most, next)) {
        const [raw, count] = [textTokens(text, family) + FRAME, actual + FRAME]
        judged.push({ raw: raw / count, typical: Math.round(raw * typical) / count, held: Math.round(raw * upper) / count })
      }
    }
    all.push(...judged)
    line(name, judged)
  }
  line('all', all)
  console.log()
}

function line(name: string, of: readonly Judged[]): void {
  const mean = (value: (one: Judged) => number) => of.reduce((sum, one) => sum + value(one), 0) / of.length
  const percent = (value: (one: Judged) => number) => `${(mean(value) * 100).toFixed(1)} %`
  console.log(
    row([
      name,
      String(of.length),
      percent(one => Math.abs(one.raw - 1)),
      percent(one => Math.abs(one.typical - 1)),
      mean(one => one.held).toFixed(2),
      percent(one => (one.held < 1 ? 1 : 0)),
      percent(one => (one.held > 1.5 ? 1 : 0)),
    ]),
  )
}

function row(cells: readonly string[]): string {
  return cells.map((cell, i) => (i === 0 ? cell.padEnd(16) : cell.padStart(12))).join('')
}

function speed(text: string, family: (typeof FAMILIES)[number]): string {
  let best = Number.POSITIVE_INFINITY
  for (let i = 0; i < 20; i++) {
    const start = performance.now()
    textTokens(text, family)
    best = Math.min(best, performance.now() - start)
  }
  return best.toFixed(1)
}

function repeated(text: string, bytes: number): string {
  const once = Buffer.from(text)
  const whole = Buffer.concat(new Array<Buffer>(Math.ceil(bytes / once.length)).fill(once))
  return whole.subarray(0, bytes).toString('utf8')
}

async function tokenizer(family: 'o200k' | 'cl100k'): Promise<((text: string) => number) | null> {
  const name = `gpt-tokenizer/encoding/${family}_base`
  try {
    const { encode } = (await import(name)) as { encode: (text: string, options: object) => readonly number[] }
    return text => encode(text, { disallowedSpecial: new Set() }).length
  } catch (error) {
    if ((error as { code?: string }).code === 'ERR_MODULE_NOT_FOUND') return null
    throw error
  }
}
