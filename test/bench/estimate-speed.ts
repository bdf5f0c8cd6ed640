import { chatTokens } from '../../src/metering/chat.js'
import { textTokens } from '../../src/metering/estimate.js'
import type { Sample } from '../support/estimate-samples.js'
import { sampleModel } from '../support/sample-call.js'

/** Milliseconds, each the least of several. */
export interface Pace {
  readonly name: string
  /** For 1 MiB. */
  readonly estimate: number
  /** For the same text as JSON, to be parsed. */
  readonly parse: number
}

export interface Paces {
  readonly texts: readonly Pace[]
  /** For a million lookups of which each waits for the one before: how fast this machine is today. */
  readonly lookups: number
}

export const BYTES = 1024 * 1024
/**
 * Milliseconds for BYTES, on a core that takes so many for the lookups (2.1 GHz). A slower one may take as much longer as it does for these,
 * and any a fifth more, since the compiler does not make the same of the scan each time.
 */
export const PACE_BARS = { ms: 5, lookups: 2.7, noise: 1.2 } as const

const ROUNDS = 40

/** Classes of the fixture, and mixtures that make a scan work. */
export function paces(samples: readonly Sample[]): Paces {
  const of = (name: string) =>
    samples
      .filter(sample => sample.class === name)
      .map(sample => sample.text)
      .join('\n')
  const texts: readonly (readonly [name: string, unit: string])[] = [
    ['all classes', samples.map(sample => sample.text).join('\n')],
    ...['english', 'persian', 'chinese', 'russian', 'code', 'json', 'logs', 'tables', 'emoji'].map(name => [name, of(name)] as const),
    ['base64', Buffer.from(Array.from({ length: 3000 }, (_, i) => (i * 7919) & 255)).toString('base64')],
    ['one letter, one digit', 'a1B2c3 d4'],
    ['one letter, one sign', 'a!b?c.d,{"x":1}'],
    ['capitals at random', 'aBcDeFgHiJ'],
    ['line by line', 'a\nb\n\n1.'],
    ['31 letters and a dot', `${'x'.repeat(31)}.`],
  ]
  const filled = texts.map(([name, unit]) => ({
    name,
    text: mebibyte(unit),
    estimate: Number.POSITIVE_INFINITY,
    parse: Number.POSITIVE_INFINITY,
  }))
  let lookups = Number.POSITIVE_INFINITY
  // One after the other and again, so that a busy moment falls on all.
  for (let round = 0; round < ROUNDS; round++) {
    lookups = Math.min(lookups, timed(walk))
    for (const pace of filled) {
      const json = JSON.stringify(pace.text)
      pace.estimate = Math.min(
        pace.estimate,
        timed(() => textTokens(pace.text, 'o200k')),
      )
      pace.parse = Math.min(
        pace.parse,
        timed(() => JSON.parse(json)),
      )
    }
  }
  return { texts: filled.map(({ name, estimate, parse }) => ({ name, estimate, parse })), lookups }
}

/** Milliseconds that this machine may take for BYTES. */
export function paceBar(lookups: number): number {
  return PACE_BARS.ms * PACE_BARS.noise * Math.max(1, lookups / PACE_BARS.lookups)
}

const TABLE = Uint8Array.from({ length: 256 }, (_, i) => (i * 167 + 13) & 255)

function walk(): number {
  let place = 0
  for (let i = 0; i < BYTES; i++) place = TABLE[(place + i) & 255] as number
  return place
}

/** Microseconds that the estimate of a chat request of some 1 KiB takes, and the parsing of its body: the least of several hundreds, averaged. */
export function smallPace(): { readonly estimate: number; readonly parse: number } {
  const text = 'Please tell me which of the three offers is the cheapest one for a family of four, and why you think so. '
  const body = {
    model: 'openai/gpt-4o',
    messages: [
      { role: 'system', content: 'You are a helpful assistant of a travel agency. Answer briefly.' },
      { role: 'user', content: text.repeat(4) },
      { role: 'assistant', content: text.repeat(2) },
      { role: 'user', content: 'And for two?' },
    ],
    temperature: 0.2,
    max_tokens: 256,
  }
  const json = JSON.stringify(body)
  const model = sampleModel({ upstream: 'gpt-4o' })
  const least = (work: () => void) => {
    let best = Number.POSITIVE_INFINITY
    for (let round = 0; round < 60; round++)
      best = Math.min(
        best,
        timed(() => {
          for (let i = 0; i < 200; i++) work()
        }) / 200,
      )
    return best * 1000
  }
  return { estimate: least(() => chatTokens(body, model)), parse: least(() => JSON.parse(json)) }
}

function timed(work: () => unknown): number {
  const start = performance.now()
  work()
  return performance.now() - start
}

function mebibyte(unit: string): string {
  const once = Buffer.from(unit)
  return Buffer.concat(new Array<Buffer>(Math.ceil(BYTES / once.length)).fill(once))
    .subarray(0, BYTES)
    .toString('utf8')
}
