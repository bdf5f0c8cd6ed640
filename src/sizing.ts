import type { Estimate } from './endpoints/endpoint.js'
import type { Calibrations } from './metering/calibrations.js'
import { cost } from './metering/price.js'
import type { Charge } from './metering/tally.js'
import type { Target } from './understand.js'

/** What a request is held for: the most of all its targets. */
export interface Size {
  readonly estimate: Estimate
  /** Rial that the dearest target costs. */
  readonly estimateRial: bigint
}

/** Sizes a hold from the raw estimates of the targets and what their models have taught. */
export function sizeOf(targets: readonly Target[], calibrations: Calibrations): Size {
  const most = { input: 0, output: 0 }
  let estimateRial = 0n
  for (const target of targets) {
    const input = inputHeld(target, calibrations)
    const { price } = target.model
    const { output } = target.estimate
    // What the provider reads from its cache is not known yet, and a price may have it the dearer part.
    const cached = price !== null && price.cached_input > price.input ? input : 0
    const rial = cost(price, { input, cached, output })
    if (rial > estimateRial) estimateRial = rial
    if (input > most.input) most.input = input
    if (output > most.output) most.output = output
  }
  return { estimate: most, estimateRial }
}

/** Input tokens: as they were counted, else what few requests exceed; where the model says `estimate: bound`, none does. */
function inputHeld({ model, estimate, bound, counted }: Target, calibrations: Calibrations): number {
  return counted ?? bound ?? scaled(estimate, calibrations.of(model).upper)
}

/** What is charged where the provider did not say what was used: the likeliest, never the bound. */
export function charge({ model, estimate, counted }: Target, calibrations: Calibrations): Charge {
  const { typical } = calibrations.of(model)
  return { input: counted ?? scaled(estimate, typical), factor: typical }
}

/** What is counted by rule is not scaled. */
function scaled({ input, fixed = 0 }: Estimate, factor: number): number {
  return fixed + Math.round((input - fixed) * factor)
}
