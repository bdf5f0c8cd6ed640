import { absent, checkInteger, checkModel, checkOneOf, checkString, checkTexts, textCount, unfit } from '../checks.js'
import { isObject, type Json, type JsonObject } from '../json.js'
import { familyOf, promptTokens, tokenIds } from '../metering/estimate.js'
import { inputOf } from '../metering/meter.js'
import type { Endpoint } from './endpoint.js'

/**
 * POST /v1/embeddings. Billed on input. Answers come in the order of the request and in the `encoding_format` that was asked for, whatever
 * the provider did: `float` (the default) is an array of numbers, `base64` is little-endian 32-bit floats.
 */
const embeddings: Endpoint = {
  surface: 'embeddings',
  paths: ['/v1/embeddings'],
  path: '/embeddings',
  idPrefix: '',
  fields: new Set(['input', 'encoding_format']),
  parameters: new Set(['dimensions', 'input_type', 'user']),
  unreported: 'counted',
  streams: () => false,

  check(body) {
    checkModel(body)
    checkTexts(body, 'input')
    checkOneOf(body, 'encoding_format', ['float', 'base64'])
    checkInteger(body, 'dimensions', 1)
    checkString(body, 'input_type')
    checkString(body, 'user')
  },

  cap: () => null,

  estimate(body, model, texts) {
    return { input: promptTokens(body.input, familyOf(model), texts), fixed: tokenIds(body.input), output: 0 }
  },

  answers(answer) {
    return Array.isArray(answer.data) && answer.data.length > 0 && answer.data.every(isEmbedding)
  },

  shape(answer, body, model) {
    const given = answer.data as readonly JsonObject[]
    const data = inOrder(given, textCount(body.input)).map(item => encoded(item, body.encoding_format === 'base64'))
    const told = usage(answer.usage, () => embeddings.estimate(body, model).input)
    if (told === answer.usage && data.every((item, index) => item === given[index])) return answer
    return { ...answer, object: 'list', data, usage: told }
  },
}

export default embeddings

function isEmbedding(value: Json | undefined): boolean {
  return isObject(value) && (Array.isArray(value.embedding) || typeof value.embedding === 'string')
}

/** One embedding for each input, at its place. An item without an index stands where it came. */
function inOrder(items: readonly JsonObject[], inputs: number): JsonObject[] {
  if (items.length !== inputs) throw unfit(`${items.length} embeddings for ${inputs} inputs`)
  const ordered = new Array<JsonObject | undefined>(inputs)
  items.forEach((item, position) => {
    const index = item.index ?? position
    if (!Number.isSafeInteger(index) || (index as number) < 0 || (index as number) >= inputs) throw unfit(`there is no input ${index}`)
    if (ordered[index as number] !== undefined) throw unfit(`input ${index} is embedded twice`)
    ordered[index as number] = absent(item.index) ? { object: 'embedding', ...item, index } : item
  })
  return ordered as JsonObject[]
}

/** What is billed: the input that the provider reports, else what was estimated; nothing is generated. The report itself where it says no more. */
function usage(reported: Json | undefined, estimated: () => number): JsonObject {
  const told = isObject(reported) ? reported : {}
  const input = inputOf(told) ?? estimated()
  if (told.prompt_tokens === input && told.total_tokens === input && (told.completion_tokens ?? 0) === 0) return told
  return { ...told, prompt_tokens: input, ...(told.completion_tokens === undefined ? {} : { completion_tokens: 0 }), total_tokens: input }
}

/** The item itself where it is encoded as asked. */
function encoded(item: JsonObject, base64: boolean): JsonObject {
  const { embedding } = item
  if (base64) return Array.isArray(embedding) ? { ...item, embedding: toBase64(embedding) } : item
  return typeof embedding === 'string' ? { ...item, embedding: fromBase64(embedding) } : item
}

function toBase64(numbers: readonly Json[]): string {
  const bytes = Buffer.allocUnsafe(numbers.length * 4)
  numbers.forEach((number, index) => {
    if (typeof number !== 'number') throw unfit('an embedding holds what is no number')
    bytes.writeFloatLE(number, index * 4)
  })
  return bytes.toString('base64')
}

function fromBase64(text: string): number[] {
  const bytes = Buffer.from(text, 'base64')
  if (bytes.length === 0 || bytes.length % 4 !== 0) throw unfit('an embedding is no base64 of 32-bit floats')
  return Array.from({ length: bytes.length / 4 }, (_, index) => {
    const number = bytes.readFloatLE(index * 4)
    if (!Number.isFinite(number)) throw unfit('an embedding holds what is no number')
    return number
  })
}
