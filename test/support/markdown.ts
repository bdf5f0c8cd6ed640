/** A table; what is in its cells may be Markdown. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map(cell => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

export function code(text: string): string {
  return `\`${text}\``
}

/** A fenced block of code. `info` is what stands behind the opening fence: `yaml fragment`. */
export interface Block {
  readonly info: readonly string[]
  readonly text: string
  /** Of its first line of code, from 1. */
  readonly line: number
}

/** The fenced blocks of a document, in order. */
export function blocks(markdown: string): Block[] {
  const found: Block[] = []
  let open: { info: string[]; lines: string[]; line: number } | undefined
  for (const [index, line] of markdown.split('\n').entries()) {
    const fence = /^```(.*)$/.exec(line)
    if (open === undefined) {
      if (fence !== null) open = { info: (fence[1] ?? '').trim().split(/\s+/).filter(Boolean), lines: [], line: index + 2 }
    } else if (fence !== null) {
      found.push({ info: open.info, text: `${open.lines.join('\n')}\n`, line: open.line })
      open = undefined
    } else open.lines.push(line)
  }
  if (open !== undefined) throw new Error(`a block that begins in line ${open.line} has no end`)
  return found
}

/** The document without its fenced blocks. */
export function prose(markdown: string): string {
  return markdown.replace(/^```[^\n]*\n[\s\S]*?^```$/gm, '')
}

/** Where links of a document lead, without those to other hosts. */
export function links(markdown: string): string[] {
  return [...prose(markdown).matchAll(/\]\(([^)\s]+)\)/g)].map(match => match[1] as string).filter(link => !/^[a-z]+:/.test(link))
}

/** What headings are called in links, as GitHub makes it. */
export function anchors(markdown: string): string[] {
  return [...prose(markdown).matchAll(/^#+ +(.*)$/gm)].map(match =>
    (match[1] as string)
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  )
}

/** Puts new text between `<!-- generated: NAME -->` and `<!-- /generated -->`. Throws where a name is not given, or the markers do not pair. */
export function filled(markdown: string, parts: Readonly<Record<string, string>>): string {
  const used = new Set<string>()
  const text = markdown.replace(
    /(<!-- generated: ([a-z]+) -->\n)[\s\S]*?(<!-- \/generated -->)/g,
    (_, start: string, name: string, end: string) => {
      const part = parts[name]
      if (part === undefined) throw new Error(`nothing generates ${name}`)
      used.add(name)
      return `${start}\n${part}\n\n${end}`
    },
  )
  for (const name of Object.keys(parts)) if (!used.has(name)) throw new Error(`the document has no place for ${name}`)
  return text
}
