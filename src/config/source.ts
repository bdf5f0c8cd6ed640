import { isAbsolute, relative, resolve } from 'node:path'
import { type Document, type Fill, Filled, readDocument } from './document.js'
import { type Path, type PlacedProblem, type Problem, showPath } from './problems.js'
import { type ReadFile, reason } from './secrets.js'

/** One file that was read, and its name as people are shown it. */
export interface Part {
  readonly document: Document
  readonly shown: string
}

export interface SourceOptions {
  /** What the name of the prices' file is relative to. */
  readonly folder: string
  /** What messages show names relative to. */
  readonly cwd: string
  readonly readFile: ReadFile
  readonly fill: Fill
}

/**
 * gateway.yaml and the file that its `prices` may name, as one: what stands in that file has the path that it would have under `prices`.
 */
export class Source {
  readonly value: unknown
  /** What is wrong with the files as YAML. */
  readonly problems: readonly Problem[]
  readonly errors: readonly PlacedProblem[]
  /** Absolute path of the prices' file. */
  readonly pricesFile: string | null
  /** `false`: it can not be read, which is among the problems; what it says is not known. */
  readonly pricesRead: boolean
  readonly #main: Part
  readonly #prices: Part | null

  constructor(main: Part, options: SourceOptions) {
    this.#main = main
    const name = nameOf(main.document.value)
    const given = name === undefined || name === null ? NO_PRICES : readPrices(name, options)
    this.#prices = given.part
    this.pricesFile = given.file
    this.pricesRead = name !== null && (name === undefined || given.part !== null)
    this.problems = [...main.document.problems, ...given.problems]
    this.errors = given.errors
    this.value = given.part === null ? main.document.value : { ...(main.document.value as object), prices: given.part.document.value }
  }

  /** `gateway.yaml:12:5`; the nearest above it, where the path does not exist. */
  at(path: Path): string {
    const { file, line, col } = this.place({ path, message: '' })
    return `${file}:${line}:${col}`
  }

  place({ path, message, part, place }: Problem): Required<PlacedProblem> {
    const { document, shown, below } = this.#of(path)
    return { file: shown, ...(place ?? document.locate(below, part)), path: showPath(below), message }
  }

  text(path: Path): string | undefined {
    const { document, below } = this.#of(path)
    return document.text(below)
  }

  template(path: Path): string | undefined {
    const { document, below } = this.#of(path)
    return document.template(below)
  }

  #of(path: Path): Part & { readonly below: Path } {
    const prices = this.#prices
    return prices !== null && path[0] === 'prices' && path.length > 1 ? { ...prices, below: path.slice(1) } : { ...this.#main, below: path }
  }
}

/** As people would name it: relative where it lies below the working directory, so that a click in a terminal finds it. */
export function shownAs(file: string, cwd: string): string {
  const name = relative(cwd, file)
  return name.startsWith('..') || isAbsolute(name) ? file : name
}

interface PricesFile {
  readonly file: string | null
  readonly part: Part | null
  readonly problems: readonly Problem[]
  readonly errors: readonly PlacedProblem[]
}

const NO_PRICES: PricesFile = { file: null, part: null, problems: [], errors: [] }

/** What `prices` names as a file; undefined where it names none, `null` where a variable of it is missing. */
function nameOf(value: unknown): string | null | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { prices } = value as { readonly prices?: unknown }
  if (prices instanceof Filled) return prices.text
  return typeof prices === 'string' && prices !== '' ? prices : undefined
}

function readPrices(name: string, { folder, cwd, readFile, fill }: SourceOptions): PricesFile {
  const file = resolve(folder, name)
  const wrong = (message: string): PricesFile => ({ ...NO_PRICES, file, problems: [{ path: ['prices'], message }] })
  let text: string
  try {
    text = readFile(file)
  } catch (error) {
    return wrong(`cannot read ${file}: ${reason(error)}`)
  }
  const shown = shownAs(file, cwd)
  const document = readDocument(text, fill)
  if (document.errors.length > 0) return { ...NO_PRICES, file, errors: document.errors.map(error => ({ ...error, file: shown })) }
  const { value } = document
  if (value !== null && (typeof value !== 'object' || Array.isArray(value) || value instanceof Filled)) {
    return wrong(`${file} must hold a map of models and their prices`)
  }
  return {
    file,
    part: { document, shown },
    problems: document.problems.map(problem => ({ ...problem, path: ['prices', ...problem.path] })),
    errors: [],
  }
}
