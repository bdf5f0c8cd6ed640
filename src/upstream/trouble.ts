import { type ErrorOptions, GatewayError } from '../errors.js'

/** What a failure of a target means for the next try. */
export interface Trouble {
  /**
   * What it says of the target: `firm`: nobody is served there; `faint`: it may have been this request's fault; `limit`: it is at its rate
   * limit; `null`: nothing.
   */
  readonly against: 'firm' | 'faint' | 'limit' | null
  /** The same target may answer, a little later. */
  readonly passing: boolean
  /** Seconds that the provider asks to be left alone. */
  readonly waitS?: number
  /** For an operator, in one or two words: the code of the failure, and that of the connection where it was its fault. */
  readonly why?: string
}

/** A failure of a target. `retryable` says whether another try, here or elsewhere, is allowed at all. */
export class TargetFailure extends GatewayError {
  readonly trouble: Trouble

  constructor(code: string, message: string, trouble: Trouble, options: ErrorOptions = {}) {
    super(code, message, options)
    const below = (options.cause as { readonly code?: unknown } | undefined)?.code
    this.trouble = { ...trouble, why: typeof below === 'string' ? `${code}, ${below}` : code }
  }
}

const NONE: Trouble = { against: null, passing: false }

/** Of anything that was thrown: what is no failure of a target says nothing of it. */
export function troubleOf(error: unknown): Trouble {
  return error instanceof TargetFailure ? error.trouble : NONE
}

/** No connection came about, so that nothing was sent. */
export function unreachable(cause?: unknown): TargetFailure {
  return new TargetFailure(
    'upstream_unavailable',
    'The provider cannot be reached.',
    { against: 'firm', passing: true },
    { retryable: true, cause },
  )
}

/** The request may have run: nobody can tell. */
export const UNKNOWN: Trouble = { against: 'firm', passing: false }
