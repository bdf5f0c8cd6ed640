import { type Alias, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, type Pair, parseDocument, Scalar, type YAMLMap } from 'yaml'
import type { Path, Place, PlacedProblem, Problem } from './problems.js'

/**
 * Text that came out of `${…}`: what type it is decides whoever knows what is expected. `text` is `null` where the variable could not be
 * read; that has been reported. In quotes it may be a number all the same: YAML allows `${RPM}` inside { } and [ ] in no other way.
 */
export class Filled {
  constructor(
    readonly text: string | null,
    readonly quoted: boolean = false,
  ) {}
}

/** Fills the variables of one scalar. The result may be told again of the same text. */
export type Fill = (text: string) => { readonly text: string } | { readonly problem: string }

/** A YAML file as plain values, and where each of them stands. */
export interface Document {
  /** Objects, arrays, strings, numbers, booleans, null; `Filled` where a scalar held a variable. */
  readonly value: unknown
  /** Syntax errors: with one of them `value` is undefined. */
  readonly errors: readonly PlacedProblem[]
  /** Repeated and forbidden names, anchors and variables that do not exist. */
  readonly problems: readonly Problem[]
  /** A path that does not exist stands where the nearest above it does. */
  locate(path: Path, part?: 'name'): Place
  /** The scalar at a path exactly as it is written, variables filled: `2.50`, not 2.5. Undefined where there is no scalar. */
  text(path: Path): string | undefined
  /** The scalar at a path as it is written, `${…}` and all, wherever an alias took it from. Undefined where it holds no variable. */
  template(path: Path): string | undefined
}

/** Reads YAML 1.2 (core schema) with merge keys (`<<`). `fill` is called for each scalar that contains `${`. */
export function readDocument(text: string, fill: Fill): Document {
  const lines = new LineCounter()
  const parsed = parseDocument(text, {
    lineCounter: lines,
    version: '1.2',
    schema: 'core',
    strict: true,
    prettyErrors: false,
    keepSourceTokens: false,
    // It compares every name with all before it: 0.8 s for 10,000 keys. The reader below uses a set.
    uniqueKeys: false,
  })
  const at = (offset: number) => lines.linePos(offset)
  const errors = [...parsed.errors, ...parsed.warnings]
    .map(error => ({ ...at(error.pos[0]), path: '', message: sentence(error.message, lineAt(text, error.pos[0])) }))
    // The first tells; what the parser did not expect behind it, in its line or in all that follow, only comes of it.
    .filter(({ line, message }, index, all) => index === 0 || (line !== all[index - 1]?.line && !message.includes('in YAML stream')))
  const reader = new Reader(fill, at)
  const root = parsed.contents as Node | null
  const value = errors.length > 0 ? undefined : reader.read(root, [])
  return {
    value,
    errors,
    problems: reader.problems,
    locate: (path, part) => at(reader.offset(root, path, part)),
    text: path => reader.text(root, path),
    template: path => reader.template(root, path),
  }
}

