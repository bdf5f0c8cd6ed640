import {
  absent,
  checkBoolean,
  checkInteger,
  checkModel,
  checkNumber,
  checkObject,
  checkStop,
  checkString,
  checkTexts,
  checkWhole,
  invalid,
  textCount,
} from '../checks.js'
import { isObject, type JsonObject } from '../json.js'

import { familyOf, partTokens, promptTokens, tokenIds } from '../metering/estimate.js'
import type { GeneratingEndpoint } from './endpoint.js'

/** POST /v1/completions, the legacy text completion. It never streams: `stream` is not forwarded, whatever it says. */
const completions: GeneratingEndpoint = {
  surface: 'completions',
  paths: ['/v1/completions'],
  path: '/completions',
  idPrefix: 'cmpl-',
  fields: new Set(['prompt', 'max_tokens', 'max_completion_tokens']),
  parameters: new Set([
    'n',
    'best_of',
    'temperature',
    'top_p',
    'stop',
    'suffix',
    'echo',
    'logprobs',
    'seed',
    'user',
    'logit_bias',
    'presence_penalty',
    'frequency_penalty',
  ]),
  unreported: 'counted',
  streams: () => false,

  check(body) {
    checkModel(body)
    checkTexts(body, 'prompt')
    checkInteger(body, 'max_tokens', 1)
    checkInteger(body, 'max_completion_tokens', 1)
    checkInteger(body, 'n', 1, 128)
    checkInteger(body, 'best_of', 0, 20)
    checkNumber(body, 'temperature')
    checkNumber(body, 'top_p')
    checkStop(body)
    checkString(body, 'suffix')
    checkBoolean(body, 'echo')
    checkInteger(body, 'logprobs', 0, 5)
    checkWhole(body, 'seed')
    checkString(body, 'user')
    checkObject(body, 'logit_bias')
    checkNumber(body, 'presence_penalty')
    checkNumber(body, 'frequency_penalty')
    const [n, bestOf] = [whole(body, 'n', 1), whole(body, 'best_of', 0)]
    if (!absent(body.best_of) && bestOf !== 0 && bestOf < n) {
      throw invalid('best_of', `best_of must be at least n: best_of ${bestOf}, n ${n}.`)
    }
  },

  cap(body, model) {
    const asked = Math.min(whole(body, 'max_tokens', Infinity), whole(body, 'max_completion_tokens', Infinity))
    const wanted = asked === Infinity ? model.default_max_tokens : asked
    return model.max_output_tokens === null ? wanted : Math.min(wanted, model.max_output_tokens)
  },

  estimate(body, model, texts) {
    // Candidates that best_of throws away are generated, and billed, all the same.
    const choices = textCount(body.prompt) * Math.max(whole(body, 'n', 1), whole(body, 'best_of', 1))
    const cap = completions.cap(body, model) ?? 0
    const family = familyOf(model)
    // What comes behind the gap is read with every prompt.
    const suffix = typeof body.suffix === 'string' ? textCount(body.prompt) * partTokens('suffix', body.suffix, family, texts) : 0
    return {
      input: promptTokens(body.prompt, family, texts) + suffix,
      fixed: tokenIds(body.prompt),
      output: Math.min(choices * cap, Number.MAX_SAFE_INTEGER),
    }
  },

  answers(answer) {
    const { choices } = answer
    return Array.isArray(choices) && choices.length > 0 && choices.every(choice => isObject(choice) && typeof choice.text === 'string')
  },

  output(answer) {
    const { choices } = answer
    if (!Array.isArray(choices)) return ''
    return choices.map(choice => (isObject(choice) && typeof choice.text === 'string' ? choice.text : '')).join('')
  },
}

export default completions

function whole(body: JsonObject, name: string, otherwise: number): number {
  const value = body[name]
  return typeof value === 'number' ? value : otherwise
}
