import chatCompletions from '../../src/endpoints/chat-completions.js'
import { Calibration } from '../../src/metering/calibration.js'
import { textTokens } from '../../src/metering/estimate.js'
import { Tally } from '../../src/metering/tally.js'
import { TextSum } from '../../src/metering/text.js'
import { toolTokens } from '../../src/metering/tools.js'
import { generator, type Sample, type ToolSample, VOCABULARIES, type Vocabulary } from '../support/estimate-samples.js'

/** Parts of one. `low`: texts whose estimate is below nine tenths of what they are; after calibration, below it at all. `high`: above one and a half. */
export interface Figures {
  readonly count: number
  readonly error: number
  readonly p95: number
  readonly low: number
  readonly high: number
}

/** One class of texts, or all. `single`: prompts of one text; `joined`: of two to eight. */
export interface Row {
  readonly name: string
  readonly raw: Figures
  readonly single: Figures
  readonly joined: Figures
  readonly output: Figures
  readonly outputAfter: Figures
}

export type Bars = Partial<Omit<Figures, 'count'>>
export type RowBars = { readonly [name in Exclude<keyof Row, 'name'>]: Bars }
const OPENAI: RowBars = {
  raw: { error: 0.15, low: 0.02 },
  single: { error: 0.07, low: 0.01, high: 0.05 },
  joined: { error: 0.07, low: 0.01, high: 0.05 },
  output: { error: 0.15, low: 0.02 },
  outputAfter: { error: 0.07 },
}
/** What a model has taught makes up for what its family says of it; twice as many may be held low. */
const OTHER: RowBars = {
  raw: {},
  single: { error: 0.07, low: 0.02, high: 0.05 },
  joined: { error: 0.07, low: 0.02, high: 0.05 },
  output: {},
  outputAfter: { error: 0.08 },
}
/** What has to hold for all classes together. Mistral's is like no family here, and shows what a model comes to whose family is not known. */
export const BARS: ReadonlyMap<Vocabulary, RowBars> = new Map([
  ['o200k', OPENAI],
  ['cl100k', OPENAI],
  ['llama', OTHER],
  ['claude', OTHER],
  ['gemini', OTHER],
])

/** What a chat has around a message and before its answer. */
const FRAME = 7
/** So many prompts teach a model. */
const TAUGHT = 50
/** So often they are drawn: figures are of all draws. */
const DRAWS = 10

/** The half that was not tuned on, by class; then all of it. Each class is a model of its own, which prompts of the tuned half have taught. */
export function judge(samples: readonly Sample[], vocabulary: Vocabulary): Row[] {
  const all: Ratios = { raw: [], single: [], joined: [], output: [], outputAfter: [] }
  const rows = [...new Set(samples.map(sample => sample.class))].sort().map(name => {
    const ratios = ratiosOf(
      samples.filter(sample => sample.class === name),
      vocabulary,
    )
    for (const kind of KINDS) for (const ratio of ratios[kind]) all[kind].push(ratio)
    return rowOf(name, ratios)
  })
  return [...rows, rowOf('all', all)]
}

const KINDS = ['raw', 'single', 'joined', 'output', 'outputAfter'] as const
/** What was estimated over what it is: the likeliest, and what is held. */
type Ratio = readonly [likeliest: number, held: number]
type Ratios = { readonly [kind in (typeof KINDS)[number]]: Ratio[] }

function ratiosOf(samples: readonly Sample[], vocabulary: Vocabulary): Ratios {
  const family = VOCABULARIES[vocabulary]
  const tuned = samples.filter(sample => sample.half === 'tune')
  const judged = samples.filter(sample => sample.half === 'judge')
  const next = generator(20_241)
  const ratios: Ratios = { raw: [], single: [], joined: [], output: [], outputAfter: [] }
  for (const { text, [vocabulary]: actual } of judged) {
    ratios.raw.push(twice(textTokens(text, family) / actual))
    ratios.output.push(twice(answered(text, family, 1, next) / actual))
  }
  for (const [kind, least, most] of [
    ['single', 1, 1],
    ['joined', 2, 8],
  ] as const) {
    for (let draw = 0; draw < DRAWS; draw++) {
      const calibration = new Calibration()
      for (const { text, [vocabulary]: actual } of prompts(tuned, TAUGHT, least, most, next))
        calibration.learn((actual + FRAME) / (textTokens(text, family) + FRAME))
      const { typical, upper } = calibration.correction
      for (const { text, [vocabulary]: actual } of most === 1 ? judged : prompts(judged, TAUGHT, least, most, next)) {
        const [raw, count] = [textTokens(text, family) + FRAME, actual + FRAME]
        ratios[kind].push([Math.round(raw * typical) / count, Math.round(raw * upper) / count])
        if (kind === 'single') ratios.outputAfter.push(twice(answered(text, family, typical, next) / actual))
      }
    }
  }
  return ratios
}

