/**
 * ` (did you mean "x"?)` for the candidate nearest to a name that does not exist, else an empty text. Nearest: least edits (a letter
 * inserted, deleted, replaced, or two neighbours swapped), at most a third of the name's length. Linear in the number of candidates.
 */
export function didYouMean(name: string, candidates: Iterable<string>): string {
  const found = nearest(name, candidates)
  return found === undefined ? '' : ` (did you mean "${found}"?)`
}

export function nearest(name: string, candidates: Iterable<string>): string | undefined {
  const wanted = name.toLowerCase().slice(0, LONGEST)
  let least = Math.floor(Math.max(wanted.length, 3) / 3) + 1
  let found: string | undefined
  for (const candidate of candidates) {
    const other = candidate.toLowerCase()
    if (Math.abs(other.length - wanted.length) >= least) continue
    const edits = distance(wanted, other, least)
    if (edits < least) {
      least = edits
      found = candidate
    }
  }
  return found
}

const LONGEST = 200

/** Edits between two texts; gives up with `limit` once it can not be less. */
function distance(a: string, b: string, limit: number): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    let least = i
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      let edits = Math.min((last[j] as number) + 1, (row[j - 1] as number) + 1, (last[j - 1] as number) + (same ? 0 : 1))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) edits = Math.min(edits, (beforeLast[j - 2] as number) + 1)
      row.push(edits)
      if (edits < least) least = edits
    }
    if (least >= limit) return limit
    beforeLast = last
    last = row
  }
  return last[b.length] as number
}
