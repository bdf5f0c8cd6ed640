import { isObject, type Json, type JsonObject } from '../json.js'
import { familyOf, textTokens } from '../metering/estimate.js'
import type { Endpoint } from './endpoint.js'

const chatCompletions: Endpoint = {
  surface: 'chat',
  paths: ['/v1/chat/completions'],
  path: '/chat/completions',
  idPrefix: 'chatcmpl-',
  unreported: 'counted',
  fields: new Set(['messages', 'max_tokens', 'max_completion_tokens', 'n', 'stream', 'stream_options']),
  parameters: new Set(['temperature', 'top_p', 'tools', 'tool_choice', 'response_format', 'stop', 'seed']),
  streams: body => body.stream === true,
  check() {},
  cap(body, model) {
    const given = [body.max_tokens, body.max_completion_tokens].filter(v => typeof v === 'number') as number[]
    const cap = given.length === 0 ? model.default_max_tokens : Math.min(...given)
    return Math.min(cap, model.max_output_tokens ?? cap)
  },
  estimate(body, model) {
    return { input: textTokens(JSON.stringify(body.messages), familyOf(model)), output: Number(body.n ?? 1) * (this.cap(body, model) ?? 0) }
  },
  answers: answer => Array.isArray(answer.choices) && answer.choices.length > 0,
  output(answer) {
    let text = ''
    for (const choice of (Array.isArray(answer.choices) ? answer.choices : []) as Json[]) {
      const d = isObject(choice) ? (isObject(choice.delta) ? choice.delta : isObject(choice.message) ? choice.message : {}) : {}
      if (typeof (d as JsonObject).content === 'string') text += (d as JsonObject).content
    }
    return text
  },
}
export default chatCompletions