function twice(ratio: number): Ratio {
  return [ratio, ratio]
}

/** Prompts of so many texts each, which count as they do alone, but for what joins them: one token. */
function prompts(of: readonly Sample[], count: number, least: number, most: number, next: (below: number) => number): Sample[] {
  return Array.from({ length: count }, () => {
    const parts = Array.from({ length: least + next(most - least + 1) }, () => of[next(of.length)] as Sample)
    const sums = Object.keys(VOCABULARIES).map(name => [name, parts.reduce((sum, part) => sum + part[name as Vocabulary] + 1, -1)])
    return { ...(parts[0] as Sample), ...Object.fromEntries(sums), text: parts.map(part => part.text).join('\n\n') }
  })
}

/** What is charged for an answer that streams the text in small pieces and reports no usage. */
function answered(text: string, family: (typeof VOCABULARIES)[Vocabulary], factor: number, next: (below: number) => number): number {
  const tally = new Tally(chatCompletions, family, false)
  for (let at = 0; at < text.length; ) {
    const end = at + 1 + next(12)
    tally.add({ choices: [{ index: 0, delta: { content: text.slice(at, end) } }] })
    at = end
  }
  return tally.usage({ input: 0, factor }, true).output
}

function rowOf(name: string, ratios: Ratios): Row {
  const after = (all: readonly Ratio[]) => figures(all, 1)
  const before = (all: readonly Ratio[]) => figures(all, 0.9)
  return {
    name,
    raw: before(ratios.raw),
    single: after(ratios.single),
    joined: after(ratios.joined),
    output: before(ratios.output),
    outputAfter: before(ratios.outputAfter),
  }
}

function figures(ratios: readonly Ratio[], lowest: number): Figures {
  const errors = ratios.map(([ratio]) => Math.abs(ratio - 1)).sort((a, b) => a - b)
  const part = (is: (held: number) => boolean) => ratios.filter(([, held]) => is(held)).length / ratios.length
  return {
    count: ratios.length,
    error: errors.reduce((sum, error) => sum + error, 0) / errors.length,
    p95: errors[Math.ceil(errors.length * 0.95) - 1] as number,
    low: part(held => held < lowest),
    high: part(held => held > 1.5),
  }
}

/** Names of the bars that do not hold. */
export function broken({ name, ...row }: Row, bars: RowBars): string[] {
  return KINDS.flatMap(kind =>
    (Object.entries(bars[kind]) as [keyof Bars, number][])
      .filter(([figure, bar]) => !(row[kind][figure] <= bar))
      .map(([figure, bar]) => `${name}: ${kind} ${figure} is ${row[kind][figure]}, the bar ${bar}`),
  )
}

/** Definitions of tools: what is estimated over what OpenAI's models count for them. They must be held, and cost no quarter more. */
export interface ToolFigures {
  readonly vocabulary: 'o200k' | 'cl100k'
  readonly count: number
  readonly least: number
  readonly mean: number
  readonly most: number
}
export const TOOL_BARS = { least: 1, most: 1.25 } as const

export function judgeTools(samples: readonly ToolSample[], vocabulary: ToolFigures['vocabulary']): ToolFigures {
  const ratios = samples.map(({ tools, [vocabulary]: actual }) => {
    const sum = new TextSum(vocabulary)
    return (toolTokens(tools, sum) + sum.tokens) / actual
  })
  return {
    vocabulary,
    count: ratios.length,
    least: Math.min(...ratios),
    mean: ratios.reduce((sum, ratio) => sum + ratio, 0) / ratios.length,
    most: Math.max(...ratios),
  }
}
