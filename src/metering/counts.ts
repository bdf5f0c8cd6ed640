import * as features from './features.js'
import * as words from './words.js'

/*
 * What the text under the scan was found to be made of: how often each feature occurs in it, and what that costs. Written as scan.ts says.
 */

const { DIGITS, FEATURES } = features
const { SPACED_DIGIT } = words

/** What each feature of a text costs in hundredths of a token, by the numbers of features.ts. */
export type FeatureRates = Uint16Array

/** How often each feature was found, and which were: all zero, and none, before a text and after. */
const counts = new Int32Array(FEATURES + 1)
const found = new Uint16Array(FEATURES + 1)
let distinct = 0

/** Adds one. 0: it is the first of its kind, and has to be noted. */
export const countOne = (feature: number): number => {
  const before = counts[feature] as number
  counts[feature] = before + 1
  return before
}

/** To be called once for each feature that is found. */
export function note(feature: number): void {
  found[distinct++] = feature
}

/** Adds so many, and notes it. */
export function count(feature: number, times: number): void {
  if (times === 0) return
  const before = counts[feature] as number
  counts[feature] = before + times
  if (before === 0) note(feature)
}

/** What all that was counted costs by these rates, in hundredths of a token. */
export function costBy(rates: FeatureRates): number {
  let cost = (counts[SPACED_DIGIT] as number) * ((rates[DIGITS + 2] as number) + (rates[DIGITS + 3] as number))
  for (let i = 0; i < distinct; i++) {
    const feature = found[i] as number
    if (feature !== SPACED_DIGIT) cost += (counts[feature] as number) * (rates[feature] as number)
  }
  return cost
}

/** For the next text. */
export function forget(): void {
  for (let i = 0; i < distinct; i++) counts[found[i] as number] = 0
  distinct = 0
}
