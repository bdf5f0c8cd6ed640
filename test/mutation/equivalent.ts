/** A mutant that no test can kill, since it does the same as what it stands for. */
export interface Equivalent {
  readonly file: string
  readonly original: string
  readonly replacement: string
  readonly why: string
}

export const EQUIVALENT: readonly Equivalent[] = []
