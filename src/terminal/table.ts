import type { Amount } from '../ledger/ledger.js'
import { showAmount } from './rial.js'

export type Cell = string | number | Amount | null | undefined

export interface Column<Row> {
  readonly title: string
  readonly cell: (row: Row) => Cell
  /** It stands to the right though there may be words in all of its rows. */
  readonly right?: true
}

/**
 * A table for people: a line of titles, a line per row, and, where there is one, a line of totals below a rule. Columns are as wide as what
 * is in them; numbers stand to the right, with separators between thousands. Nothing in it can steer a terminal.
 */
export function table<Row>(columns: readonly Column<Row>[], rows: readonly Row[], total?: readonly Cell[]): string {
  const cells = rows.map(row => columns.map(({ cell }) => cell(row)))
  const all = total === undefined ? cells : [...cells, total]
  const right = columns.map((column, i) => column.right ?? all.some(line => typeof line[i] === 'number' || typeof line[i] === 'bigint'))
  const lines = [columns.map(({ title }) => title), ...cells.map(line => line.map(show)), ...(total === undefined ? [] : [total.map(show)])]
  const widths = columns.map((_, i) => Math.max(...lines.map(line => widthOf(line[i] ?? ''))))
  const printed = lines.map(line =>
    line
      .map((text, i) => pad(text, widths[i] ?? 0, right[i] === true))
      .join('  ')
      .trimEnd(),
  )
  if (total !== undefined) printed.splice(-1, 0, widths.map(width => '-'.repeat(width)).join('  '))
  return `${printed.join('\n')}\n`
}

/** One line per field: its name, and its value. */
export function fields(entries: readonly (readonly [name: string, value: Cell])[]): string {
  const width = Math.max(...entries.map(([name]) => name.length))
  const values = entries.map(([, value]) => show(value))
  const numbers = Math.max(0, ...entries.map(([, value], i) => (typeof value === 'bigint' ? (values[i] as string).length : 0)))
  return entries
    .map(
      ([name, value], i) => `${name.padEnd(width)}  ${typeof value === 'bigint' ? (values[i] as string).padStart(numbers) : values[i]}\n`,
    )
    .join('')
}

function show(cell: Cell): string {
  if (cell === null || cell === undefined || cell === '') return '-'
  return typeof cell === 'string' ? plain(cell) : showAmount(cell)
}

// Control characters, and those that turn the direction of what follows.
const STEERING = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu

/** Text that a terminal shows as it is. */
export function plain(text: string): string {
  return text.replace(STEERING, character => `\\u{${character.codePointAt(0)?.toString(16)}}`)
}

// Full-width forms and East Asian ideographs take two places; marks and joiners take none.
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/gu
const NO_WIDTH = /[\p{Mn}\p{Me}\p{Cf}]/gu

/** Places that a text takes on a terminal. */
export function widthOf(text: string): number {
  const shown = text.replace(NO_WIDTH, '')
  return [...shown].length + (shown.match(WIDE)?.length ?? 0)
}

function pad(text: string, width: number, right: boolean): string {
  const space = ' '.repeat(Math.max(0, width - widthOf(text)))
  return right ? space + text : text + space
}
