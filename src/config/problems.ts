/** Way to a value of gateway.yaml: names of maps, positions in lists. */
export type Path = readonly (string | number)[]

/** One thing that is wrong. `part: 'name'`: the last name of the path is to blame, not what stands under it. */
export interface Problem {
  readonly path: Path
  readonly message: string
  readonly part?: 'name'
  /** Where it stands, where the path can not tell: the second of two that are the same. */
  readonly place?: Place
}

/** Line and column, from 1. */
export interface Place {
  readonly line: number
  readonly col: number
}

/** A problem and where it stands. `path` is text: `models.openai/gpt-4o.price`. `file`: another than gateway.yaml, as shown to people. */
export interface PlacedProblem extends Place {
  readonly file?: string
  readonly path: string
  readonly message: string
}

/** The file can not be used. `problems` has all that is wrong with it and with the prices beside it, in the order of the files; the message has one line for each. */
export class ConfigError extends Error {
  constructor(
    /** The file's name as shown to people. */
    readonly file: string,
    readonly problems: readonly PlacedProblem[],
    /** Absolute paths of the other files that were read, or should have been: a change of one of them may mend it. */
    readonly files: readonly string[] = [],
  ) {
    super(problems.map(problem => showProblem(file, problem)).join('\n'))
    this.name = 'ConfigError'
  }
}

/** `gateway.yaml:12:5: keys.app-a.plan: what is wrong` */
export function showProblem(main: string, { file = main, line, col, path, message }: PlacedProblem): string {
  return `${file}:${line}:${col}: ${path === '' ? '' : `${path}: `}${message}`
}

/** The path as text. Names that hold a dot, a bracket or a space are quoted: `models["openai/gpt-4.1"].price`. Each path has its own text. */
export function showPath(path: Path): string {
  let text = ''
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`
    else if (/[\s.[\]"]/u.test(step) || step === '') text += `[${JSON.stringify(step)}]`
    else text += text === '' ? step : `.${step}`
  }
  return text
}
