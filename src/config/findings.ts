import type { KindInfo } from './config.js'
import { type Path, type Problem, showPath } from './problems.js'
import type { ReadFile } from './secrets.js'

/** What the checks of one file share: what they may look at, and where they write down what they find. */
export class Findings {
  readonly problems: Problem[] = []
  readonly warnings: string[] = []
  /** Absolute paths of files that were read, or should have been. */
  readonly files: string[] = []

  constructor(
    readonly source: {
      readonly kinds: ReadonlyMap<string, KindInfo>
      readonly env: Readonly<Record<string, string | undefined>>
      /** Absolute; what relative paths in the file are relative to. */
      readonly folder: string
      readonly readFile: ReadFile
      /** `false`: what the prices' file says is not known. */
      readonly pricesRead: boolean
      /** The value at a path as it was read, not yet held against the schema. */
      raw(path: Path): unknown
      /** The scalar at a path as it is written, variables filled. */
      text(path: Path): string | undefined
      /** `gateway.yaml:12:5` */
      at(path: Path): string
    },
  ) {}

  wrong(path: Path, message: string): void {
    this.problems.push({ path, message })
  }

  /** Of something that several others lead to: told with the first of them. */
  wrongOnce(path: Path, message: string): void {
    const shown = showPath(path)
    if (!this.problems.some(other => other.message === message && showPath(other.path) === shown)) this.wrong(path, message)
  }

  /** The last name of the path is what is wrong. */
  wrongName(path: Path, message: string): void {
    this.problems.push({ path, message, part: 'name' })
  }

  warn(path: Path, message: string): void {
    this.warnings.push(`${this.source.at(path)}: ${message}`)
  }

  /** Names in a section of the file, those whose entries are wrong included: a reference to one of them dangles not. */
  names(section: string): ReadonlySet<string> {
    const value = this.source.raw([section])
    return new Set(typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.keys(value) : [])
  }
}
