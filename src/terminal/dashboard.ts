import { formatDuration } from '../config/durations.js'
import type { Figures, Sums } from './figures.js'
import { showAmount } from './rial.js'
import { type Column, plain, table, widthOf } from './table.js'

/** A line of the screen. `title`: it stands out; `quiet`: it stands back. */
export interface ScreenLine {
  readonly text: string
  readonly look?: 'title' | 'quiet' | 'bad'
}

export interface Size {
  readonly columns: number
  readonly rows: number
}

/**
 * What `top` shows, cut to a size: never wider, never longer, whatever names come to. Where there is little room, tables lose rows before
 * anything above them goes.
 */
export function dashboard(figures: Figures, source: string, gone: boolean, size: Size): ScreenLine[] {
  const head = [...headOf(figures, source, gone), { text: '' }, ...summary(figures)]
  const room = Math.max(0, size.rows - head.length)
  // Each table: an empty line, its titles, and its share of the rows, one at least.
  const tables = [
    lined(table(sumColumns('KEY', figures.span), figures.keys)),
    lined(table(sumColumns('MODEL', figures.span), figures.models)),
    lined(table(SLOWEST, figures.slowest)),
  ]
    .filter(lines => lines.length > 1)
    .slice(0, Math.floor(room / 3))
  const share = tables.length === 0 ? 0 : Math.floor(room / tables.length) - 2
  const below: ScreenLine[] = []
  let spare = Math.max(0, room - tables.length * (share + 2))
  for (const lines of tables) {
    const wanted = lines.length - 1
    const given = Math.min(wanted, share + spare)
    spare += share - given
    below.push({ text: '' }, { text: lines[0] ?? '', look: 'title' }, ...lines.slice(1, given + 1).map(text => ({ text })))
  }
  return [...head, ...below].slice(0, size.rows).map(line => ({ ...line, text: cut(line.text, size.columns) }))
}

function headOf({ state, span, missed }: Figures, source: string, gone: boolean): ScreenLine[] {
  const version = state === null ? '' : ` ${state.version}`
  const first: ScreenLine = {
    text: `model-gateway${version}  last ${Math.round(span / 1000)} s  (q ends it)  ${plain(source)}`,
    look: 'title',
  }
  if (gone) return [first, { text: 'The gateway has gone away; waiting for it.', look: 'bad' }]
  if (missed > 0) return [first, { text: `${showAmount(missed)} requests are not in these figures: they came too fast.`, look: 'bad' }]
  return [first]
}

function summary({ total, state, codes, span }: Figures): ScreenLine[] {
  const held =
    state === null
      ? '-'
      : `${showAmount(state.held_rial)} Rial in ${showAmount(state.open_holds)} holds${state.oldest_hold_at === null ? '' : `, the oldest for ${age(state.at - state.oldest_hold_at)}`}; ${showAmount(state.in_flight)} under way`
  const refusals = codes.map(({ code, status, count }) => `${status} ${plain(code)} ${showAmount(count)}`)
  return [
    { text: `requests  ${rate(total.requests, span)}/s, ${showAmount(total.refused)} refused, ${showAmount(total.failed)} failed` },
    { text: `tokens    ${rate(total.inputTokens, span)}/s in, ${rate(total.outputTokens, span)}/s out` },
    { text: `spend     ${showAmount(total.rial)} Rial, ${showAmount((total.rial * 60_000n) / BigInt(Math.round(span)))} a minute` },
    { text: `held      ${held}` },
    { text: `time      ${ms(total.median)} median, ${ms(total.slow)} at 95 %` },
    { text: `refusals  ${refusals.length === 0 ? 'none' : refusals.join(', ')}`, ...(refusals.length === 0 ? { look: 'quiet' } : {}) },
  ]
}

function sumColumns(title: string, span: number): Column<Sums>[] {
  return [
    { title, cell: row => row.name },
    { title: 'REQ/S', right: true, cell: row => rate(row.requests, span) },
    { title: 'REFUSED', cell: row => row.refused },
    { title: 'FAILED', cell: row => row.failed },
    { title: 'IN/S', right: true, cell: row => rate(row.inputTokens, span) },
    { title: 'OUT/S', right: true, cell: row => rate(row.outputTokens, span) },
    { title: 'RIAL', cell: row => row.rial },
    { title: 'MEDIAN', right: true, cell: row => ms(row.median) },
    { title: '95 %', right: true, cell: row => ms(row.slow) },
  ]
}

const SLOWEST: readonly Column<Figures['slowest'][number]>[] = [
  { title: 'SLOWEST', right: true, cell: line => ms(line.duration_ms) },
  { title: 'FIRST', right: true, cell: line => ms(line.ttft_ms) },
  { title: 'KEY', cell: line => line.key },
  { title: 'MODEL', cell: line => line.model },
  { title: 'TOKENS', right: true, cell: line => `${line.input_tokens ?? 0}→${line.output_tokens ?? 0}` },
  { title: 'RIAL', cell: line => line.cost_rial ?? 0n },
  { title: 'ID', cell: line => line.request_id },
]

function lined(text: string): string[] {
  return text.trimEnd().split('\n')
}

/** Per second, with a fraction where it matters. */
function rate(count: number, span: number): string {
  const each = (count * 1000) / span
  return each === 0 ? '0' : each < 10 ? each.toFixed(1) : showAmount(Math.round(each))
}

function ms(duration: number | null): string {
  if (duration === null) return '-'
  if (duration < 10) return `${duration.toFixed(1)} ms`
  return duration < 10_000 ? `${Math.round(duration)} ms` : `${(duration / 1000).toFixed(1)} s`
}

function age(duration: number): string {
  return duration < 60_000 ? ms(Math.max(0, duration)) : formatDuration(Math.floor(duration / 1000) * 1000)
}

/** At most `columns` places of a text; where something is missing, its last place says so. */
function cut(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text
  let short = ''
  for (const character of text) {
    if (widthOf(short + character) > columns - 1) break
    short += character
  }
  return columns < 1 ? '' : `${short}…`
}
