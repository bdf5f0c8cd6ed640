import { type Sample, type ToolSample, VOCABULARIES, type Vocabulary } from '../support/estimate-samples.js'
import { table } from '../support/markdown.js'
import { BARS, type Figures, judge, judgeTools, type Row, type RowBars, TOOL_BARS } from './estimate-quality.js'

/** How good estimates are, as Markdown: a table for each vocabulary, and one of tools. The same each time. */
export function qualityTables(samples: readonly Sample[], tools: readonly ToolSample[]): string {
  const names = Object.keys(VOCABULARIES) as Vocabulary[]
  return [...names.map(name => vocabularyTable(name, judge(samples, name))), toolTable(tools)].join('\n\n')
}

const HEAD = [
  'class',
  'texts',
  'error',
  'p95',
  '10 % low',
  '→ error',
  'p95',
  'held low',
  'held > 1.5',
  '→ joined',
  'low',
  '> 1.5',
  'output',
  '10 % low',
  '→ output',
]

export function vocabularyTable(name: Vocabulary, rows: readonly Row[]): string {
  const family = VOCABULARIES[name]
  const bars = BARS.get(name)
  return `**${name}**${family === name ? '' : `, estimated as \`${family}\``}\n\n${table(HEAD, [...rows.map(cells), ...(bars === undefined ? [] : [barRow(bars)])])}`
}

function cells({ name, raw, single, joined, output, outputAfter }: Row): string[] {
  return [
    name,
    String(raw.count),
    ...shown(raw, 'error', 'p95', 'low'),
    ...shown(single, 'error', 'p95', 'low', 'high'),
    ...shown(joined, 'error', 'low', 'high'),
    ...shown(output, 'error', 'low'),
    ...shown(outputAfter, 'error'),
  ]
}

function barRow(bars: RowBars): string[] {
  const at = (kind: keyof RowBars, ...of: (keyof Figures)[]) =>
    of.map(figure => {
      const bar = figure === 'count' ? undefined : bars[kind][figure]
      return bar === undefined ? '' : `≤ ${percent(bar)}`
    })
  return [
    'bar',
    '',
    ...at('raw', 'error', 'p95', 'low'),
    ...at('single', 'error', 'p95', 'low', 'high'),
    ...at('joined', 'error', 'low', 'high'),
    ...at('output', 'error', 'low'),
    ...at('outputAfter', 'error'),
  ]
}

function shown(figures: Figures, ...of: Exclude<keyof Figures, 'count'>[]): string[] {
  return of.map(figure => percent(figures[figure]))
}

function percent(part: number): string {
  return `${(part * 100).toFixed(1)} %`
}

function toolTable(samples: readonly ToolSample[]): string {
  const rows = (['o200k', 'cl100k'] as const).map(vocabulary => {
    const { count, least, mean, most } = judgeTools(samples, vocabulary)
    return [vocabulary, String(count), least.toFixed(2), mean.toFixed(2), most.toFixed(2)]
  })
  return `**tools**\n\n${table(['vocabulary', 'requests', 'least', 'mean', 'most'], [...rows, ['bar', '', `≥ ${TOOL_BARS.least}`, '', `≤ ${TOOL_BARS.most}`]])}`
}
