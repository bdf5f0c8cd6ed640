import { prompts } from './request.js'
import type { Said, Spoken } from './spoken.js'
import { usage } from './usage.js'

const DIMENSIONS = 8
const DIMENSIONS_MAX = 4096

/** A vector of length 1 for each input, as numbers or as base64 of 32-bit floats, little-endian. */
export function embeddings({ body, call, options }: Spoken): Said {
  const dimensions = body.dimensions ?? DIMENSIONS
  if (typeof dimensions !== 'number' || !Number.isInteger(dimensions) || dimensions < 1 || dimensions > DIMENSIONS_MAX) {
    const message = `dimensions must be a whole number from 1 to ${DIMENSIONS_MAX}, got ${JSON.stringify(dimensions)}.`
    return { kind: 'refusal', failure: { status: 400, message, param: 'dimensions' } }
  }
  const inputs = prompts(body.input)
  const data = inputs.map(({ text }, index) => {
    const vector = unit(text, dimensions)
    return { object: 'embedding', index, embedding: body.encoding_format === 'base64' ? base64(vector) : Array.from(vector) }
  })
  const used = usage(
    inputs.reduce((sum, input) => sum + input.tokens, 0),
    null,
    options,
  )
  const answer = { object: 'list', data, model: body.model ?? call.model.upstream, ...(used === undefined ? {} : { usage: used }) }
  return { kind: 'json', body: answer, tokens: 0 }
}

function unit(text: string, dimensions: number): Float32Array {
  const vector = new Float32Array(dimensions)
  let state = hash(text)
  let square = 0
  for (let i = 0; i < dimensions; i++) {
    state = (state + 0x6d2b79f5) | 0
    // Odd numerators: no coordinate is 0, so that there is always a length to divide by.
    const value = (scrambled(state) | 1) / 0x80000000
    vector[i] = value
    square += value * value
  }
  const length = Math.sqrt(square)
  return vector.map(value => value / length)
}

/** FNV-1a over UTF-16 units. */
function hash(text: string): number {
  let state = 0x811c9dc5
  for (let i = 0; i < text.length; i++) state = Math.imul(state ^ text.charCodeAt(i), 0x01000193)
  return state
}

/** The finisher of mulberry32: neighbouring states give unlike numbers. */
function scrambled(state: number): number {
  let mixed = Math.imul(state ^ (state >>> 15), state | 1)
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
  return mixed ^ (mixed >>> 14)
}

function base64(vector: Float32Array): string {
  const bytes = Buffer.alloc(vector.length * 4)
  for (const [i, value] of vector.entries()) bytes.writeFloatLE(value, i * 4)
  return bytes.toString('base64')
}
