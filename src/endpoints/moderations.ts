import { absent, checkModel, invalid, mustBe, unfit } from '../checks.js'
import { isObject, type Json, type JsonObject } from '../json.js'
import { familyOf, promptTokens } from '../metering/estimate.js'
import type { Endpoint } from './endpoint.js'

/**
 * POST /v1/moderations. What is sent is held as input; providers report no usage, and then nothing is billed. `flagged` is added to the
 * results of a provider that leaves it out: true when any category is.
 */
const moderations: Endpoint = {
  surface: 'moderations',
  paths: ['/v1/moderations'],
  path: '/moderations',
  idPrefix: 'modr-',
  fields: new Set(['input']),
  parameters: new Set(),
  unreported: 'nothing',
  streams: () => false,

  check(body) {
    checkModel(body)
    const { input } = body
    if (absent(input)) throw invalid('input', `input is required: ${INPUT}.`)
    if (typeof input === 'string') return
    if (!Array.isArray(input)) throw mustBe('input', INPUT, input)
    if (input.length === 0) throw invalid('input', 'input must not be an empty array.')
    const plain = typeof input[0] === 'string'
    input.forEach((item: Json, index) => {
      if (!plain) checkPart(item, `input[${index}]`)
      else if (typeof item !== 'string') throw mustBe(`input[${index}]`, 'a string like input[0]', item)
    })
  },

  cap: () => null,

  estimate(body, model, bodyTexts) {
    return { input: promptTokens(texts(body.input), familyOf(model), bodyTexts), output: 0 }
  },

  answers(answer) {
    const { results } = answer
    return Array.isArray(results) && results.length > 0 && results.every(isVerdict)
  },

  shape(answer, body) {
    const results = answer.results as readonly JsonObject[]
    const expected = Array.isArray(body.input) && typeof body.input[0] === 'string' ? body.input.length : 1
    if (results.length !== expected) throw unfit(`${results.length} results for ${expected} inputs`)
    if (results.every(result => typeof result.flagged === 'boolean')) return answer
    return { ...answer, results: results.map(withFlag) }
  },
}

export default moderations

const INPUT = 'a string, an array of strings or an array of parts'

function checkPart(part: Json, path: string): void {
  if (!isObject(part)) throw mustBe(path, 'a string or a part with "type"', part)
  if (part.type === 'text') {
    if (typeof part.text !== 'string') throw mustBe(`${path}.text`, 'a string', part.text)
  } else if (part.type === 'image_url') {
    if (!isObject(part.image_url)) throw mustBe(`${path}.image_url`, 'an object with "url"', part.image_url)
    if (typeof part.image_url.url !== 'string') throw mustBe(`${path}.image_url.url`, 'a string', part.image_url.url)
  } else {
    throw invalid(`${path}.type`, `${path}.type must be "text" or "image_url".`)
  }
}

/** What is counted: texts. No moderation model is known to count an image, or to bill one. */
function texts(input: Json | undefined): Json {
  if (!Array.isArray(input)) return input ?? ''
  return input.flatMap((item: Json) => (isObject(item) ? (typeof item.text === 'string' ? [item.text] : []) : [item]))
}

function isVerdict(value: Json | undefined): boolean {
  return isObject(value) && (typeof value.flagged === 'boolean' || isObject(value.categories))
}

function withFlag(result: JsonObject): JsonObject {
  if (typeof result.flagged === 'boolean') return result
  return { flagged: Object.values(result.categories as JsonObject).includes(true), ...result }
}
