/** What decides when a target is tried. */
export interface Weighted {
  /** Relative to the others of its rank; 0: after all of them. A whole number. */
  readonly weight: number
  readonly rank: number
}

/**
 * The order in which targets are tried: by rank; within a rank by chance, so that each is as often first as its weight is part of the sum, and
 * likewise among those that are left. `random` gives numbers from 0 up to, not including, 1. The targets are in the order of their ranks.
 */
export function ordered<T extends Weighted>(targets: readonly T[], random: () => number): readonly T[] {
  if (targets.length < 2) return targets
  const order: T[] = []
  for (let start = 0; start < targets.length; ) {
    const rank = (targets[start] as T).rank
    let end = start + 1
    while (end < targets.length && (targets[end] as T).rank === rank) end++
    if (end === start + 1) order.push(targets[start] as T)
    else order.push(...shuffled(targets.slice(start, end), random))
    start = end
  }
  return order
}

function shuffled<T extends Weighted>(rest: T[], random: () => number): T[] {
  const order: T[] = []
  let sum = rest.reduce((total, { weight }) => total + weight, 0)
  while (rest.length > 0) {
    const index = sum === 0 ? Math.floor(random() * rest.length) : at(rest, random() * sum)
    const [taken] = rest.splice(index, 1) as [T]
    sum -= taken.weight
    order.push(taken)
  }
  return order
}

/** Where a point on the line of all weights, laid end to end, falls. */
function at(targets: readonly Weighted[], point: number): number {
  let left = point
  let last = 0
  for (const [index, { weight }] of targets.entries()) {
    if (weight === 0) continue
    last = index
    left -= weight
    if (left < 0) return index
  }
  return last
}