function sentence(message: string, line: string): string {
  if (message.includes('multiple documents')) return 'YAML: a second document begins here: the config is one, without a line of --- inside'
  const plain = message.includes('flow-error-end') ? 'a { or [ is not closed' : `${message.charAt(0).toLowerCase()}${message.slice(1)}`
  const unquoted = line.replace(/"[^"]*"|'[^']*'/g, '')
  const hint = /[{[].*\$\{/.test(unquoted) ? ` (inside { } and [ ], put \${…} in quotes)` : ''
  return `YAML: ${plain}${hint}`
}

function lineAt(text: string, offset: number): string {
  const end = text.indexOf('\n', offset)
  return text.slice(text.lastIndexOf('\n', offset - 1) + 1, end < 0 ? undefined : end)
}

class Reader {
  readonly problems: Problem[] = []
  readonly #anchors = new Map<string, Node>()
  readonly #targets = new Map<Alias, Node>()
  readonly #values = new Map<Node, unknown>()
  readonly #filled = new Map<Scalar, string>()
  readonly #entries = new Map<YAMLMap, Map<string, Pair>>()

  constructor(
    readonly fill: Fill,
    readonly at: (offset: number) => Place,
  ) {}

  read(node: Node | null, path: Path): unknown {
    if (node === null) return null
    if (isAlias(node)) return this.#alias(node, path)
    let value: unknown
    if (isScalar(node)) value = this.#scalar(node, path)
    else if (isMap(node)) value = this.#map(node, path)
    else if (isSeq(node)) value = node.items.map((item, index) => this.read(item as Node, [...path, index]))
    const { anchor } = node
    // Known only from here on: an anchor inside itself would have no end.
    if (anchor !== undefined) {
      this.#anchors.set(anchor, node)
      this.#values.set(node, value)
    }
    return value
  }

  #alias(node: Alias, path: Path): unknown {
    const target = this.#anchors.get(node.source)
    if (target === undefined) {
      this.problems.push({ path, message: `there is no anchor &${node.source} before this` })
      return new Filled(null)
    }
    this.#targets.set(node, target)
    return this.#values.get(target)
  }

  #scalar(node: Scalar, path: Path): unknown {
    const { value } = node
    if (typeof value !== 'string' || !value.includes('${')) return value
    const filled = this.fill(value)
    if ('problem' in filled) {
      this.problems.push({ path, message: filled.problem })
      return new Filled(null)
    }
    this.#filled.set(node, filled.text)
    return new Filled(filled.text, node.type !== Scalar.PLAIN)
  }

  #map(node: YAMLMap, path: Path): Record<string, unknown> {
    const value: Record<string, unknown> = {}
    const merged: Record<string, unknown>[] = []
    for (const pair of node.items) {
      const name = nameOf(pair)
      const below = [...path, name ?? '']
      if (name === undefined) this.problems.push({ path, message: 'names in a map must be text' })
      else if (name === '__proto__') this.problems.push({ path: below, message: 'this name is not allowed', part: 'name' })
      else if (isMerge(pair)) merged.push(...this.#merge(pair, below))
      else if (Object.hasOwn(value, name))
        this.problems.push({ path: below, message: 'stands here twice: which one counts?', place: this.#start(pair) })
      else value[name] = this.read(pair.value as Node | null, below)
    }
    // What stands in the map itself wins over what is merged, and an earlier map of `<<` over a later one.
    for (const other of merged)
      for (const [name, inherited] of Object.entries(other)) if (!Object.hasOwn(value, name)) value[name] = inherited
    return value
  }

  #start(pair: Pair): Place {
    return this.at((pair.key as Node).range?.[0] ?? 0)
  }

  #merge(pair: Pair, path: Path): Record<string, unknown>[] {
    const value = this.read(pair.value as Node | null, path)
    const maps = Array.isArray(value) ? value : [value]
    const wrong = maps.some(map => typeof map !== 'object' || map === null || Array.isArray(map) || map instanceof Filled)
    if (!wrong) return maps
    if (!(value instanceof Filled && value.text === null)) this.problems.push({ path, message: '<< takes a map, or a list of maps' })
    return []
  }

  offset(root: Node | null, path: Path, part: 'name' | undefined): number {
    let node = root
    let offset = node?.range?.[0] ?? 0
    for (const [depth, step] of path.entries()) {
      node = this.#resolved(node)
      let next: Node | null | undefined
      if (isMap(node)) {
        const pair = this.#pair(node, String(step))
        if (pair === undefined) break
        next = pair.value as Node | null
        const key = (pair.key as Node).range?.[0] ?? offset
        const name = (part === 'name' && depth === path.length - 1) || isBlock(next) || isEmpty(next)
        offset = name ? key : (next?.range?.[0] ?? key)
      } else if (isSeq(node)) {
        next = node.items[Number(step)] as Node | undefined
        if (next === undefined) break
        offset = next.range?.[0] ?? offset
      }
      if (next === undefined) break
      node = next
    }
    return offset
  }

  text(root: Node | null, path: Path): string | undefined {
    const node = this.#scalarAt(root, path)
    if (node === undefined) return undefined
    return this.#filled.get(node) ?? (typeof node.value === 'string' ? node.value : node.source)
  }

  template(root: Node | null, path: Path): string | undefined {
    const node = this.#scalarAt(root, path)
    return node !== undefined && this.#filled.has(node) ? String(node.value) : undefined
  }

  #scalarAt(root: Node | null, path: Path): Scalar | undefined {
    let node: Node | null | undefined = this.#resolved(root)
    for (const step of path) {
      if (isMap(node)) node = this.#pair(node, String(step))?.value as Node | null | undefined
      else if (isSeq(node)) node = node.items[Number(step)] as Node | undefined
      else return undefined
      node = this.#resolved(node ?? null)
    }
    return isScalar(node) ? node : undefined
  }

  #resolved(node: Node | null): Node | null {
    return isAlias(node) ? (this.#targets.get(node) ?? null) : node
  }

  /** The entry of a name, merged ones included. The first of two that are the same. */
  #pair(map: YAMLMap, name: string): Pair | undefined {
    let entries = this.#entries.get(map)
    if (entries === undefined) {
      entries = new Map()
      for (const pair of map.items) {
        const key = nameOf(pair)
        if (key !== undefined && !entries.has(key)) entries.set(key, pair)
      }
      this.#entries.set(map, entries)
    }
    const own = entries.get(name)
    if (own !== undefined) return own
    const merge = entries.get('<<')
    if (merge === undefined) return undefined
    const value = this.#resolved(merge.value as Node | null)
    for (const source of isSeq(value) ? value.items : [value]) {
      const other = this.#resolved(source as Node | null)
      const found = isMap(other) ? this.#pair(other, name) : undefined
      if (found !== undefined) return found
    }
    return undefined
  }
}

/** Names are text whatever they look like: `123:` is "123". */
function nameOf(pair: Pair): string | undefined {
  const { key } = pair
  if (!isScalar(key)) return undefined
  if (typeof key.value === 'string') return key.value
  return key.source === undefined || key.source === '' ? undefined : key.source
}

function isMerge(pair: Pair): boolean {
  return isScalar(pair.key) && pair.key.type === Scalar.PLAIN && pair.key.value === '<<'
}

/** A collection in several lines: what is wrong with it as a whole is better shown at its name. */
function isBlock(node: Node | null | undefined): boolean {
  return (isMap(node) || isSeq(node)) && node.flow !== true
}

function isEmpty(node: Node | null | undefined): boolean {
  return node === null || node === undefined || (isScalar(node) && node.value === null && (node.source ?? '') === '')
}

/** The same value without `Filled`: where nobody knows what is expected, text from a variable has the type that YAML gives it: quotes keep it text. */
export function settled(value: unknown): unknown {
  if (value instanceof Filled) return value.text === null || value.quoted ? value.text : typed(value.text)
  if (Array.isArray(value)) return value.map(settled)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, below]) => [name, settled(below)]))
}

/** What YAML's core schema makes of a plain scalar. Empty text stays text: an empty variable must not mean «no ceiling». */
export function typed(text: string): string | number | boolean | null {
  if (/^(null|Null|NULL|~)$/.test(text)) return null
  if (/^(true|True|TRUE)$/.test(text)) return true
  if (/^(false|False|FALSE)$/.test(text)) return false
  if (/^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$/.test(text)) return Number(text)
  return text
}
