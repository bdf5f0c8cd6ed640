/** A straight line through points. */
export interface Slope {
  /** Its values at the first point and at the last. */
  readonly first: number
  readonly last: number
  readonly perUnit: number
  /** Standard error of `perUnit`. */
  readonly error: number
}

/** So many samples of a process's memory in a row count as one. */
const IN_A_ROW = 10

/**
 * The line of least squares through points `[x, y]`. Of each ten in a row the least counts: what garbage adds until it is collected is no growth,
 * and neighbours are alike, so that all of them would make the error look smaller than it is.
 */
export function slope(points: readonly (readonly [number, number])[]): Slope {
  const floors: [number, number][] = []
  for (let i = 0; i + IN_A_ROW <= points.length; i += IN_A_ROW) {
    const some = points.slice(i, i + IN_A_ROW)
    floors.push([mean(some.map(([x]) => x)), Math.min(...some.map(([, y]) => y))])
  }
  if (floors.length < 3) throw new RangeError(`${points.length} points are too few for a line`)
  const x0 = mean(floors.map(([x]) => x))
  const y0 = mean(floors.map(([, y]) => y))
  const xx = floors.reduce((sum, [x]) => sum + (x - x0) ** 2, 0)
  const perUnit = floors.reduce((sum, [x, y]) => sum + (x - x0) * (y - y0), 0) / xx
  const rest = floors.reduce((sum, [x, y]) => sum + (y - y0 - perUnit * (x - x0)) ** 2, 0)
  const at = (x: number): number => y0 + perUnit * (x - x0)
  const error = Math.sqrt(rest / (floors.length - 2) / xx)
  return { first: at((points[0] as [number, number])[0]), last: at((points.at(-1) as [number, number])[0]), perUnit, error }
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}
