/** A value as JSON text for programs: Maps are objects, amounts are numbers with all their digits, `undefined` fields are left out. `indent` 2 for a whole document, 0 for a line. */
export function json(value: unknown, indent: 0 | 2 = 2): string {
  return write(value, indent, '')
}

function write(value: unknown, indent: number, margin: string): string {
  if (typeof value === 'bigint') return String(value)
  if (value === null || typeof value !== 'object') return JSON.stringify(value) ?? 'null'
  const list = Array.isArray(value)
  const inner = margin + ' '.repeat(indent)
  const parts = list
    ? value.map(item => write(item, indent, inner))
    : (value instanceof Map ? [...value] : Object.entries(value))
        .filter(([, field]) => field !== undefined)
        .map(([name, field]) => `${JSON.stringify(String(name))}:${indent === 0 ? '' : ' '}${write(field, indent, inner)}`)
  const [open, close] = list ? ['[', ']'] : ['{', '}']
  if (parts.length === 0) return open + close
  return indent === 0 ? `${open}${parts.join(',')}${close}` : `${open}\n${inner}${parts.join(`,\n${inner}`)}\n${margin}${close}`
}

/** One line of CSV (RFC 4180, but for its line break, which is `\n`). */
export function csvLine(cells: readonly (string | number | bigint | boolean | null | undefined)[]): string {
  return `${cells.map(quoted).join(',')}\n`
}

function quoted(cell: string | number | bigint | boolean | null | undefined): string {
  const text = cell === null || cell === undefined ? '' : String(cell)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
