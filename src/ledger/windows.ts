export type WindowKind = 'minute' | 'hour' | 'day' | 'month' | 'all'

/** A span of time, in milliseconds since the epoch: `start` is in it, `end` is not. `all` runs from 0 to Infinity. */
export interface Window {
  readonly kind: WindowKind
  readonly start: number
  readonly end: number
}

/** Finds the window of a kind that a moment falls into. */
export type Windows = (kind: WindowKind, at: number) => Window
